"""One simulation, from sizes to errors: draw the pretraining set, fit Gamma, evaluate it exactly."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import RNG, Floats, Point, Risk, whole
from icltheory.prompts.sampling import Assignment, Summaries, sample_summaries
from icltheory.prompts.tasks import (
    TaskLaw,
    TaskMoments,
    check_law,
    check_task_covariance,
    moments_of_law,
    moments_of_tasks,
)
from icltheory.resources import require_memory
from icltheory.simulate.error import exact_error
from icltheory.simulate.khatri_rao import KhatriRao
from icltheory.simulate.solve import Method, SolverReport, ridge_regression


@dataclass(frozen=True, kw_only=True)
class Simulation(Risk[float]):
    """Measured risk of one trained model.

    Attributes
    ----------
    point : Point
        The sizes and ratios that were realised after rounding.
    test_context_length : int
        Examples in a test prompt.
    gamma : array of shape (d, d + 1)
        The fitted parameters.
    solver : SolverReport
        Which solver ran, its steps, true residual and seconds.
    """

    point: Point
    test_context_length: int
    gamma: Floats = field(repr=False)
    solver: SolverReport


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A point, and how its tasks are drawn, its model fitted and tested: all of a simulation but its random numbers.

    Attributes
    ----------
    point : Point
    law : {"sphere", "gaussian"}
    assignment : {"random", "balanced"}
    covariance, test_covariance : array or None
        Of the pretraining tasks and of the ICL test's; None is the identity.
    test_context_length : int
    method : str
    tol : float
    """

    point: Point
    law: TaskLaw
    assignment: Assignment
    covariance: Floats | None
    test_covariance: Floats | None
    test_context_length: int
    method: Method
    tol: float

    @classmethod
    def of(
        cls,
        point: Point,
        *,
        tasks: TaskLaw,
        assignment: Assignment,
        task_covariance: ArrayLike | None,
        test_task_covariance: ArrayLike | None,
        test_context_length: int | None,
        method: Method,
        tol: float,
    ) -> "Experiment":
        """Check the arguments of a simulation, and that it fits into memory."""
        law = check_law(tasks)
        covariance = check_task_covariance("task_covariance", task_covariance, point.d, law)
        test_covariance = check_task_covariance("test_task_covariance", test_task_covariance, point.d, law)
        require_memory(
            estimated_bytes(point),
            f"this simulation (d = {point.d}, {point.n_sequences} sequences, {point.n_tasks} tasks)",
            "reduce d, tau or kappa",
        )
        return cls(
            point=point,
            law=law,
            assignment=assignment,
            covariance=covariance,
            test_covariance=covariance if test_covariance is None else test_covariance,
            test_context_length=_test_length(test_context_length, point),
            method=method,
            tol=tol,
        )

    def sample(self, rng: np.random.Generator, tasks: Floats | None = None) -> Summaries:
        """Draw a pretraining set, on the given tasks or on fresh ones."""
        covariance = self.covariance if tasks is None else None
        return sample_summaries(self.point, self.law, rng, self.assignment, covariance=covariance, tasks=tasks)

    def fit(self, data: Summaries) -> tuple[Floats, SolverReport]:
        """Fit Gamma."""
        penalty = self.point.n_sequences / self.point.d * self.point.ridge
        return ridge_regression(data.query, data.context, data.target, penalty, method=self.method, tol=self.tol)

    def fresh(self) -> TaskMoments:
        """Return the task moments of the ICL test."""
        return moments_of_law(self.law, self.point.d, covariance=self.test_covariance)

    def seen(self, tasks: Floats | None) -> TaskMoments:
        """Return the task moments of the IDG test: the pretraining tasks, or their law if every prompt has its own."""
        if tasks is None:
            return moments_of_law(self.law, self.point.d, covariance=self.covariance)
        return moments_of_tasks(tasks)

    def error(self, gamma: Floats, moments: TaskMoments) -> float:
        """Return the exact error of Gamma on tasks of these moments."""
        return exact_error(gamma, moments, self.test_context_length, self.point.rho)


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
    task_covariance: ArrayLike | None = None,
    test_task_covariance: ArrayLike | None = None,
    test_context_length: int | None = None,
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
        Law of the tasks: uniform with :math:`|w|^2 = d`, or :math:`N(0, C)`.
    assignment : {"random", "balanced"}
        Each prompt's task is chosen uniformly at random, or all tasks have equally many prompts (to within one), as in
        the published runs. The two agree as d -> infinity.
    task_covariance : array of shape (d,) or (d, d), optional
        C of Gaussian pretraining tasks: eigenvalues in the token basis, or a matrix; default the identity. The signal
        variance is its normalised trace, 1 for the spectra of `icltheory.prompts.covariance`.
    test_task_covariance : array of shape (d,) or (d, d), optional
        C of the fresh tasks of the ICL test; default that of training (``np.ones(d)`` is the identity).
    test_context_length : int, optional
        Examples in a prompt of both tests; default that of training.
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
    experiment = Experiment.of(
        point,
        tasks=tasks,
        assignment=assignment,
        task_covariance=task_covariance,
        test_task_covariance=test_task_covariance,
        test_context_length=test_context_length,
        method=method,
        tol=tol,
    )
    data = experiment.sample(np.random.default_rng(rng))
    gamma, solver = experiment.fit(data)
    icl, idg = (experiment.error(gamma, moments) for moments in (experiment.fresh(), experiment.seen(data.tasks)))
    residual = data.target - KhatriRao(data.query, data.context).forward(gamma)
    return Simulation(
        icl=icl,
        idg=idg,
        gap=icl - idg,
        train=float(np.mean(residual**2)),
        point=point,
        test_context_length=experiment.test_context_length,
        gamma=gamma,
        solver=solver,
    )


def _test_length(length: int | None, point: Point) -> int:
    if length is None:
        return point.context_length
    checked = whole("test_context_length", length, "examples in a test prompt")
    if checked.ndim:
        raise TypeError(f"test_context_length must be one integer, got an array of shape {checked.shape}")
    return int(checked)


def estimated_bytes(point: Point) -> float:
    """Return the memory that drawing and fitting take with the iterative solver."""
    d, n = point.d, point.n_sequences
    tasks = 0.0 if np.isinf(point.n_tasks) else 3.0 * point.n_tasks * d * 8
    summaries = n * (2 * d + 1) * (8 + 4)  # in double and in single precision
    return tasks + summaries + 10.0 * 8 * (n + d * d) + 2e8
