"""One-pass training at finite size: stochastic gradient steps on sequences that are never seen again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import RNG, Floats, Point, check, generator, whole
from icltheory.prompts.sampling import Summaries, sample_summaries
from icltheory.prompts.tasks import TaskLaw, check_law, draw_tasks, moments_of_law, moments_of_tasks
from icltheory.resources import require_memory
from icltheory.simulate.error import exact_error
from icltheory.theory.online_edge import stability_edge
from icltheory.theory.step_size import StepSize, as_schedule

_DRAWN = 4096  # sequences drawn at a time; a constant, so that the draws depend on the seed alone
_BLOCK = 64  # sequences whose steps are made at once, in small dimensions
_DIVERGED = 1e8  # mean squared residual, in units of the labels' variance, beyond which a run is given up


class DivergenceError(ArithmeticError):
    """One-pass training blew up: its step size is too large.

    Attributes
    ----------
    t : float
        Time, in sequences/d^2, at which it was given up.
    """

    def __init__(self, message: str, t: float) -> None:
        super().__init__(message, t)
        self.t = t

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, kw_only=True)
class OnlineSimulation:
    """Exact errors along one run of one-pass training.

    Attributes
    ----------
    t : array
        Sequences seen over d^2, after rounding to whole batches; of the shape of the times asked for.
    icl, idg, gap : arrays of that shape
        Error on fresh tasks, on the pretraining tasks, and their difference.
    point : Point
        Sizes and ratios that were realised; its ``n_sequences`` are those of the whole run.
    gamma : array of shape (d, d + 1)
        The parameters at the last of the times.
    """

    t: Floats
    icl: Floats
    idg: Floats
    gap: Floats
    point: Point
    gamma: Floats = field(repr=False)


def online(
    *,
    d: int,
    t: ArrayLike,
    step_size: StepSize,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    ridge: float = 0.0,
    batch_size: int = 1,
    context_length: int | None = None,
    n_tasks: float | None = None,
    tasks: TaskLaw = "sphere",
    rng: RNG = None,
) -> OnlineSimulation:
    r"""Train linear attention by stochastic gradient descent on one pass over fresh sequences, at finite d.

    From :math:`\Gamma = 0`, every batch of b new sequences of the k tasks makes one step

    .. math:: \Gamma \leftarrow \Gamma + \frac{\eta}{d} \Big[ \frac1b \sum_{\mu \in batch}
              (y^\mu - \langle\Gamma, H^\mu\rangle)\, H^\mu - \frac{\lambda}{d}\, \Gamma \Big] , \qquad
              H^\mu = x^\mu r^{\mu\top} .

    The steps are taken exactly, but many at a time: with :math:`\Gamma` at the start of a block, the residuals of the
    block solve a triangular system, since each step changes later residuals only through
    :math:`(x^\mu \cdot x^\nu)(r^\mu \cdot r^\nu)`. The cost is O(d^2) a sequence, hence O(t d^4).

    Parameters
    ----------
    d : int
        Token dimension.
    t : array_like
        Times at which the errors are recorded, in any order: sequences seen/d^2, rounded to whole batches. The run
        ends at the largest. The random numbers do not depend on `t`.
    step_size : float or callable
        :math:`\eta`, or a schedule :math:`\eta(t)`; see `icltheory.theory.stability_edge`.
    alpha, kappa : float
        Context length/d and tasks/d, rounded to the nearest sizes; ``kappa=math.inf`` draws a fresh task for every
        sequence.
    rho : float
        Label-noise variance.
    ridge : float, default 0
        Weight decay lambda.
    batch_size : int, default 1
        Sequences in a step, b.
    context_length, n_tasks : int
        Sizes in place of the ratios.
    tasks : {"sphere", "gaussian"}
        Law of the tasks.
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness (SPEC 7).

    Returns
    -------
    OnlineSimulation

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.
    MemoryError
        Before anything large is allocated.
    DivergenceError
        If the residuals blow up.

    References
    ----------
    The model: Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751). Its one-pass training
    is this project's own; the theory is `icltheory.theory.online`.

    Examples
    --------
    >>> import icltheory as icl
    >>> setting = dict(t=[0.5, 2.0], step_size=0.4, alpha=1.0, kappa=0.5, rho=0.1)
    >>> run, law = icl.simulate.online(d=30, **setting, rng=0), icl.theory.online(**setting)
    >>> bool(abs(run.idg / law.idg - 1).max() < 0.15)   # d = 30 is not infinity
    True
    """
    times, batch, schedule = check("t", t), _batch(batch_size), as_schedule(step_size)
    point = Point.of(
        d=d,
        n_sequences=1,  # until times are rounded to batches
        alpha=alpha,
        kappa=kappa,
        rho=rho,
        ridge=ridge,
        context_length=context_length,
        n_tasks=n_tasks,
    )
    steps = np.round(times * point.d**2 / batch).astype(np.int64)
    point = replace(point, n_sequences=max(1, int(steps.max(initial=0)) * batch))
    law = check_law(tasks)
    require_memory(
        _estimated_bytes(point, batch),
        f"this simulation (d = {d}, {point.n_tasks} tasks, batches of {batch})",
        "reduce d, kappa or batch_size",
    )
    task_stream, stream = generator(rng).spawn(2)
    seen = None if np.isinf(point.n_tasks) else draw_tasks(int(point.n_tasks), d, law, task_stream)
    fresh = moments_of_law(law, d)
    known = fresh if seen is None else moments_of_tasks(seen)
    stops, where = np.unique(steps, return_inverse=True)
    errors, gamma = np.empty((2, len(stops))), np.zeros((d, d + 1))
    for i, gamma in enumerate(_train(point, law, seen, stream, schedule, batch, stops.tolist())):
        errors[:, i] = [exact_error(gamma, moments, point.context_length, point.rho) for moments in (fresh, known)]
    icl, idg = errors[:, where.reshape(steps.shape)]
    return OnlineSimulation(t=steps * batch / d**2, icl=icl, idg=idg, gap=icl - idg, point=point, gamma=gamma)


def _train(
    point: Point,
    law: TaskLaw,
    seen: Floats | None,
    stream: np.random.Generator,
    schedule: Callable[[float], float],
    batch: int,
    stops: Sequence[int],
) -> Iterator[Floats]:
    """Yield Gamma at each of the given numbers of steps, which increase."""
    d, step = point.d, 0
    gamma = np.zeros((d, d + 1))
    # whole batches, and so many sequences that neither the triangular system nor the interpreter takes most of the time
    sizes = [_block_sizes(n, max(1, max(_BLOCK, d // 2) // batch)) for n in np.diff(stops, prepend=0).tolist()]
    blocks = _sequences(point, law, seen, stream, [size * batch for stretch in sizes for size in stretch])
    for stretch in sizes:
        for size in stretch:
            rates = np.array([schedule((step + i) * batch / d**2) for i in range(size)])
            _require_small_decay(point, rates)
            gamma, residual = _advance(gamma, next(blocks), rates, batch, point.ridge)
            step += size
            if not np.mean(residual**2) < _DIVERGED * (1.0 + point.rho):
                raise _divergence(point, step * batch / d**2, rates[-1], batch)
        yield gamma


def _advance(gamma: Floats, block: Summaries, rates: Floats, batch: int, ridge: float) -> tuple[Floats, Floats]:
    r"""Make the steps of a block at once; return (Gamma after it, the residuals at which its steps were made).

    With shrinkage :math:`c_s = 1 - \eta_s \lambda/d^2` of step s, and :math:`P_s = \prod_{s' < s} c_{s'}`, a sequence
    of step s meets :math:`P_s \Gamma + \sum_{\nu} \frac{P_s}{P_{s_\nu + 1}} \frac{\eta_{s_\nu}}{b d}\, e_\nu H^\nu`,
    the sum being over the sequences of earlier steps.
    """
    x, r, y = block.query, block.context, block.target
    d, step = x.shape[1], np.repeat(np.arange(len(rates)), batch)
    shrunk = np.concatenate([[1.0], np.cumprod(1.0 - rates * ridge / d**2)])
    gain = (rates / (batch * d) / shrunk[1:])[step]
    free = y - shrunk[step] * np.einsum("ij,ij->i", x @ gamma, r)
    residual = free if len(rates) == 1 else _residuals(x, r, free, shrunk[step], gain, step)
    after: Floats = shrunk[-1] * (gamma + x.T @ ((gain * residual)[:, None] * r))
    return after, residual


def _residuals(x: Floats, r: Floats, free: Floats, shrunk: Floats, gain: Floats, step: np.ndarray) -> Floats:
    """Solve the unit triangular system for the residuals of a block of several steps."""
    from scipy.linalg import solve_triangular

    coupling = (x @ x.T) * (r @ r.T) * shrunk[:, None] * gain
    coupling[step[:, None] <= step] = 0.0
    solution: Floats = solve_triangular(coupling, free, lower=True, unit_diagonal=True, check_finite=False)
    return solution


def _sequences(
    point: Point, law: TaskLaw, seen: Floats | None, stream: np.random.Generator, sizes: Sequence[int]
) -> Iterator[Summaries]:
    """Yield consecutive stretches of one endless sequence of prompts, of the given sizes."""
    drawing = replace(point, n_sequences=_DRAWN)
    query, context, target = np.empty((0, point.d)), np.empty((0, point.d + 1)), np.empty(0)
    at = 0
    for size in sizes:
        if len(target) - at < size:
            rest = [(query[at:], context[at:], target[at:])]
            while sum(len(part[2]) for part in rest) < size:
                more = sample_summaries(drawing, law, stream, tasks=seen)
                rest.append((more.query, more.context, more.target))
            query, context, target = (np.concatenate(parts) for parts in zip(*rest, strict=True))
            at = 0
        rows = slice(at, at + size)
        yield Summaries(query=query[rows], context=context[rows], target=target[rows], tasks=seen)
        at += size


def _block_sizes(steps: int, most: int) -> list[int]:
    """Cut so many steps into blocks."""
    whole_blocks, rest = divmod(steps, most)
    return [most] * whole_blocks + [rest] * (rest > 0)


def _require_small_decay(point: Point, rates: Floats) -> None:
    """Refuse steps that forget more than half of Gamma: a different regime, and the rescaling would underflow."""
    most = 0.5 * point.d**2
    if np.any(rates * point.ridge > most):
        raise ValueError(
            f"ridge must be at most d^2/(2 step_size) = {most / rates.max():.4g} (each step multiplies Gamma by "
            f"1 - step_size ridge/d^2), got {point.ridge:g}"
        )


def _divergence(point: Point, t: float, rate: float, batch: int) -> DivergenceError:
    edge = float(
        stability_edge(alpha=point.alpha, kappa=point.kappa, rho=point.rho, ridge=point.ridge, batch_size=batch)
    )
    return DivergenceError(
        f"one-pass training diverged: at t = {t:.3g} the residuals are {np.sqrt(_DIVERGED):.0e} times the labels. "
        f"step_size is {rate:.4g} there; as d -> infinity it must be below {edge:.4g} for this point (stability_edge), "
        f"and at d = {point.d} somewhat lower: use a smaller step_size or a larger batch_size",
        t,
    )


def _estimated_bytes(point: Point, batch: int) -> float:
    d = point.d
    tasks = 0.0 if np.isinf(point.n_tasks) else 3.0 * point.n_tasks * d * 8
    return tasks + (3.0 * _DRAWN + 4.0 * batch) * (2 * d + 2) * 8 + 12.0 * 8 * (d + 1) ** 2


def _batch(batch_size: int) -> int:
    array = whole("batch_size", batch_size, "sequences in a step")
    if array.ndim:
        raise TypeError(f"batch_size must be one integer, got an array of shape {array.shape}")
    return int(array)
