"""Which numbers of pretraining tasks give the error of linear attention a minimum in the context length."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Booleans, Floats, check
from icltheory.theory.context_limits import ridgeless_tau
from icltheory.theory.optimum import stationary_points

_SCAN = 240  # values of kappa
_BISECTIONS = 36


@dataclass(frozen=True, kw_only=True)
class NonMonotone:
    """Intervals of kappa in which a best context length exists; one more axis than the arguments, padded with NaN.

    Attributes
    ----------
    lower, upper : array of shape (..., m)
        Ends of each interval, in increasing order. An end that lies outside the range searched is replaced by the end
        of that range.
    certified : array of bool, shape (...)
        Whether the number of minima is proved at all values of kappa of the grid. (On an edge it cannot be: there two
        stationary points merge, or one reaches an end.)
    bounds, kappa_range : tuple of float
        The range of alpha, and that of kappa which was searched.
    """

    lower: Floats
    upper: Floats
    certified: Booleans
    bounds: tuple[float, float]
    kappa_range: tuple[float, float]


def non_monotone_boundary(
    *,
    tau: ArrayLike,
    rho: ArrayLike,
    target: str = "icl",
    bounds: tuple[float, float] = (0.0, math.inf),
    kappa_range: tuple[float, float] = (1e-3, 1e3),
) -> NonMonotone:
    r"""Return the intervals of kappa in which the ridgeless error has a local minimum in alpha, inside the bounds.

    The answer depends on the range of alpha: at an edge of the region the minimum wanders off to alpha = inf, so that
    a shorter range gives a smaller region. With all context lengths allowed those edges are where the coefficient of
    1/alpha of `icltheory.theory.limits.long_context` changes sign, :math:`c = 1/\kappa`:

    .. math::
        \text{ICL}, \tau > 1: \quad & (\tau-1) w^3 + (1+\rho) w^2 = \rho, \quad w = 1 - c \\
        \text{IDG}, \tau < 1, \kappa > \tau: \quad & 2c\rho(1-\tau) = (1-c\tau)^2 (2-\tau-c\tau) \\
        \text{IDG}, \tau < 1, \kappa < \tau: \quad & 2\kappa\rho(1-\tau) = (\tau-\kappa)^2 (1-\kappa) .

    For tau > 1 the error on the pretraining tasks has no minimum at any kappa: it only falls.

    Edges are found by bisection in kappa (to rounding) between 240 values, equally spaced in the logarithm, at each of
    which the minima are counted for certain; an interval between two neighbouring values, 6 % apart in the default
    range, would be missed.

    Parameters
    ----------
    tau, rho : array_like
        Broadcast together; tau = 1 is refused, ``math.inf`` is allowed.
    target : {"icl", "idg"}
        Error on fresh or on the pretraining tasks.
    bounds : (float, float), default (0, inf)
        Range of alpha, its ends excluded.
    kappa_range : (float, float), default (1e-3, 1e3)
        Range of kappa to search.

    Returns
    -------
    NonMonotone

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751), Fig. 3.

    Examples
    --------
    >>> import icltheory as icl
    >>> edge = icl.theory.non_monotone_boundary(tau=20.0, rho=[0.1, 0.5])
    >>> edge.lower[:, 0], edge.upper[:, 0].round(4)
    (array([0.001, 0.001]), array([1.1857, 1.3761]))
    """
    tau, rho = np.broadcast_arrays(ridgeless_tau(tau), check("rho", rho))
    first, last = (float(check("kappa", end)) for end in kappa_range)
    if not first < last < math.inf:
        raise ValueError(f"kappa_range must be two finite values of tasks/d with low < high, got {kappa_range!r}")

    def exists(kappa: Floats, owner: np.ndarray) -> tuple[Booleans, Booleans]:
        found = stationary_points(
            tau=tau.ravel()[owner], kappa=kappa, rho=rho.ravel()[owner], target=target, bounds=bounds
        )
        return np.any(found.minimum, axis=-1).reshape(kappa.shape), found.certified

    grid = np.geomspace(first, last, _SCAN)
    everyone = np.repeat(np.arange(tau.size), _SCAN)
    scan, certified = (part.reshape(tau.size, _SCAN) for part in exists(np.tile(grid, tau.size), everyone))
    owner, position = np.nonzero(scan[:, 1:] != scan[:, :-1])
    below, above, before = grid[position], grid[position + 1], scan[owner, position]
    for _ in range(_BISECTIONS):
        middle = np.sqrt(below * above)
        same = exists(middle, owner)[0] == before
        below, above = np.where(same, middle, below), np.where(same, above, middle)
    edge = np.sqrt(below * above)
    starts = [np.concatenate([[first] * int(scan[i, 0]), edge[(owner == i) & ~before]]) for i in range(tau.size)]
    ends = [np.concatenate([edge[(owner == i) & before], [last] * int(scan[i, -1])]) for i in range(tau.size)]
    width = max((len(row) for row in starts), default=0)

    def laid_out(values: list[Floats]) -> Floats:
        table = np.array([np.pad(row, (0, width - len(row)), constant_values=np.nan) for row in values])
        return table.reshape(*tau.shape, width)

    return NonMonotone(
        lower=laid_out(starts),
        upper=laid_out(ends),
        certified=np.asarray(np.all(certified, axis=-1)).reshape(tau.shape),
        bounds=(float(bounds[0]), float(bounds[1])),
        kappa_range=(first, last),
    )
