"""Full prompts, token by token and batch by batch, for training or testing a model of one's own."""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import RNG, Floats, Point, generator, one_whole
from icltheory.prompts.kernels import Kernel, Query
from icltheory.prompts.pretraining import given_tasks
from icltheory.prompts.sampling import ASSIGNMENTS, Assignment, check_kernel, kernel_length
from icltheory.prompts.tasks import TaskLaw, check_law, check_task_covariance, task_sampler
from icltheory.prompts.token_chains import Colour, token_colouring
from icltheory.resources import require_memory

Array = Any  # a numpy array, or a torch tensor with backend="torch"

Split = Literal["train", "idg", "icl", "validation"]
Backend = Literal["numpy", "torch"]
DType = Literal["float64", "float32"]
SPLITS = ("train", "idg", "icl", "validation")  # the order fixes each split's random stream
BACKENDS = ("numpy", "torch")
DTYPES = ("float64", "float32")


@dataclass(frozen=True, kw_only=True)
class Prompts:
    r"""A batch of b prompts of l labelled tokens and a query: numpy arrays or torch tensors.

    Attributes
    ----------
    x : array of shape (b, l, d)
        Context tokens, :math:`x_i \sim N(0, I_d/d)`.
    y : array of shape (b, l)
        Their labels, :math:`y_i = \langle w, x_i\rangle + N(0, \rho)`.
    query : array of shape (b, d)
        The query token :math:`x_{l+1}`.
    target : array of shape (b,)
        The query's label (noise included), which a model is to predict from x, y and query.
    task : array of shape (b, d)
        The task w that labelled the prompt.
    task_index : integer array of shape (b,)
        Which pretraining task that is; -1 for a fresh task.
    """

    x: Array
    y: Array
    query: Array
    target: Array
    task: Array
    task_index: Array


def stream_prompts(
    *,
    d: int,
    tau: float | None = None,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    context_length: int | None = None,
    n_sequences: int | None = None,
    n_tasks: float | None = None,
    tasks: TaskLaw = "sphere",
    assignment: Assignment = "random",
    task_covariance: ArrayLike | None = None,
    test_task_covariance: ArrayLike | None = None,
    pretraining_tasks: ArrayLike | None = None,
    kernel: Kernel | None = None,
    query: Query = "independent",
    rng: RNG = None,
    batch_size: int | None = None,
    max_bytes: int = 2**28,
    backend: Backend = "numpy",
    dtype: DType = "float64",
    split: Split = "train",
) -> Iterator[Prompts]:
    r"""Draw n prompts of in-context linear regression with all their tokens, in batches of bounded memory.

    For a model that takes the tokens themselves, such as a transformer. Each prompt has a task w and

    .. math:: x_i \sim N(0, I_d/d), \qquad y_i = \langle w, x_i\rangle + \varepsilon_i , \qquad
              \varepsilon_i \sim N(0, \rho) , \qquad i = 1, \dots, l + 1 ,

    the last pair being the query and its target. Linear attention sees no more of them than `summarise` keeps, which
    `icltheory.simulate.linear_attention` draws directly, at a cost free of l.

    Four splits belong to one integer seed. They have the same pretraining tasks, which are also those of
    ``simulate.linear_attention`` at that seed, and share no other random number; they may differ in `n_sequences` and
    `context_length`. The numbers drawn do not depend on the batch size, and float32 is the rounding of float64.

    Parameters
    ----------
    d : int
        Token dimension.
    tau, alpha, kappa : float
        n/d^2, l/d and k/d, rounded to the nearest sizes; ``kappa=math.inf`` draws a fresh task for every prompt.
    n_sequences, context_length, n_tasks : int
        Sizes in place of the ratios: n prompts in the whole stream, l labelled tokens in each, k pretraining tasks.
    rho : float
        Label-noise variance (the signal variance is 1).
    tasks : {"sphere", "gaussian"}
        Law of the tasks: uniform with :math:`|w|^2 = d`, or :math:`N(0, C)`.
    assignment : {"random", "balanced"}
        Each prompt's pretraining task is chosen uniformly at random, or all tasks have equally many prompts (to within
        one), in random order.
    task_covariance : array of shape (d,) or (d, d), optional
        C of Gaussian pretraining tasks: eigenvalues in the token basis, or a matrix; default the identity. The signal
        variance is its normalised trace, 1 for the spectra of `icltheory.prompts.covariance`.
    test_task_covariance : array of shape (d,) or (d, d), optional
        C of the fresh tasks of ``split="icl"``; default that of pretraining (``np.ones(d)`` is the identity).
    pretraining_tasks : array of shape (k, d), optional
        The pretraining tasks themselves, in place of kappa or `n_tasks` and of draws from the law; ``split="icl"`` does
        not look at them. All other numbers of a seed are the same as without it.
    kernel : Kernel, optional
        Correlations of the tokens of a prompt, :math:`E\,x_a x_b^\top = K_{ab} I/d`; the default is independent tokens.
        Its context length is the prompts', which need not be given then.
    query : {"independent", "next"} or array of shape (l,)
        Correlations of the query with the context.
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness; 0 is a seed. Give all splits the same integer: the other kinds are advanced by every
        call, so that the next one has other tasks.
    batch_size : int, optional
        Prompts in a batch (the last may have fewer), in place of `max_bytes`.
    max_bytes : int, default 2**28
        Memory that drawing one batch may take, temporaries included; it sets the batch size. Held besides: the
        pretraining tasks (8 k d bytes) and, if balanced, their order (8 n bytes).
    backend : {"numpy", "torch"}
        Kind of array; a torch tensor (on the CPU) takes over the numpy array's memory.
    dtype : {"float64", "float32"}
        Type of all but `task_index`.
    split : {"train", "idg", "icl", "validation"}
        The pretraining set; fresh prompts on the pretraining tasks; prompts on fresh tasks; or, to choose a model by,
        other fresh prompts on the pretraining tasks. With ``kappa=math.inf`` all four have fresh tasks.

    Returns
    -------
    iterator of Prompts
        Arguments are checked and the pretraining tasks drawn at the call, each batch when it is asked for.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.
    MemoryError
        Before anything large is allocated, with the estimate.
    ImportError
        For ``backend="torch"`` without PyTorch.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751): the model of the prompts.

    Examples
    --------
    How well does least squares on the context alone do on fresh tasks?

    >>> import numpy as np
    >>> import icltheory as icl
    >>> sizes = dict(d=4, context_length=40, n_tasks=6, rho=0.01, rng=0)
    >>> errors = []
    >>> for batch in icl.prompts.stream_prompts(**sizes, n_sequences=1000, batch_size=400, split="icl"):
    ...     w = (np.linalg.pinv(batch.x) @ batch.y[:, :, None])[:, :, 0]
    ...     errors.append((batch.target - (w * batch.query).sum(axis=1)) ** 2)
    >>> [len(e) for e in errors]
    [400, 400, 200]
    >>> bool(abs(np.mean(np.concatenate(errors)) / 0.01 - 1) < 0.25)   # rho, plus a term of order rho d/l
    True
    """
    given = None
    if pretraining_tasks is not None:
        for name, value in {"kappa": kappa, "n_tasks": n_tasks, "task_covariance": task_covariance}.items():
            if value is not None:
                raise ValueError(f"give pretraining_tasks or {name}, not both: given tasks are not drawn")
        given = given_tasks("pretraining_tasks", pretraining_tasks, one_whole("d", d, "token dimension"))
        n_tasks = len(given)
    if kernel is not None and alpha is None and context_length is None:
        context_length = kernel_length(kernel)
    point = Point.of(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        rho=rho,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    law = check_law(tasks)
    covariance = check_task_covariance("task_covariance", task_covariance, point.d, law)
    test_covariance = check_task_covariance("test_task_covariance", test_task_covariance, point.d, law)
    if split == "icl" and test_covariance is not None:
        covariance = test_covariance
    _check_choice("assignment", assignment, ASSIGNMENTS)
    _check_choice("split", split, SPLITS)
    convert = _converter(backend, dtype)
    colour = token_colouring(check_kernel(kernel, query, point.context_length), query)
    each = _bytes_per_prompt(point, dtype, kernel is not None)
    size = _batch_size(point, dtype, each, batch_size, max_bytes)
    seen = split != "icl" and bool(np.isfinite(point.n_tasks))
    if seen and split in ("idg", "validation") and rng is None and given is None:
        raise ValueError(
            f'rng must be the pretraining set\'s integer seed for split="{split}", got None (unknown tasks)'
        )
    held = 24.0 * point.n_tasks * d + 16.0 * point.n_sequences * (assignment == "balanced") if seen else 0.0
    require_memory(
        held + size * each,
        f"streaming prompts (d = {d}, {point.n_tasks} tasks, batches of {size})",
        "reduce kappa or batch_size" if seen else "reduce batch_size or max_bytes",
    )
    task_stream, *split_streams = generator(rng).spawn(1 + len(SPLITS))
    draw = task_sampler(law, d, covariance=covariance)
    known = None
    if seen:
        known = draw(int(point.n_tasks), task_stream) if given is None else given
    return _batches(point, draw, known, assignment, split_streams[SPLITS.index(split)], size, colour, convert)


def summarise(prompts: Prompts) -> tuple[Array, Array, Array]:
    r"""Reduce prompts to all that linear attention sees of them: (query, context, target).

    .. math:: r = \Big[\frac dl \sum_{i \le l} y_i x_i,\ \frac1l \sum_{i \le l} y_i^2\Big] \in \mathbb R^{d+1} ,

    the rows of `context`, shape (b, d + 1), equal in law to those of `sample_summaries`. Query, shape (b, d), and
    target, shape (b,), are the prompts' own. Arrays are of the prompts' kind; torch tensors keep device and gradient.

    References
    ----------
    Lu et al., PNAS 122(28), 2025 (arXiv:2405.11751): the reduced model, :math:`\hat y = x_{l+1}^\top \Gamma r`.

    Examples
    --------
    >>> import icltheory as icl
    >>> batch = next(icl.prompts.stream_prompts(d=3, n_sequences=5, alpha=2.0, n_tasks=2, rho=0.1, rng=0))
    >>> [array.shape for array in icl.prompts.summarise(batch)]
    [(5, 3), (5, 4), (5,)]
    """
    x, y = prompts.x, prompts.y
    _, length, d = x.shape
    row = y[:, None, :]
    parts = (d / length) * (row @ x)[:, 0, :], (row @ y[:, :, None])[:, 0, :] / length
    concatenate = np.concatenate if isinstance(x, np.ndarray) else _torch().cat
    return prompts.query, concatenate(parts, -1), prompts.target


def _batches(
    point: Point,
    draw: Callable[[int, np.random.Generator], Floats],
    known: Floats | None,
    assignment: Assignment,
    stream: np.random.Generator,
    size: int,
    colour: Colour,
    convert: Callable[[Prompts], Prompts],
) -> Iterator[Prompts]:
    """Yield the stream; each kind of variate has its own generator, read in order, whatever the batch size."""
    fresh, choice, *others = stream.spawn(6)
    n = point.n_sequences
    order = choice.permutation(n) % len(known) if known is not None and assignment == "balanced" else None
    for start in range(0, n, size):
        b = min(size, n - start)
        if known is None:
            index, w = np.full(b, -1, dtype=np.int64), draw(b, fresh)
        else:
            index = choice.integers(len(known), size=b) if order is None else order[start : start + b]
            w = known[index]
        batch = convert(_label(point, w, index, colour, *others))
        del index, w
        yield batch
        del batch  # not to hold one batch while the next is drawn


def _label(
    point: Point,
    w: Floats,
    index: Array,
    colour: Colour,
    tokens: np.random.Generator,
    queries: np.random.Generator,
    noise: np.random.Generator,
    target_noise: np.random.Generator,
) -> Prompts:
    """Draw tokens and labels for the given tasks, one prompt a row of w."""
    b, d, sigma = len(w), point.d, np.sqrt(point.rho)
    x = tokens.standard_normal((b, point.context_length, d))
    x /= np.sqrt(d)
    query = queries.standard_normal((b, d))
    query /= np.sqrt(d)
    x, query = colour(x, query)
    y = noise.standard_normal((b, point.context_length))
    y *= sigma
    y += (x @ w[:, :, None])[:, :, 0]
    target = (query[:, None, :] @ w[:, :, None])[:, 0, 0] + sigma * target_noise.standard_normal(b)
    return Prompts(x=x, y=y, query=query, target=target, task=w, task_index=index)


def _batch_size(point: Point, dtype: str, each: int, batch_size: int | None, max_bytes: int) -> int:
    if batch_size is not None:
        return min(one_whole("batch_size", batch_size, "prompts in a batch"), point.n_sequences)
    limit = one_whole("max_bytes", max_bytes, "memory that drawing one batch may take")
    if limit < each:
        raise ValueError(
            f"max_bytes must be at least {each}, the memory that drawing one prompt takes at d = {point.d} and "
            f"context_length = {point.context_length} in {dtype}, got {limit}"
        )
    return min(limit // each, point.n_sequences)


def _bytes_per_prompt(point: Point, dtype: str, correlated: bool) -> int:
    """Count the peak while a prompt is drawn: all in double precision with temporaries, then the rounded copies."""
    tokens = 3 if correlated else 1
    length, d = point.context_length, point.d
    drawn = 8 * (tokens * length * d + 2 * length + 2 * d + 4)
    return drawn if dtype == "float64" else drawn + np.dtype(dtype).itemsize * (length * d + length + 2 * d + 1)


def _converter(backend: str, dtype: str) -> Callable[[Prompts], Prompts]:
    """Return what rounds a batch to the dtype and wraps its arrays for the backend."""
    _check_choice("backend", backend, BACKENDS)
    _check_choice("dtype", dtype, DTYPES)
    wrap: Callable[[Array], Array] = _torch().from_numpy if backend == "torch" else lambda array: array

    def convert(batch: Prompts) -> Prompts:
        arrays = {field.name: getattr(batch, field.name) for field in fields(batch)}
        return Prompts(
            **{name: wrap(a if a.dtype.kind == "i" else a.astype(dtype, copy=False)) for name, a in arrays.items()}
        )

    return convert


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError('backend="torch" needs PyTorch, which is not installed: pip install torch') from error


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}")
