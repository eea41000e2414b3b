"""Ridge regression on Khatri-Rao features: which solver runs, and a report of how well it did."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from icltheory.resources import Blas, available_memory, gigabytes, require_memory
from icltheory.simulate.conjugate_gradients import Iteration, conjugate_gradients
from icltheory.simulate.khatri_rao import Array, KhatriRao, to_numpy

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
    r"""How a fit was found: its certificate.

    Attributes
    ----------
    name : str
        "cg" (conjugate gradients), "dual" or "primal" (Cholesky), "svd", or "path" (a space shared by many ridges).
    steps : int
        Steps of conjugate gradients spent, also where a direct solver then took over; 0 if none.
    residual : float
        :math:`|F^\top (y - F g) - \mu g| / |F^\top y|`, computed in double precision at the answer.
    condition : float
        Estimate of the condition number of the matrix that the solver worked with: the preconditioned normal
        equations ("cg", from the extreme Ritz values), a Gram matrix plus penalty ("dual", "primal", "path"), or F
        itself ("svd"). Times the residual it bounds the relative error of the parameters, up to the norm used.
    seconds : float
        Wall time.
    """

    name: str
    steps: int
    residual: float
    condition: float
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
    start: Array | None = None,
) -> tuple[Array, SolverReport]:
    r"""Fit :math:`\hat G = \arg\min_G \sum_i (y_i - x_i^\top G r_i)^2 + \mu \|G\|_F^2`.

    Parameters
    ----------
    x, r : arrays of shape (n, d) and (n, m)
        The two factors of the features, in double precision: numpy arrays, or those of another library that
        `array_api_compat` knows (a PyTorch tensor on a GPU, say), with which conjugate gradients then run.
    target : array of shape (n,)
        y.
    penalty : float
        mu >= 0; at 0 the minimum-norm solution.
    method : {"auto", "cg", "dual", "primal", "svd"}
        "auto" takes a Cholesky factor where that is quick, else conjugate gradients; where these are slower than the
        factor would be (near n = p with a small penalty), it takes the factor after all, and where that breaks down
        the SVD. Direct solvers always run on the host.
    tol : float
        Relative residual that conjugate gradients must reach.
    max_steps : int, optional
        Limit on their steps.
    start : array of shape (d, m), optional
        A guess of G, from which conjugate gradients begin if n >= dm; direct solvers and the dual system ignore it.

    Returns
    -------
    G : array of shape (d, m)
        Of the library and on the device of x.
    report : SolverReport

    Raises
    ------
    SolverError
        If no solver that fits into memory reached the tolerance (a direct one: 1e-6 at least, and as good as rounding
        allows). No unconverged answer is ever returned.
    """
    _check(method, penalty, tol)
    blas = Blas()
    # products of blocks are too small for threaded BLAS: whole panels go to threads instead
    with blas.limit(1):
        problem = Problem.of(x, r, target, penalty, tol)
        with problem.parallel(blas.threads):
            return solve(problem, blas, method=method, max_steps=max_steps, start=start)


def solve(
    problem: "Problem",
    blas: Blas,
    *,
    method: Method = "auto",
    max_steps: int | None = None,
    start: Array | None = None,
) -> tuple[Array, SolverReport]:
    """Do what `ridge_regression` says for a problem that is set up, inside its `parallel` context."""
    n, p = problem.features.shape
    factor: Direct = "dual" if n < p else "primal"
    if method in ("dual", "primal", "svd"):
        factor = method
        require_memory(_bytes(method, n, p), f"method='{method}'", "use method='cg'")
    steps = 0
    if method == "cg" or (method == "auto" and _operations(factor, n, p) > _SMALL):
        fallback = method == "auto" and _bytes(factor, n, p) < available_memory()
        limit = max_steps or _LONGEST
        if fallback:  # no more steps than the factor would cost
            limit = min(limit, int(_operations(factor, n, p) / (4.0 * n * p)))
        answer = _iterate(problem, limit, 2 * limit if fallback else None, start)
        steps = answer.steps
        if answer.met:
            return answer.solution, problem.certificate("cg", steps, answer.residual, answer.condition)
        if not fallback:
            raise problem.failure(
                f"conjugate gradients did not reach a relative residual of {problem.tol:g} in {steps} steps "
                f"(condition above {answer.condition:.1e})",
                f"raise the ridge, max_steps or tol, or use method='{factor}', which needs "
                f"{gigabytes(_bytes(factor, n, p))}",
            )
    return _factorise(problem, (factor, "svd") if method == "auto" else (factor,), steps, blas)


@dataclass(frozen=True)
class Problem:
    """A fit, and how an answer to it is judged."""

    features: KhatriRao
    fast: KhatriRao  # the same in single precision
    target: Array
    right: Array  # F^T y
    size: float  # its norm
    penalty: float
    tol: float
    started: float

    @classmethod
    def of(cls, x: Array, r: Array, target: Array, penalty: float, tol: float) -> "Problem":
        """Set up a problem."""
        started = time.perf_counter()
        features = KhatriRao(x, r)
        right = features.adjoint(target)
        size = float(features.xp.linalg.vector_norm(right)) or 1.0
        return cls(features, _single(features, target), target, right, size, penalty, tol, started)

    @contextmanager
    def parallel(self, threads: int) -> Iterator[None]:
        """Let products use so many threads inside this context."""
        with self.features.parallel(threads), self.fast.parallel(threads):
            yield

    def with_penalty(self, penalty: float) -> "Problem":
        """Return the problem for another penalty, its clock set to now."""
        return replace(self, penalty=penalty, started=time.perf_counter())

    def relative(self, residual: Array) -> float:
        """Return the norm of a residual F^T (y - F g) - mu g relative to that of F^T y."""
        return float(self.features.xp.linalg.vector_norm(residual)) / self.size

    def residual(self, g: Array) -> float:
        """Return the relative residual of the normal equations at g."""
        return self.relative(self.features.adjoint(self.target - self.features.forward(g)) - self.penalty * g)

    def certificate(self, name: str, steps: int, residual: float, condition: float) -> SolverReport:
        """Return the report of an answer found now."""
        seconds = time.perf_counter() - self.started
        return SolverReport(name=name, steps=steps, residual=residual, condition=condition, seconds=seconds)

    def failure(self, what: str, advice: str) -> SolverError:
        """Return an error that says what happened, at which sizes, and what to do."""
        n, p = self.features.shape
        return SolverError(f"{what} (n = {n}, p = d(d+1) = {p}, penalty = {self.penalty:g}); {advice}")

    def whitening(self) -> Array:
        """Return (R^T R/d + mu)^{-1}, (m x m): F^T F is close to (n/d) I (x) E[r r^T], so that it whitens that."""
        f, xp = self.features, self.features.xp
        sample = f.r.T @ f.r / f.shape_of_g[0]
        return xp.linalg.inv(sample + self.penalty * xp.eye(f.shape_of_g[1], dtype=f.r.dtype, device=f.device))


def _single(features: KhatriRao, target: Array) -> KhatriRao:
    """Return the features in single precision, or as they are where products could overflow it."""
    xp = features.xp
    # single precision ends at 1e38, and a product of three factors must stay below it
    largest = math.prod(float(xp.max(xp.abs(part))) for part in (features.r, features.x, target))
    return features.as_type(xp.float32) if largest < 1e12 else features


def _check(method: str, penalty: float, tol: float) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    if not penalty >= 0:
        raise ValueError(f"penalty must be >= 0, got {penalty}")
    if not tol > 0:
        raise ValueError(f"tol must be > 0, got {tol}")


def _iterate(problem: Problem, max_steps: int, patience: int | None, start: Array | None) -> Iteration:
    """Run conjugate gradients on the normal equations (n >= p) or on the dual system (n < p)."""
    features, fast, penalty, xp = problem.features, problem.fast, problem.penalty, problem.features.xp
    precision = fast.x.dtype
    if features.shape[0] >= features.shape[1]:
        whiten = problem.whitening()
        return conjugate_gradients(
            lambda g: features.normal(g) + penalty * g,
            lambda g: xp.astype(fast.normal(xp.astype(g, precision)), g.dtype) + penalty * g,
            lambda g: g @ whiten,
            problem.right,
            measure=problem.relative,
            tol=problem.tol,
            max_steps=max_steps,
            patience=patience,
            start=start,
        )
    # the dual system keeps g = F^T a in the row space, where the minimum-norm solution lives
    rows = features.row_norms() + penalty
    answer = conjugate_gradients(
        lambda a: features.forward(features.adjoint(a)) + penalty * a,
        lambda a: xp.astype(fast.forward(fast.adjoint(xp.astype(a, precision))), a.dtype) + penalty * a,
        lambda a: a / rows,
        problem.target,
        measure=lambda residual: problem.relative(features.adjoint(residual)),
        tol=problem.tol,
        max_steps=max_steps,
        patience=patience,
    )
    return replace(answer, solution=features.adjoint(answer.solution))


def _factorise(problem: Problem, names: Sequence[Direct], steps: int, blas: Blas) -> tuple[Array, SolverReport]:
    """Take the first of the direct solvers that succeeds, on the host."""
    from icltheory.simulate import direct  # it needs scipy.linalg, half of the import time of this package

    solvers = {"dual": direct.dual, "primal": direct.primal, "svd": direct.svd}
    here = problem if problem.features.on_host else _on_host(problem)
    n, p = here.features.shape
    trouble = ""
    for name in names:
        if _bytes(name, n, p) > available_memory():
            trouble += f"{name} needs {gigabytes(_bytes(name, n, p))} of memory; "
            continue
        try:
            # a second thread only delays a small factorisation
            with blas.limit(1 if _operations(name, n, p) <= _SMALL else blas.threads):
                solution, condition = solvers[name](here.features, here.target, here.penalty)
        except ArithmeticError as error:
            trouble += f"{name}: {error}; "
            continue
        report = here.certificate(name, steps, here.residual(solution), condition)
        if report.residual <= max(here.tol, _ROUNDING):
            return (solution if here is problem else _like(problem, solution)), report
        trouble += f"{name} left a relative residual of {report.residual:.1e}; "
    raise problem.failure(f"no direct solver succeeded: {trouble.rstrip('; ')}", "raise the ridge")


def _on_host(problem: Problem) -> Problem:
    x, r, target = (to_numpy(part) for part in (problem.features.x, problem.features.r, problem.target))
    return replace(Problem.of(x, r, target, problem.penalty, problem.tol), started=problem.started)


def _like(problem: Problem, g: Any) -> Array:
    return problem.features.xp.asarray(g, device=problem.features.device)


def _bytes(method: Direct, n: int, p: int) -> float:
    """Return the memory that a direct solver takes: its Gram matrix, or the features and their factors."""
    return 8.0 * {"dual": 1.1 * n**2, "primal": 1.1 * p**2, "svd": 3.0 * n * p + 2.0 * min(n, p) ** 2}[method]


def _operations(method: Direct, n: int, p: int) -> float:
    """Return about how many operations a direct solver takes."""
    if method == "svd":
        return 20.0 * n * p * min(n, p)
    # one triangle of the Gram matrix, and its factor
    return n**3 / 3 + 4 * n**2 * p**0.5 if method == "dual" else p**3 / 3 + n * p**2
