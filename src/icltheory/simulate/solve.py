"""Ridge regression on Khatri-Rao features: which solver runs, and a report of how well it did."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.points import Floats
from icltheory.resources import available_memory, blas_threads, gigabytes, require_memory
from icltheory.simulate.conjugate_gradients import Iteration, conjugate_gradients
from icltheory.simulate.khatri_rao import Array, KhatriRao

Direct = Literal["dual", "primal", "svd"]
Method = Literal["auto", "cg", "dual", "primal", "svd"]
METHODS = ("auto", "cg", "dual", "primal", "svd")

_SMALL = 2e9  # a direct solve of so few operations is taken at once
_ROUNDING = 1e-6  # a direct solver is as good as rounding lets it be, but no worse than this
_LONGEST = 20_000  # steps of conjugate gradients where no direct solver fits into memory


class SolverError(ArithmeticError):
    """No solver reached the requested residual."""


@dataclass(frozen=True, kw_only=True)
class SolverReport:
    r"""How a fit was found.

    Attributes
    ----------
    name : str
        "cg" (conjugate gradients), "dual" or "primal" (Cholesky), or "svd".
    steps : int
        Steps of conjugate gradients spent, also where a direct solver then took over; 0 if none.
    residual : float
        :math:`|F^\top (y - F g) - \mu g| / |F^\top y|`, computed in double precision at the answer.
    seconds : float
        Wall time.
    """

    name: str
    steps: int
    residual: float
    seconds: float


def ridge_regression(
    x: Array,
    r: Array,
    target: Array,
    penalty: float,
    *,
    method: Method = "auto",
    tol: float = 1e-8,
    max_steps: int | None = None,
) -> tuple[Floats, SolverReport]:
    r"""Fit :math:`\hat G = \arg\min_G \sum_i (y_i - x_i^\top G r_i)^2 + \mu \|G\|_F^2`.

    Parameters
    ----------
    x, r : arrays of shape (n, d) and (n, m)
        The two factors of the features.
    target : array of shape (n,)
        y.
    penalty : float
        mu >= 0; at 0 the minimum-norm solution.
    method : {"auto", "cg", "dual", "primal", "svd"}
        "auto" takes a Cholesky factor where that is quick, else conjugate gradients; where these are slower than the
        factor would be (near n = p with a small penalty), it takes the factor after all, and where that breaks down
        the SVD.
    tol : float
        Relative residual that conjugate gradients must reach.
    max_steps : int, optional
        Limit on their steps.

    Returns
    -------
    G : array of shape (d, m)
    report : SolverReport

    Raises
    ------
    SolverError
        If no solver that fits into memory reached the tolerance (a direct one: 1e-6 at least, and as good as rounding
        allows). No unconverged answer is ever returned.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    if not penalty >= 0:
        raise ValueError(f"penalty must be >= 0, got {penalty}")
    if not tol > 0:
        raise ValueError(f"tol must be > 0, got {tol}")
    from threadpoolctl import threadpool_limits

    started = time.perf_counter()
    features = KhatriRao(x, r)
    n, p = features.shape
    factor: Direct = "dual" if n < p else "primal"
    if method in ("dual", "primal", "svd"):
        factor = method
        require_memory(_bytes(method, n, p), f"method='{method}'", "use method='cg'")
    threads = blas_threads()
    # products of blocks are too small for threaded BLAS: whole panels go to threads instead
    with features.parallel(threads), threadpool_limits(1, user_api="blas"):
        problem = _Problem(features, target, features.adjoint(target), penalty, tol, started)
        steps = 0
        if method == "cg" or (method == "auto" and _operations(factor, n, p) > _SMALL):
            fallback = method == "auto" and _bytes(factor, n, p) < available_memory()
            limit = max_steps or _LONGEST
            if fallback:  # no more steps than the factor would cost
                limit = min(limit, int(_operations(factor, n, p) / (4.0 * n * p)))
            answer = _iterate(problem, limit, patience=2 * limit if fallback else None, threads=threads)
            steps = answer.steps
            if answer.met:
                return problem.report(answer.solution, "cg", steps)
            if not fallback:
                raise problem.failure(
                    f"conjugate gradients did not reach a relative residual of {tol:g} in {steps} steps",
                    f"raise the ridge, max_steps or tol, or use method='{factor}', which needs "
                    f"{gigabytes(_bytes(factor, n, p))}",
                )
    return _factorise(problem, (factor, "svd") if method == "auto" else (factor,), steps)


@dataclass(frozen=True)
class _Problem:
    """A fit, and how an answer to it is judged."""

    features: KhatriRao
    target: Array
    right: Array  # F^T y
    penalty: float
    tol: float
    started: float

    def relative(self, residual: Array) -> float:
        """Return |F^T (y - F g) - mu g| relative to |F^T y|."""
        return float(np.linalg.norm(residual)) / (float(np.linalg.norm(self.right)) or 1.0)

    def report(self, g: Array, name: str, steps: int) -> tuple[Floats, SolverReport]:
        """Measure the residual at the answer."""
        residual = self.features.adjoint(self.target - self.features.forward(g)) - self.penalty * g
        report = SolverReport(
            name=name, steps=steps, residual=self.relative(residual), seconds=time.perf_counter() - self.started
        )
        return g.astype(np.float64, copy=False), report

    def failure(self, what: str, advice: str) -> SolverError:
        """Return an error that says what happened, at which sizes, and what to do."""
        n, p = self.features.shape
        return SolverError(f"{what} (n = {n}, p = d(d+1) = {p}, penalty = {self.penalty:g}); {advice}")


def _iterate(problem: _Problem, max_steps: int, patience: int | None, threads: int) -> Iteration:
    """Run conjugate gradients on the normal equations (n >= p) or on the dual system (n < p)."""
    features, penalty = problem.features, problem.penalty
    n, p = features.shape
    # single precision ends at 1e38, and a product of three factors must stay below it
    single = np.abs(features.r).max() * np.abs(features.x).max() * np.abs(problem.target).max() < 1e12
    fast = features.as_type(np.float32 if single else np.float64)
    with fast.parallel(threads):
        if n >= p:
            # F^T F is close to (n/d) I (x) E[r r^T]: whitening r alone removes the spread of the task covariance
            sample = features.r.T @ features.r / features.x.shape[1]
            whiten = np.linalg.inv(sample + penalty * np.eye(len(sample)))
            return conjugate_gradients(
                lambda g: features.normal(g) + penalty * g,
                lambda g: fast.normal(g.astype(fast.x.dtype)) + penalty * g,
                lambda g: g @ whiten,
                problem.right,
                measure=problem.relative,
                tol=problem.tol,
                max_steps=max_steps,
                patience=patience,
            )
        # the dual system keeps g = F^T a in the row space, where the minimum-norm solution lives
        rows = features.row_norms() + penalty
        answer = conjugate_gradients(
            lambda a: features.forward(features.adjoint(a)) + penalty * a,
            lambda a: fast.forward(fast.adjoint(a.astype(fast.x.dtype))) + penalty * a,
            lambda a: a / rows,
            problem.target,
            measure=lambda residual: problem.relative(features.adjoint(residual)),
            tol=problem.tol,
            max_steps=max_steps,
            patience=patience,
        )
    return Iteration(features.adjoint(answer.solution), answer.steps, answer.met)


def _factorise(problem: _Problem, names: Sequence[Direct], steps: int) -> tuple[Floats, SolverReport]:
    """Take the first of the direct solvers that succeeds."""
    from threadpoolctl import threadpool_limits

    from icltheory.simulate import direct  # it needs scipy.linalg, half of the import time of this package

    solvers = {"dual": direct.dual, "primal": direct.primal, "svd": direct.svd}
    n, p = problem.features.shape
    trouble = ""
    for name in names:
        if _bytes(name, n, p) > available_memory():
            trouble += f"{name} needs {gigabytes(_bytes(name, n, p))} of memory; "
            continue
        try:
            # a second thread only delays a small factorisation
            with threadpool_limits(1 if _operations(name, n, p) <= _SMALL else None, user_api="blas"):
                solution = solvers[name](problem.features, problem.target, problem.penalty)
        except ArithmeticError as error:
            trouble += f"{name}: {error}; "
            continue
        g, report = problem.report(solution, name, steps)
        if report.residual <= max(problem.tol, _ROUNDING):
            return g, report
        trouble += f"{name} left a relative residual of {report.residual:.1e}; "
    raise problem.failure(f"no direct solver succeeded: {trouble.rstrip('; ')}", "raise the ridge")


def _bytes(method: Direct, n: int, p: int) -> float:
    """Return the memory that a direct solver takes: its Gram matrix, or the features and their factors."""
    return 8.0 * {"dual": 1.1 * n**2, "primal": 1.1 * p**2, "svd": 3.0 * n * p + 2.0 * min(n, p) ** 2}[method]


def _operations(method: Direct, n: int, p: int) -> float:
    """Return about how many operations a direct solver takes."""
    if method == "svd":
        return 20.0 * n * p * min(n, p)
    # one triangle of the Gram matrix, and its factor
    return n**3 / 3 + 4 * n**2 * p**0.5 if method == "dual" else p**3 / 3 + n * p**2
