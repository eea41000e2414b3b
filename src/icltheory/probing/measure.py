"""Probing: a predictor, ridge regression and dMMSE on the same prompts, of fresh tasks and of the pretraining tasks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from icltheory import bayes, conventions
from icltheory.conventions import ConventionName
from icltheory.points import RNG, Floats, Point, one_whole
from icltheory.probing.asking import Ask, Backend, DType, Predictor, asking, require_causal
from icltheory.probing.result import Comparison, Estimate, Probe
from icltheory.prompts import pretraining
from icltheory.prompts.pretraining import given_tasks
from icltheory.prompts.tasks import TaskLaw
from icltheory.prompts.tokens import Prompts, stream_prompts
from icltheory.resources import require_memory


def probe(
    predictor: Predictor,
    *,
    d: int,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    context_length: int | None = None,
    n_tasks: float | None = None,
    pretraining_tasks: ArrayLike | None = None,
    tasks: TaskLaw = "sphere",
    n_prompts: int = 2000,
    convention: ConventionName = "scaled",
    backend: Backend | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    batch_size: int = 256,
    max_bytes: int = 2**28,
    rng: RNG = None,
) -> Probe:
    r"""Say how near a predictor of in-context linear regression is to ridge regression and to dMMSE.

    A model pretrained on k tasks that generalises predicts like ridge regression :math:`f_r`, the Bayes estimator for
    tasks that are all possible; one that has memorised its tasks like dMMSE :math:`f_d`, the Bayes estimator for these
    k. On fresh tasks the two differ, and on the line through them the predictor f is at

    .. math:: s = \frac{E (f - f_d)(f_r - f_d)}{E (f_r - f_d)^2} \quad (0: \text{dMMSE},\ 1: \text{ridge}) , \qquad
              q = \frac{E (f - f_d - s (f_r - f_d))^2}{E (f_r - f_d)^2} \quad (\text{off the line}) .

    Prompts have l examples :math:`x_i \sim N(0, I_d/d)`, :math:`y_i = \langle w, x_i\rangle + N(0, \rho)` and a query;
    all three predictors see the same, the target is seen by none. Tokens and target noise being independent of a
    prediction, errors are measured as :math:`E (f - \langle w, x\rangle)^2 + \rho`: the same mean as with noisy
    targets, at less variance. Standard errors are over prompts, those of s and q by the delta method.

    **The verdict**, for the query, takes everything to three standard errors. "generalises": :math:`|s - 1| \le 1/4`;
    "memorises": :math:`|s| \le 1/4`; "between" in the middle, and two of these if a mark is within the error;
    "neither": beyond the ends, or off the line by more than half the distance, q > 1/4. "cannot tell": the errors cover
    two marks or 1/4 for q; ridge and dMMSE are not known to differ; or the predictor is off the line by their distance,
    and yet nearer to both than half of ridge's distance from 0.

    Parameters
    ----------
    predictor : function (x, y, query) -> predictions, or torch.nn.Module
        Of arrays of shapes (b, l, d), (b, l) and (b, d). It returns the queries' labels, (b,), or at every prefix,
        (b, l + 1): entry m is the label of token m + 1 (the query is token l + 1) predicted from the first m examples.
        That entry m does not depend on later labels is checked.
    d : int
        Token dimension.
    alpha, kappa : float
        l/d and k/d, rounded to the nearest sizes; ``kappa=math.inf``: pretrained on a fresh task for every sequence.
    context_length, n_tasks : int
        Sizes in place of the ratios.
    rho : float
        Label-noise variance, where the signal's is 1. With tokens N(0, I) and noise of standard deviation sigma it is
        ``conventions.UNSCALED.rho(sigma, d)``.
    pretraining_tasks : array of shape (k, d), optional
        The tasks of the pretraining, in place of kappa. Without them they are those of ``rng``, an integer: what
        ``simulate.linear_attention`` and ``prompts.stream_prompts`` pretrain on at that seed and these sizes.
    tasks : {"sphere", "gaussian"}
        Law of fresh tasks (and of the seed's pretraining tasks).
    n_prompts : int
        Prompts of each of the two laws, at least 2.
    convention : {"scaled", "unscaled"}
        "unscaled" is for a predictor pretrained with tokens N(0, I) and labels of variance d: it is given
        :math:`\sqrt d\,x` and :math:`\sqrt d\,y`, and its predictions are divided by :math:`\sqrt d`. Arguments and
        results stay as described here.
    backend : {"numpy", "torch"}, optional
        Kind of array to give; default torch for a torch.nn.Module, else numpy.
    dtype, device : str, optional
        Of these arrays; default those of the module's parameters, else double precision in numpy, single in torch.
    batch_size : int
        Prompts that the predictor gets at a time; results do not depend on it.
    max_bytes : int
        Memory for the work of ridge and dMMSE.
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness; 0 is a seed. The prompts are the "idg" and "icl" splits of `stream_prompts`.

    Returns
    -------
    Probe

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed; or what the predictor returned and what it was to return.
    RuntimeError
        If the predictor fails.
    MemoryError, ImportError
        As in `stream_prompts`.

    References
    ----------
    Raventos, Paul, Chen, Ganguli, 2023 (arXiv:2306.15063): transformers move from dMMSE to ridge as the number of
    tasks grows; distances to both on the two laws of tasks.

    Examples
    --------
    >>> import icltheory as icl
    >>> def half(x, y, query):
    ...     return icl.bayes.ridge(x, y, query, 0.5)   # a ridge ten times too strong
    >>> found = icl.probe(half, d=8, alpha=2.0, kappa=1.0, rho=0.05, rng=0)
    >>> found.verdict.split(":")[0]
    'generalises'
    """
    if one_whole("n_prompts", n_prompts, "prompts of each law") < 2:
        raise ValueError("n_prompts must be at least 2, got 1 (there is no standard error of one)")
    given = None
    if pretraining_tasks is not None:
        if kappa is not None or n_tasks is not None:
            raise ValueError("give pretraining_tasks or their number (kappa, n_tasks), not both")
        given = given_tasks("pretraining_tasks", pretraining_tasks, one_whole("d", d, "token dimension"))
        n_tasks = len(given)
    point = Point.of(
        d=d, alpha=alpha, kappa=kappa, rho=rho, context_length=context_length, n_tasks=n_tasks, n_sequences=n_prompts
    )
    known = _tasks_of_seed(point, tasks, rng) if given is None else given
    chosen = conventions.convention(convention)
    setting = _Setting(point, known, tasks, one_whole("batch_size", batch_size, "prompts at a time"), max_bytes, rng)
    with asking(predictor, scale=float(chosen.scale(d)), backend=backend, dtype=dtype, device=device) as ask:
        idg = None if known is None else _compare(ask, setting, setting.stream("idg"))
        icl = _compare(ask, setting, setting.stream("icl"))
    return Probe(
        d=point.d,
        context_length=point.context_length,
        n_tasks=point.n_tasks,
        rho=point.rho,
        tasks=tasks,
        n_prompts=n_prompts,
        convention=chosen,
        icl=icl,
        idg=icl if idg is None else idg,
    )


def _tasks_of_seed(point: Point, tasks: TaskLaw, rng: RNG) -> Floats | None:
    if np.isinf(point.n_tasks):
        return None
    if rng is None:
        raise ValueError(
            "give pretraining_tasks, or as rng the integer seed of the pretraining: got neither (unknown tasks)"
        )
    return pretraining.pretraining_tasks(d=point.d, n_tasks=int(point.n_tasks), tasks=tasks, rng=rng)


@dataclass(frozen=True)
class _Setting:
    """Where prompts come from, and what the two references make of them."""

    point: Point
    known: Floats | None
    tasks: TaskLaw
    batch_size: int
    max_bytes: int
    rng: Any

    def stream(self, split: Any) -> Iterator[Prompts]:
        point = self.point
        return stream_prompts(
            d=point.d,
            rho=point.rho,
            context_length=point.context_length,
            n_sequences=point.n_sequences,
            n_tasks=None if self.known is not None else point.n_tasks,
            pretraining_tasks=self.known,
            tasks=self.tasks,
            rng=self.rng,
            batch_size=self.batch_size,
            split=split,
        )

    def references(self, batch: Prompts, at: Any) -> tuple[Floats, Floats]:
        """Return the predictions of ridge and dMMSE (nan if there is no list)."""
        prompt, rho = (batch.x, batch.y, batch.query), self.point.rho
        ridge: Floats = bayes.ridge(*prompt, rho, at=at, max_bytes=self.max_bytes)
        if self.known is None:
            return ridge, np.full_like(ridge, np.nan)
        return ridge, bayes.discrete(*prompt, self.known, rho, at=at, max_bytes=self.max_bytes)


def _compare(ask: Ask, setting: _Setting, stream: Iterator[Prompts]) -> Comparison:
    """Ask about all prompts of a stream, and average."""
    parts: list[Floats] = []
    for batch in stream:
        prompt = batch.x, batch.y, batch.query
        found = ask(*prompt)
        every = found.ndim == 2
        if not parts:
            require_memory(
                160.0 * setting.point.n_sequences * (found.shape[1] if every else 1),
                f"probing with {setting.point.n_sequences} prompts",
                "reduce n_prompts or context_length",
            )
            if every:
                require_causal(ask, *prompt)
        signal = np.sum(batch.query * batch.task, axis=1)
        if every:
            signal = np.column_stack([(batch.x @ batch.task[:, :, None])[:, :, 0], signal])
        parts.append(np.stack([found, *setting.references(batch, "next" if every else "query"), signal]))
    return _averages(*np.concatenate(parts, axis=1), rho=setting.point.rho)


def _averages(f: Floats, ridge: Floats, dmmse: Floats, signal: Floats, *, rho: float) -> Comparison:
    """Turn predictions and signals, a prompt a row, into means with standard errors."""
    a, b = f - dmmse, ridge - dmmse
    square = np.mean(b**2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # where ridge is dMMSE there is no line: nan
        s = np.mean(a * b, axis=0) / square
        rest = (a - s * b) ** 2
        q = np.mean(rest, axis=0) / square
        # delta method: the linear terms of s and q; q is least at s, whose error enters at second order only
        s_terms, q_terms = (a - s * b) * b / square, (rest - q * b**2) / square
    return Comparison(
        error=_mean((f - signal) ** 2, rho),
        ridge_error=_mean((ridge - signal) ** 2, rho),
        dmmse_error=_mean((dmmse - signal) ** 2, rho),
        to_ridge=_mean((f - ridge) ** 2),
        to_dmmse=_mean(a**2),
        ridge_to_dmmse=_mean(b**2),
        position=Estimate(value=_plain(s), se=_standard_error(s_terms)),
        off_line=Estimate(value=_plain(q), se=_standard_error(q_terms)),
        ridge_power=_mean(ridge**2),
    )


def _mean(values: Floats, constant: float = 0.0) -> Estimate:
    return Estimate(value=_plain(values.mean(axis=0) + constant), se=_standard_error(values))


def _standard_error(values: Floats) -> Any:
    return _plain(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
