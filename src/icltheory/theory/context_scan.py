r"""How the error of linear attention with a ridge changes with the context length: its exact slope, on a grid.

With a ridge the error is no ratio of polynomials of small degree (`icltheory.theory.rational`), so that its
stationary points cannot be counted for certain. But at given :math:`\nu = x + \xi` the effective ridge solves a
quadratic, :math:`u M \xi^2 + (1-u)\xi = \lambda` with :math:`u = 1/\tau` and :math:`M = M(\nu)`: the error is an
explicit analytic function of nu, whose derivative a complex step gives to rounding.
"""

import math

import numpy as np
from numpy.typing import NDArray

from icltheory.points import Booleans, Floats
from icltheory.theory.linear_attention import linear_attention
from icltheory.theory.rational import Target

_SHORTEST = 1e-6  # alpha; beyond the ends of the grid the error has all but reached its limits
_LONGEST = 1e3  # times max(1, 1/ridge^2): a ridge tells from alpha of order 1/ridge to the square of that
_A_DECADE = 40
_BISECTIONS = 50
_STEP = 1e-30
_BATCH = 500  # points of the theory at once, each with its grid


def rising(alpha: Floats, tau: Floats, kappa: Floats, rho: Floats, ridge: Floats, target: Target) -> Booleans:
    """Return whether the error rises with the context length there; all arrays broadcast, ridge > 0."""
    xi = linear_attention(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge).effective_ridge
    nu = (1.0 + rho) / alpha + xi
    # alpha grows as nu falls
    return np.asarray(_error(nu * (1.0 + 1j * _STEP), 1.0 / tau, 1.0 / kappa, rho, ridge, target).imag < 0)


def _error(
    nu: NDArray[np.complexfloating],
    u: Floats,
    c: Floats,
    rho: Floats,
    ridge: Floats,
    target: Target,
) -> NDArray[np.complexfloating]:
    """Evaluate the formulas of `linear_attention` at complex nu = x + xi."""
    b = nu + 1.0 - c
    root = np.sqrt(b * b + 4.0 * c * nu)
    t = 2.0 / (nu + 1.0 + c + root)
    m = np.where(b.real >= 0, 2.0 / (b + root), (root - b) / np.where(b.real >= 0, 1.0, 2.0 * c * nu))
    spread = np.sqrt((1.0 - u) ** 2 + 4.0 * u * ridge * m)
    xi = np.where(u <= 1, 2.0 * ridge / (1.0 - u + spread), (u - 1.0 + spread) / np.where(u <= 1, 1.0, 2.0 * u * m))
    x = nu - xi
    t12, t02 = t / root, m * (1.0 + c * m) / root
    t22 = t * (1.0 + (1.0 - 2.0 * t) * c) / root
    idg = (rho + x * t22 + nu * nu * t12) / (ridge / xi + u * xi * (t12 + x * t02))
    if target == "idg":
        return np.asarray(idg)
    excess = t * (c * m) * (2.0 + c * m) / root
    return np.asarray(idg + nu * nu * excess + u * idg * (t * (2.0 * t - 1.0) * c / root + x * excess))


def turns(
    tau: Floats, kappa: Floats, rho: Floats, ridge: Floats, target: Target, bounds: tuple[float, float]
) -> tuple[np.ndarray, Floats, Floats, Booleans]:
    """Return (owner, below, above, rises after) of all sign changes of the slope between grid points in the bounds.

    All arrays of shape (m,), ridge > 0.
    """
    longest = _LONGEST / min(1.0, float(ridge.min(initial=1.0))) ** 2
    low, high = max(bounds[0], _SHORTEST), min(bounds[1], longest, 1e50)
    points = 2 + int(_A_DECADE * math.log10(high / low)) if low < high else 1
    grid = np.geomspace(low, max(low, high), points)
    owners, positions = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)]
    starts = [np.zeros(0, dtype=bool)]
    for first in range(0, len(tau), _BATCH):
        part = slice(first, first + _BATCH)
        up = rising(grid, tau[part, None], kappa[part, None], rho[part, None], ridge[part, None], target)
        owner, position = np.nonzero(up[:, 1:] != up[:, :-1])
        owners.append(first + owner)
        positions.append(position)
        starts.append(up[owner, position])
    owner, position, falls = np.concatenate(owners), np.concatenate(positions), np.concatenate(starts)
    below, above = grid[position], grid[np.minimum(position + 1, points - 1)]
    for _ in range(_BISECTIONS):
        middle = np.sqrt(below * above)
        before = rising(middle, tau[owner], kappa[owner], rho[owner], ridge[owner], target) == falls
        below, above = np.where(before, middle, below), np.where(before, above, middle)
    return owner, below, above, ~falls
