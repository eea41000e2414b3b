"""The methods that engine.py compares, and what it measures of them, each in a process of its own.

python benchmarks/methods.py '["fits", {"method": "lsqr", "d": 40, "tau": 1.5, "ridge": 1e-6, "seed": 0, "repeats": 3}]'
"""

import importlib
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

import icltheory as icl
from icltheory.points import Floats
from icltheory.prompts import Summaries, moments_of_law, sample_summaries
from icltheory.resources import Blas
from icltheory.simulate.experiment import estimated_bytes
from icltheory.simulate.khatri_rao import KhatriRao

TOL = 1e-8
STEPS_D = 64  # the dimension at which steps are counted
_GUESSED_STEPS = 300  # of an iterative method, to foretell its operations
_PYTHON_BYTES = 2e8  # an interpreter with these libraries
_ENOUGH_SECONDS = 10.0  # a method other than icltheory is not repeated after so long, unless told to be


def point_at(d: int, tau: float, ridge: float) -> icl.Point:
    return icl.Point.of(d=d, tau=tau, alpha=1.0, kappa=1.0, rho=0.01, ridge=ridge)


# Methods: from the data and the penalty to Gamma and a note


def fit_icltheory(data: Summaries, penalty: float) -> tuple[Floats, str]:
    gamma, report = icl.simulate.ridge_regression(data.query, data.context, data.target, penalty, tol=TOL)
    return gamma, f"{report.name}, {report.steps} steps" if report.steps else report.name


def materialised(data: Summaries) -> Floats:
    """Return F, n x p."""
    return (data.query[:, :, None] * data.context[:, None, :]).reshape(len(data.target), -1)


def normal_equations(data: Summaries, penalty: float) -> tuple[Floats, Floats]:
    """Return F^T F + mu I and F^T y."""
    features = materialised(data)
    gram = features.T @ features
    gram[np.diag_indices_from(gram)] += penalty
    return gram, features.T @ data.target


def fit_lu(data: Summaries, penalty: float) -> tuple[Floats, str]:
    gram, right = normal_equations(data, penalty)
    return np.asarray(np.linalg.solve(gram, right), dtype=np.float64), ""


def fit_cholesky(data: Summaries, penalty: float) -> tuple[Floats, str]:
    gram, right = normal_equations(data, penalty)
    # the transpose of a symmetric matrix is itself in the order that LAPACK overwrites without a copy
    factor = scipy.linalg.cho_factor(gram.T, overwrite_a=True, check_finite=False)
    return scipy.linalg.cho_solve(factor, right, check_finite=False), ""


def fit_sklearn(data: Summaries, penalty: float, solver: str) -> tuple[Floats, str]:
    ridge = importlib.import_module("sklearn.linear_model").Ridge
    model = ridge(alpha=penalty, fit_intercept=False, solver=solver, tol=TOL, copy_X=False)
    return np.asarray(model.fit(materialised(data), data.target).coef_), ""


def fit_lsqr(data: Summaries, penalty: float) -> tuple[Floats, str]:
    x, r = data.query, data.context
    operator = scipy.sparse.linalg.LinearOperator(
        (len(x), x.shape[1] * r.shape[1]),
        matvec=lambda g: ((x @ g.reshape(x.shape[1], r.shape[1])) * r).sum(axis=1),
        rmatvec=lambda u: (x.T @ (u.reshape(-1, 1) * r)).ravel(),
        dtype=np.float64,
    )
    answer = scipy.sparse.linalg.lsqr(
        operator, data.target, damp=math.sqrt(penalty), atol=TOL, btol=TOL, iter_lim=20_000
    )
    return answer[0], f"{answer[2]} steps" + (", limit reached" if answer[1] == 7 else "")


METHODS: dict[str, Callable[[Summaries, float], tuple[Floats, str]]] = {
    "icltheory": fit_icltheory,
    "cholesky": fit_cholesky,
    "lu": fit_lu,
    "sklearn-cholesky": lambda data, penalty: fit_sklearn(data, penalty, "cholesky"),
    "sklearn-cg": lambda data, penalty: fit_sklearn(data, penalty, "sparse_cg"),
    "lsqr": fit_lsqr,
}


def needs(method: str, point: icl.Point) -> tuple[float, float]:
    """Estimate the bytes and the operations of a method."""
    n, p = point.n_sequences, point.n_parameters
    small = min(n, p) if method == "sklearn-cholesky" else p  # scikit-learn turns to the dual where n < p
    numbers = {
        "cholesky": n * p + p**2,
        "lu": max(n * p + p**2, 2 * p**2),  # the features are gone by the time LU copies
        "sklearn-cholesky": n * p + 3 * small**2,
        "sklearn-cg": n * p,
        "lsqr": 5 * n * point.d,
    }
    memory = estimated_bytes(point) if method == "icltheory" else 8.0 * numbers[method] + _PYTHON_BYTES
    if method in ("icltheory", "sklearn-cg", "lsqr"):
        return memory, 4.0 * n * p * _GUESSED_STEPS
    return memory, 1.0 * n * p * small + small**3 * (2 / 3 if method == "lu" else 1 / 3)


# What runs in a process of its own: numbers in, plain values out


def time_fits(method: str, d: int, tau: float, ridge: float, seed: int, repeats: int | None) -> dict[str, Any]:
    """Time a method, and measure what it found by means that no method shares."""
    point, small = point_at(d, tau, ridge), point_at(16, tau, ridge)
    # warms up both copies of BLAS, and imports what the method needs
    np.linalg.solve(np.eye(256), np.ones(256))
    METHODS[method](sample_summaries(small, "sphere", np.random.default_rng(seed)), 1.0)
    data = sample_summaries(point, "sphere", np.random.default_rng(seed))
    penalty = point.n_sequences / d * ridge
    cpu: list[float] = []
    wall: list[float] = []
    peak = math.nan
    while len(cpu) < (repeats or 3):
        time.sleep(0.1)  # idle BLAS threads spin for a while, on the clock of this process
        started = time.process_time(), time.perf_counter()
        solution, note = METHODS[method](data, penalty)
        cpu.append(time.process_time() - started[0])
        wall.append(time.perf_counter() - started[1])
        peak = peak_memory() if len(cpu) == 1 else peak
        if repeats is None and method != "icltheory" and sum(wall) > _ENOUGH_SECONDS:
            break
    gamma = solution.reshape(d, d + 1)
    return {
        "fits": len(cpu),
        "cpu": float(np.median(cpu)),
        "wall": float(np.median(wall)),
        "peak": peak,
        "residual": relative_residual(data, gamma, penalty),
        "icl": icl.simulate.exact_error(gamma, moments_of_law("sphere", d), point.context_length, point.rho),
        "note": note,
    }


def relative_residual(data: Summaries, gamma: Floats, penalty: float) -> float:
    """Return |F^T (y - F g) - mu g| / |F^T y| in double precision, some rows at a time."""
    right, residual = np.zeros_like(gamma), -penalty * gamma
    for start in range(0, len(data.target), 4096):
        x, r, y = (part[start : start + 4096] for part in (data.query, data.context, data.target))
        right += x.T @ (y[:, None] * r)
        residual += x.T @ ((y - np.einsum("ij,ij->i", x @ gamma, r))[:, None] * r)
    return float(np.linalg.norm(residual) / np.linalg.norm(right))


def peak_memory() -> float:
    """Return the largest resident size of this process so far, in bytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024.0 * int(line.split()[1])
    except OSError:
        pass
    import psutil

    peak = getattr(psutil.Process().memory_info(), "peak_wset", None)  # Windows
    if peak is None:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return float(peak)


def time_products(d: int, tau: float, precision: str) -> dict[str, Any]:
    """Time F^T F vec(G), and the two matrix products in it alone, on the same blocks and threads, by turns."""
    n, rng = round(tau * d * d), np.random.default_rng(0)
    dtype = np.float32 if precision == "float32" else np.float64
    x, r, g = (rng.standard_normal(shape, dtype=dtype) for shape in ((n, d), (n, d + 1), (d, d + 1)))
    features = KhatriRao(x, r)

    def plain(index: int) -> None:
        for _, block, context in features._blocks(index):
            np.matmul(block, g)
            np.matmul(block.transpose(0, 2, 1), context)

    calls: dict[str, Callable[[], object]] = {
        "normal": lambda: features.normal(g),
        "matmul": lambda: features._run(plain),
    }
    best = dict.fromkeys(calls, math.inf)
    rounds, begun = 0, time.perf_counter()
    blas = Blas()
    with features.parallel(blas.threads), blas.limit(1):
        while rounds < 5 or time.perf_counter() - begun < 1.0:
            rounds += 1
            for name, call in calls.items():
                started = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - started)
    return {"n": n} | {name: 4e-9 * n * d * (d + 1) / seconds for name, seconds in best.items()}


def count_steps(tau: float, ridge: float, seed: int) -> dict[str, Any]:
    """Fit by conjugate gradients alone."""
    point = point_at(STEPS_D, tau, ridge)
    data = sample_summaries(point, "sphere", np.random.default_rng(seed))
    penalty = point.n_sequences / point.d * ridge
    try:
        gamma, report = icl.simulate.ridge_regression(
            data.query, data.context, data.target, penalty, method="cg", tol=TOL
        )
    except icl.simulate.SolverError:
        return {"n": point.n_sequences, "steps": None}
    residual = relative_residual(data, gamma, penalty)
    return {
        "n": point.n_sequences,
        "steps": report.steps,
        "condition": report.condition,
        "residual": residual,
        "seconds": report.seconds,
    }


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "fits": time_fits,
    "products": time_products,
    "steps": count_steps,
}


def main() -> None:
    task, arguments = json.loads(sys.argv[1])
    print(json.dumps(TASKS[task](**arguments)))


if __name__ == "__main__":
    main()
