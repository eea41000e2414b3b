"""Conjugate gradients with products in single precision and residuals in double."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from icltheory.simulate.khatri_rao import Array

_REFRESH = 1e-3  # the recursive residual is replaced by the true one each time it has fallen by this factor
_LOOK = 32  # steps between two looks at the rate of convergence


@dataclass(frozen=True)
class Iteration:
    """What conjugate gradients arrived at: the iterate, the steps, and whether the true residual met `tol`."""

    solution: Array
    steps: int
    met: bool


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
) -> Iteration:
    r"""Solve N v = b for symmetric positive definite N by preconditioned conjugate gradients from v = 0.

    Products with search directions use `fast_product` (single precision). Whenever the residual has fallen a
    thousandfold it is recomputed with `product` (double precision), the search direction being kept: the error of
    the fast product never accumulates, and convergence goes on as if nothing had happened. Directions are made
    conjugate by the Polak-Ribiere formula, which forgives inexact products.

    Parameters
    ----------
    product, fast_product, precondition : callable
        N v, a cheaper approximation of it, and an approximation of N^{-1} v.
    right : array
        b.
    measure : callable
        The size of a residual b - N v, relative to b, by which the answer is judged.
    tol : float
        Stop when the measure of the true residual is at most tol.
    max_steps : int
        Give up after so many steps.
    patience : int, optional
        Give up early when the rate so far foretells more steps than this.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    z = precondition(residual)
    direction = z.copy()
    energy = float(np.vdot(residual, z))
    start, refreshed, goal = energy, energy, tol**2 * energy
    step = 0
    if start == 0.0:
        return Iteration(solution, step, True)
    for step in range(1, max_steps + 1):
        image = fast_product(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0.0:
            break
        length = energy / curvature
        solution += length * direction
        previous = residual
        residual = residual - length * image
        z = precondition(residual)
        energy_new = float(np.vdot(residual, z))
        if energy_new <= max(goal, _REFRESH**2 * refreshed):
            residual = right - product(solution)
            size = measure(residual)
            if size <= tol:
                return Iteration(solution, step, True)
            z = precondition(residual)
            energy_new = refreshed = float(np.vdot(residual, z))
            goal = min(goal, 0.9 * energy_new * (tol / size) ** 2)
        beta = max(0.0, (energy_new - float(np.vdot(previous, z))) / energy)
        direction *= beta
        direction += z
        energy = energy_new
        if patience is not None and step % _LOOK == 0:
            rate = np.log(energy / start) / step
            if rate >= 0.0 or np.log(tol**2) / rate > patience:
                break
    return Iteration(solution, step, False)
