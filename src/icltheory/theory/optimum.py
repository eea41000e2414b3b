"""The best context length of linear attention, and every context length at which its error is stationary."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Booleans, Floats, check
from icltheory.theory.bernstein import roots, slope
from icltheory.theory.context_limits import long_context, ridgeless_tau
from icltheory.theory.context_scan import turns
from icltheory.theory.linear_attention import linear_attention
from icltheory.theory.rational import ContextCurve, Target, check_target


@dataclass(frozen=True, kw_only=True)
class StationaryPoints:
    """Where the error is stationary; one more axis than the arguments, in increasing order, padded with NaN.

    Attributes
    ----------
    value : array of shape (..., m)
        The stationary values of the parameter.
    below, above : array of shape (..., m)
        Bracket around each, on whose ends the slope of the error has opposite signs.
    risk : array of shape (..., m)
        The error there.
    minimum : array of bool, shape (..., m)
        Whether it is a local minimum (else a local maximum; False in the padding).
    certified : array of bool, shape (...)
        Whether it is proved (to rounding, by Descartes' rule of signs) that there are no others in the range.
    """

    value: Floats
    below: Floats
    above: Floats
    risk: Floats
    minimum: Booleans
    certified: Booleans


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The value of a parameter at which the error is least within bounds; arrays of the broadcast shape.

    Attributes
    ----------
    value : array
        Where the error is least: a local minimum inside, or an end of the range (0 and ``inf`` included), at which the
        error is a limit.
    risk : array
        The error there.
    interior : array of bool
        Whether `value` lies inside the range.
    monotone : array of bool
        Whether the error has no stationary point inside the range: it only falls, or only rises.
    local, local_risk : array
        The lowest local minimum inside the range and its error, NaN if there is none. It may lie above the error at an
        end of the range, and then it is not `value`.
    bounds : tuple of float
    stationary : StationaryPoints
        All of them, with the brackets that certify them.
    """

    value: Floats
    risk: Floats
    interior: Booleans
    monotone: Booleans
    local: Floats
    local_risk: Floats
    bounds: tuple[float, float]
    stationary: StationaryPoints


def stationary_points(
    *,
    tau: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    target: str = "icl",
    bounds: tuple[float, float] = (0.0, math.inf),
) -> StationaryPoints:
    r"""Return every context length alpha inside the bounds at which the error is stationary.

    Without a ridge the error is a ratio of polynomials in :math:`t = \mathrm{trd}\,A_k(A_k+x+\xi)^{-1}`, which grows
    with alpha from 0 to its largest value (`icltheory.theory.rational.ContextCurve`): the numerator of its derivative,
    of degree at most 12, has as many roots as there are stationary points for alpha in (0, inf), and they are
    counted for certain in its Bernstein basis. With a ridge the exact slope is taken on a grid of 40 context lengths a
    decade, from 1e-6 to 1e3 times max(1, 1/ridge^2) within the bounds: two turns in one interval of it would be missed,
    and `certified` is False.

    Parameters
    ----------
    tau, kappa, rho, ridge : array_like
        Broadcast together; tau and kappa may be ``math.inf``, tau = 1 needs a ridge.
    target : {"icl", "idg"}
        Error on fresh or on the pretraining tasks.
    bounds : (float, float), default (0, inf)
        Range of alpha, its ends excluded.

    Returns
    -------
    StationaryPoints

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    Non-monotonicity: Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751), Fig. 3.

    Examples
    --------
    >>> import icltheory as icl
    >>> found = icl.theory.stationary_points(tau=20.0, kappa=0.25, rho=0.5)   # first harm, then gain, then harm
    >>> found.value.round(3), found.minimum, bool(found.certified)
    (array([0.136, 4.675]), array([False,  True]), True)
    """
    low, high = _check_bounds(bounds)
    shape, (tau, kappa, rho, ridge) = _flat(tau, kappa, rho, ridge)
    which = check_target(target)
    bare, damped = np.flatnonzero(ridge == 0), np.flatnonzero(ridge > 0)
    curve = ContextCurve.of(tau[bare], kappa[bare], rho[bare], which)
    found = roots(*slope(curve.numerator, curve.denominator))
    certified = np.zeros(len(tau), dtype=bool)
    certified[bare] = found.certified
    owner, below, above, minimum = turns(tau[damped], kappa[damped], rho[damped], ridge[damped], which, (low, high))
    owner = np.concatenate([bare[found.owner], damped[owner]])
    below = np.concatenate([curve.alpha(found.low, found.owner), below])
    above = np.concatenate([curve.alpha(found.high, found.owner), above])
    minimum = np.concatenate([found.rising, minimum])
    inside = (below > low) & (above < high)
    owner, below, above, minimum = owner[inside], below[inside], above[inside], minimum[inside]
    value = np.sqrt(below) * np.sqrt(above)
    law = linear_attention(tau=tau[owner], alpha=value, kappa=kappa[owner], rho=rho[owner], ridge=ridge[owner])
    return padded(shape, owner, value, below, above, getattr(law, which), minimum, certified)


def optimal_context_length(
    *,
    tau: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    target: str = "icl",
    bounds: tuple[float, float] = (0.0, math.inf),
) -> Optimum:
    r"""Return the context length alpha at which the error of linear attention is least.

    More context is not always better. With few pretraining tasks (always if kappa < min(tau, 1) and there is label
    noise) the error on fresh tasks grows without bound for long contexts at ridge 0. A ridge lambda ends that growth at
    alpha of order 1/lambda, beyond which the error falls to a limit that may lie below the useful minimum: the latter
    is `Optimum.local`; or give bounds. For tau > 2 and kappa < 1 - 2/tau the error also rises for the shortest
    contexts, so that no context at all can be better than any: then `Optimum.value` is 0, the lower end.

    Parameters
    ----------
    tau, kappa, rho, ridge : array_like
        Broadcast together; tau and kappa may be ``math.inf``, tau = 1 needs a ridge.
    target : {"icl", "idg"}
        Error on fresh or on the pretraining tasks.
    bounds : (float, float), default (0, inf)
        Range of alpha. At an end the error is a limit; whether a minimum exists depends on the range: close to the
        boundary of the region where one does, it lies at very long contexts.

    Returns
    -------
    Optimum
        `Optimum.stationary` holds all local extrema and their certificates, see `stationary_points`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751), Figs. 2 and 3.

    Examples
    --------
    >>> import icltheory as icl
    >>> best = icl.theory.optimal_context_length(tau=0.5, kappa=[0.2, 0.6, 1.5], rho=0.1)
    >>> best.value.round(3), best.risk.round(4)
    (array([ 2.308, 22.554,    inf]), array([1.3897, 1.0702, 0.75  ]))
    """
    found = stationary_points(tau=tau, kappa=kappa, rho=rho, ridge=ridge, target=target, bounds=bounds)
    which = check_target(target)
    shape, (tau, kappa, rho, ridge) = _flat(tau, kappa, rho, ridge)
    ends = [_end_risk(end, tau, kappa, rho, ridge, which).reshape(shape) for end in bounds]
    return least(found, bounds, (ends[0], ends[1]))


def least(found: StationaryPoints, bounds: tuple[float, float], ends: tuple[Floats, Floats]) -> Optimum:
    """Return the least of the local minima and the two ends."""
    inner = np.where(found.minimum, found.risk, np.inf)
    nothing = np.full((*inner.shape[:-1], 1), np.inf)
    inner = np.concatenate([inner, nothing], axis=-1)
    values = np.concatenate([found.value, nothing], axis=-1)
    position = np.argmin(inner, axis=-1)[..., None]
    local_risk = np.take_along_axis(inner, position, axis=-1)[..., 0]
    local = np.take_along_axis(values, position, axis=-1)[..., 0]
    exists = np.any(found.minimum, axis=-1)
    low, high = ends
    end = np.where(low <= high, float(bounds[0]), float(bounds[1]))
    interior = exists & (local_risk < np.minimum(low, high))
    return Optimum(
        value=np.where(interior, local, end),
        risk=np.where(interior, local_risk, np.minimum(low, high)),
        interior=np.asarray(interior),
        monotone=np.asarray(~np.any(~np.isnan(found.value), axis=-1)),
        local=np.where(exists, local, np.nan),
        local_risk=np.where(exists, local_risk, np.nan),
        bounds=(float(bounds[0]), float(bounds[1])),
        stationary=found,
    )


def padded(
    shape: tuple[int, ...],
    owner: np.ndarray,
    value: Floats,
    below: Floats,
    above: Floats,
    risk: Floats,
    minimum: Booleans,
    certified: Booleans,
) -> StationaryPoints:
    """Lay out a list of stationary points, each with the flat index of its owner, as arrays of the owners' shape."""
    order = np.lexsort((value, owner))
    owner = owner[order]
    counts = np.bincount(owner, minlength=certified.size)
    width = int(counts.max(initial=0))
    rank = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]

    def laid_out(values: np.ndarray, padding: float) -> np.ndarray:
        table = np.full((certified.size, width), padding, dtype=values.dtype)
        table[owner, rank] = values[order]
        return table.reshape(*shape, width)

    value, below, above, risk = (laid_out(v, math.nan) for v in (value, below, above, risk))
    return StationaryPoints(
        value=value,
        below=below,
        above=above,
        risk=risk,
        minimum=laid_out(minimum, False),
        certified=certified.reshape(shape),
    )


def _flat(
    tau: ArrayLike, kappa: ArrayLike, rho: ArrayLike, ridge: ArrayLike
) -> tuple[tuple[int, ...], tuple[Floats, Floats, Floats, Floats]]:
    """Check and broadcast; return the common shape and flat arrays."""
    arrays = np.broadcast_arrays(check("tau", tau), check("kappa", kappa), check("rho", rho), check("ridge", ridge))
    t, k, r, p = (np.ravel(array) for array in arrays)
    ridgeless_tau(t[p == 0])
    return arrays[0].shape, (t, k, r, p)


def _check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    if not 0 <= low < high:
        raise ValueError(f"bounds must be two context lengths/d with 0 <= low < high, got {bounds!r}")
    return float(low), float(high)


def _end_risk(end: float, tau: Floats, kappa: Floats, rho: Floats, ridge: Floats, target: Target) -> Floats:
    """Return the error at an end of the range, or its limit at 0 or inf."""
    if end == 0:  # no fixed ridge matters there
        with np.errstate(divide="ignore"):
            return np.asarray((1.0 + rho) / (1.0 - np.minimum(tau, 1.0 / tau)))
    if end < math.inf:
        law = linear_attention(tau=tau, alpha=end, kappa=kappa, rho=rho, ridge=ridge)
        return np.asarray(getattr(law, target))
    risk = np.empty_like(tau)
    bare = ridge == 0
    far = long_context(tau=tau[bare], kappa=kappa[bare], rho=rho[bare])
    risk[bare] = np.where(far.icl_growth > 0, np.inf, far.icl) if target == "icl" else far.idg
    damped = linear_attention(tau=tau[~bare], alpha=1e50, kappa=kappa[~bare], rho=rho[~bare], ridge=ridge[~bare])
    risk[~bare] = getattr(damped, target)
    return risk
