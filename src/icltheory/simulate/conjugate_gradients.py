"""Conjugate gradients with products in single precision and residuals in double."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from icltheory.simulate.khatri_rao import Array

_REFRESH = 1e-4  # the recursive residual is replaced by the true one each time it has fallen by this factor
_LOOK = 32  # steps between two looks at the rate of convergence


@dataclass(frozen=True)
class Iteration:
    """What conjugate gradients arrived at.

    Attributes
    ----------
    solution : array
    steps : int
    met : bool
        Whether the true residual met `tol`.
    residual : float
        Its measure, when it was last computed.
    condition : float
        Ratio of the extreme Ritz values: an estimate, from below, of the condition number of the preconditioned
        matrix, accurate where it matters for the solution.
    """

    solution: Array
    steps: int
    met: bool
    residual: float
    condition: float


def conjugate_gradients(
    product: Callable[[Array], Array],
    fast_product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    *,
    measure: Callable[[Array], float],
    tol: float,
    max_steps: int,
    patience: int | None = None,
    start: Array | None = None,
) -> Iteration:
    r"""Solve N v = b for symmetric positive definite N by preconditioned conjugate gradients.

    Products with search directions use `fast_product` (single precision). Whenever the residual has fallen
    ten-thousandfold it is recomputed with `product` (double precision), the search direction being kept: the error of
    the fast product never accumulates, and convergence goes on as if nothing had happened. Directions are made
    conjugate by the Polak-Ribiere formula, which forgives inexact products.

    Parameters
    ----------
    product, fast_product, precondition : callable
        N v, a cheaper approximation of it, and an approximation of N^{-1} v.
    right : array
        b, of any array library.
    measure : callable
        The size of a residual b - N v, relative to b, by which the answer is judged.
    tol : float
        Stop when the measure of the true residual is at most tol.
    max_steps : int
        Give up after so many steps.
    patience : int, optional
        Give up early when the rate so far foretells more steps than this.
    start : array, optional
        Where to begin; the default is 0.
    """
    solution, residual, z = right * 0.0, right, precondition(right)
    whole = energy = inner(residual, z)
    size = 0.0 if whole == 0.0 else 1.0
    if start is not None:
        solution, residual = start, right - product(start)
        size, z = measure(residual), precondition(residual)
        energy = inner(residual, z)
    direction = z
    first, refreshed, goal = energy, energy, tol**2 * whole
    lengths, betas = [], []
    met, step = size <= tol, 0
    while not met and step < max_steps:
        step += 1
        image = fast_product(direction)
        curvature = inner(direction, image)
        if not curvature > 0.0:
            break
        length = energy / curvature
        solution = solution + length * direction
        previous = residual
        residual = residual - length * image
        z = precondition(residual)
        energy_new = inner(residual, z)
        if energy_new <= max(goal, _REFRESH**2 * refreshed):
            residual = right - product(solution)
            size = measure(residual)
            met = size <= tol
            z = precondition(residual)
            energy_new = refreshed = inner(residual, z)
            goal = min(goal, 0.9 * energy_new * (tol / max(size, tol)) ** 2)
        beta = max(0.0, (energy_new - inner(previous, z)) / energy)
        lengths.append(length)
        betas.append(beta)
        direction = z + beta * direction
        energy = energy_new
        if patience is not None and step % _LOOK == 0 and not met:
            rate = math.log(energy / first) / step
            if rate >= 0.0 or math.log(tol**2 * whole / first) / rate > patience:
                break
    return Iteration(solution, step, met, size, _condition(lengths, betas))


def inner(a: Array, b: Array) -> float:
    """Return the Euclidean inner product of two arrays of one shape."""
    from array_api_compat import array_namespace

    xp = array_namespace(a, b)
    return float(xp.vecdot(xp.reshape(a, (-1,)), xp.reshape(b, (-1,))))


def _condition(lengths: Sequence[float], betas: Sequence[float]) -> float:
    """Return the ratio of the extreme eigenvalues of the Lanczos matrix that the coefficients of the steps make up."""
    from scipy.linalg import eigvalsh_tridiagonal

    if not lengths:
        return 1.0
    a, b = np.array(lengths), np.array(betas)
    diagonal = 1.0 / a
    diagonal[1:] += b[:-1] / a[:-1]
    low, high = (
        eigvalsh_tridiagonal(diagonal, np.sqrt(b[:-1]) / a[:-1], select="i", select_range=(i, i))[0]
        for i in (0, len(a) - 1)
    )
    return float(high / low) if low > 0 else math.inf
