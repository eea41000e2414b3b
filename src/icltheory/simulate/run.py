"""One simulation, from sizes to errors: draw the pretraining set, fit Gamma, evaluate it exactly."""

from dataclasses import dataclass, field

import numpy as np

from icltheory.points import Floats, Point, Risk
from icltheory.prompts.sampling import Assignment, sample_summaries
from icltheory.prompts.tasks import TaskLaw, check_law, moments_of_law, moments_of_tasks
from icltheory.resources import require_memory
from icltheory.simulate.error import exact_error
from icltheory.simulate.khatri_rao import KhatriRao
from icltheory.simulate.solve import Method, SolverReport, ridge_regression

RNG = int | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None


@dataclass(frozen=True, kw_only=True)
class Simulation(Risk[float]):
    """Measured risk of one trained model.

    Attributes
    ----------
    point : Point
        The sizes and ratios that were realised after rounding.
    gamma : array of shape (d, d + 1)
        The fitted parameters.
    solver : SolverReport
        Which solver ran, its steps, true residual and seconds.
    """

    point: Point
    gamma: Floats = field(repr=False)
    solver: SolverReport


def linear_attention(
    *,
    d: int,
    tau: float | None = None,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    ridge: float = 0.0,
    context_length: int | None = None,
    n_sequences: int | None = None,
    n_tasks: float | None = None,
    tasks: TaskLaw = "sphere",
    assignment: Assignment = "random",
    rng: RNG = None,
    method: Method = "auto",
    tol: float = 1e-8,
) -> Simulation:
    r"""Simulate in-context linear regression by linear attention at finite d.

    Tokens :math:`x_i \sim N(0, I_d/d)`, labels :math:`y_i = \langle w, x_i\rangle + N(0, \rho)`; each of n prompts of
    l examples uses one of k tasks, chosen uniformly. The model is
    :math:`\hat y = \langle \Gamma, x_{l+1} r^\top \rangle`,
    :math:`r = [\frac dl \sum y_i x_i^\top, \frac1l \sum y_i^2]`, fitted by

    .. math:: \hat\Gamma = \arg\min_\Gamma \sum_{\mu\le n} (y^\mu - \langle\Gamma, H^\mu\rangle)^2
              + \frac nd \lambda \|\Gamma\|_F^2 .

    Prompts are drawn exactly in O(d) each; both test errors are exact expectations, no test prompt is drawn. The
    cost is O(n d^2) a solver step and O(n d) memory.

    Parameters
    ----------
    d : int
        Token dimension.
    tau, alpha, kappa : float
        n/d^2, l/d and k/d, rounded to the nearest sizes; ``kappa=math.inf`` draws a fresh task for every prompt.
    n_sequences, context_length, n_tasks : int
        Sizes in place of the ratios.
    rho : float
        Label-noise variance.
    ridge : float, default 0
        Penalty lambda; 0 gives the least-squares fit, of minimum norm below the threshold n = d(d+1).
    tasks : {"sphere", "gaussian"}
        Law of the tasks: uniform with :math:`|w|^2 = d`, or :math:`N(0, I_d)`.
    assignment : {"random", "balanced"}
        Each prompt's task is chosen uniformly at random, or all tasks have equally many prompts (to within one), as in
        the published runs. The two agree as d -> infinity.
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness; the same seed (0 included) gives the same draws, and results that agree to 1e-10 for
        any number of threads.
    method : {"auto", "cg", "dual", "primal", "svd"}
        Solver, see `icltheory.simulate.ridge_regression`.
    tol : float
        Relative residual required of conjugate gradients; the errors then carry a relative error of about as much.

    Returns
    -------
    Simulation

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.
    MemoryError
        Before anything large is allocated, with the estimate.
    SolverError
        If the fit did not reach `tol`.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751). The sampler and the exact
    error are this project's own.

    Examples
    --------
    >>> import icltheory as icl
    >>> sim = icl.simulate.linear_attention(d=20, tau=2.0, alpha=1.0, kappa=0.5, rho=0.01, ridge=0.1, rng=0)
    >>> law = icl.theory.linear_attention(**sim.point.ratios())
    >>> bool(abs(sim.icl / law.icl - 1) < 0.2)   # d = 20 is not infinity
    True
    """
    point = Point.of(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        rho=rho,
        ridge=ridge,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    law = check_law(tasks)
    require_memory(
        estimated_bytes(point),
        f"this simulation (d = {d}, {point.n_sequences} sequences, {point.n_tasks} tasks)",
        "reduce d, tau or kappa",
    )
    data = sample_summaries(point, law, np.random.default_rng(rng), assignment)
    penalty = point.n_sequences / d * point.ridge
    gamma, solver = ridge_regression(data.query, data.context, data.target, penalty, method=method, tol=tol)
    fresh = moments_of_law(law, d)
    seen = fresh if data.tasks is None else moments_of_tasks(data.tasks)
    icl, idg = (exact_error(gamma, moments, point.context_length, point.rho) for moments in (fresh, seen))
    residual = data.target - KhatriRao(data.query, data.context).forward(gamma)
    return Simulation(
        icl=icl,
        idg=idg,
        gap=icl - idg,
        train=float(np.mean(residual**2)),
        point=point,
        gamma=gamma,
        solver=solver,
    )


def estimated_bytes(point: Point) -> float:
    """Return the memory that drawing and fitting take with the iterative solver."""
    d, n = point.d, point.n_sequences
    tasks = 0.0 if np.isinf(point.n_tasks) else 3.0 * point.n_tasks * d * 8
    summaries = n * (2 * d + 1) * (8 + 4)  # in double and in single precision
    return tasks + summaries + 10.0 * 8 * (n + d * d) + 2e8
