r"""The ridgeless errors of linear attention at both ends of the context length, and how fast they get there.

The limits of long contexts are in Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751), for
tau > 1; the rest is derived here by expansion of the rational form of the error (`icltheory.theory.rational`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check


@dataclass(frozen=True, kw_only=True)
class LongContext:
    r"""Errors as alpha -> infinity: :math:`e = growth\,\alpha + constant + approach/\alpha + \dots`; no IDG growth.

    Attributes
    ----------
    icl_growth : array
        0 for kappa >= min(tau, 1) or rho = 0.
    icl, idg : array
        The constants; ``inf`` where kappa = min(tau, 1) makes an error grow like a square root (`critical_growth`).
    icl_approach, idg_approach : array
        Coefficients of 1/alpha. Where one is negative the error comes from below: it has risen. NaN where the error
        grows or expands in powers of the square root, and for ICL at kappa < min(tau, 1).
    """

    icl_growth: Floats
    icl: Floats
    idg: Floats
    icl_approach: Floats
    idg_approach: Floats


def long_context(*, tau: ArrayLike, kappa: ArrayLike, rho: ArrayLike) -> LongContext:
    r"""Return the ridgeless errors as the context length grows at fixed tau and kappa.

    With :math:`T = \min(\tau, 1)`, the in-context error of a model that has seen fewer than T d tasks grows linearly,

    .. math:: e_{ICL} \simeq \frac{\rho\,(T-\kappa)}{|\tau-1|\,(1+\rho)}\,\alpha , \qquad \kappa < T ,

    and it tends to a constant for :math:`\kappa > T`: for :math:`\tau > 1` to
    :math:`\rho + \frac{\rho}{\tau-1}\frac{\kappa}{\kappa-1}`. In distribution, always to a constant:

    .. math::
        e_{IDG} \to \frac{\rho\tau}{\tau-1}\ (\tau > 1), \quad
        \frac{\rho\tau(1-\kappa)}{(1-\tau)(\tau-\kappa)}\ (\kappa < \tau < 1), \quad
        (1-\tau) w + \frac{\rho(1-\tau^2/\kappa)}{(1-\tau)w}\ (\tau < 1, \kappa > \tau), \ w = 1 - \tau/\kappa .

    Parameters
    ----------
    tau, kappa, rho : array_like
        Sequences/d^2 (not 1), tasks/d and label-noise variance, broadcast together; tau and kappa may be ``math.inf``.

    Raises
    ------
    ValueError
        For a value outside its range; tau = 1, where ridgeless errors are infinite, among them.

    Examples
    --------
    >>> import icltheory as icl
    >>> far = icl.theory.limits.long_context(tau=2.0, kappa=[0.5, 2.0], rho=0.1)
    >>> far.icl_growth.round(4), far.icl.round(4), far.idg.round(4)
    (array([0.0455, 0.    ]), array([0.95, 0.3 ]), array([0.2, 0.2]))
    """
    tau, kappa, rho = np.broadcast_arrays(ridgeless_tau(tau), check("kappa", kappa), check("rho", rho))
    shape = tau.shape
    tau, kappa, rho = np.ravel(tau), np.ravel(kappa), np.ravel(rho)
    result = np.full((5, tau.size), np.nan)
    threshold = np.minimum(tau, 1.0)
    for few, form in ((True, _few_tasks), (False, _many_tasks)):
        for above in (True, False):
            chosen = ((kappa < threshold) == few) & ((tau > 1) == above) & (kappa != threshold)
            result[:, chosen] = form(tau[chosen], kappa[chosen], rho[chosen], above)
    at = kappa == threshold
    result[:3, at] = _critical(tau[at], rho[at])
    growth, icl, idg, icl_approach, idg_approach = (row.reshape(shape) for row in result)
    return LongContext(icl_growth=growth, icl=icl, idg=idg, icl_approach=icl_approach, idg_approach=idg_approach)


def _few_tasks(tau: Floats, kappa: Floats, rho: Floats, above: bool) -> list[Floats]:
    """Expand at t = kappa (1 - w): w -> 0 is kappa (1 + rho)/(alpha (T - kappa)) to leading order."""
    unknown = np.full_like(tau, np.nan)
    if above:
        weight = 1.0 / (tau - 1.0)
        growth = weight * rho * (1.0 - kappa) / (1.0 + rho)
        icl = rho + 1.0 - kappa + weight * (rho * kappa**2 / (1.0 - kappa) + (kappa + rho) * (1.0 - kappa))
        return [growth, icl, rho * (1.0 + weight), unknown, (1.0 + weight) * (1.0 + rho) * kappa]
    rest = tau - kappa
    growth = rho * rest / ((1.0 - tau) * (1.0 + rho))
    idg = tau * rho * (1.0 - kappa) / ((1.0 - tau) * rest)
    idg_slope = tau * ((1.0 - kappa) / (1.0 - tau) - 2.0 * kappa * rho / rest**2)
    # variance of fresh over that of seen tasks is 1 + pole/w + constant
    pole = kappa * rest / (tau * (1.0 - kappa))
    constant = kappa / (tau * (1.0 - kappa)) * (2.0 * kappa - 1.0 + tau - 2.0 * rest / (1.0 - kappa))
    icl = rho * kappa * tau / ((1.0 - tau) * rest) + idg * (1.0 + constant) + idg_slope * pole + 1.0 - kappa
    return [growth, icl, idg, unknown, idg_slope * (1.0 + rho) * kappa / rest]


def _many_tasks(tau: Floats, kappa: Floats, rho: Floats, above: bool) -> list[Floats]:
    """Expand at t = T - delta: delta -> 0 is (1 + rho) T/(alpha (1 - T/kappa)) to leading order."""
    c = 1.0 / kappa
    if above:
        weight, w = 1.0 / (tau - 1.0), 1.0 - c
        icl, idg = rho + weight * rho / w, rho * (1.0 + weight)
        icl_slope = -w + weight * (rho * c * (2.0 - c) / w**2 - 1.0)
        idg_slope = -(1.0 + weight) * w
        step = (1.0 + rho) / w
    else:
        w, q = 1.0 - c * tau, 1.0 - c * tau**2
        idg = (1.0 - tau) * w + rho * q / ((1.0 - tau) * w)
        idg_slope = 2.0 * c * rho / w**2 - (2.0 - tau - c * tau) / (1.0 - tau)
        spread = c * tau * (2.0 * tau - 1.0) / q  # fresh over seen tasks: variance 1 + spread
        spread_slope = 2.0 * c * (2.0 * tau - 1.0) / q**2 - c * tau * (1.0 / w - 1.0) / q
        h = (1.0 - w**2) / q
        h_slope = 2.0 * c * (w * q + tau * (1.0 - w**2)) / q**2
        icl = idg * (1.0 + spread) + (1.0 - tau) ** 2 * h
        icl_slope = idg_slope * (1.0 + spread) + idg * spread_slope - 2.0 * (1.0 - tau) * h + (1.0 - tau) ** 2 * h_slope
        step = (1.0 + rho) * tau / w
    return [np.zeros_like(tau), icl, idg, -icl_slope * step, -idg_slope * step]


def _critical(tau: Floats, rho: Floats) -> list[Floats]:
    """At kappa = min(tau, 1): only without label noise do the errors stay finite."""
    noiseless = np.where(tau > 1, 0.0, 1.0 - tau)
    icl = np.where(rho > 0, np.inf, noiseless)
    endless = np.isinf(tau)  # weight 0 on the diverging term
    idg = np.where(tau > 1, rho / (1.0 - 1.0 / tau), np.where(rho > 0, np.inf, 0.0))
    return [np.zeros_like(tau), np.where(endless, rho, icl), idg]


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """One coefficient for each error, of the power that the function's docstring names.

    Attributes
    ----------
    icl, idg : array
    """

    icl: Floats
    idg: Floats


def critical_growth(*, tau: ArrayLike, rho: ArrayLike) -> Coefficients:
    r"""Return the coefficients of :math:`\sqrt\alpha` at the critical number of tasks, kappa = min(tau, 1).

    .. math::
        \tau > 1:\ e_{ICL} \simeq \frac{\rho}{\tau-1}\sqrt{\frac{\alpha}{1+\rho}}, \qquad
        \tau < 1:\ e_{ICL} \simeq \frac{\rho\tau}{1-\tau}\sqrt{\frac{\alpha}{1+\rho}},\quad
        e_{IDG} \simeq \frac\rho2\sqrt{\frac{\alpha}{1+\rho}} .

    Below the threshold even the error on the pretraining tasks diverges: a second interpolation threshold, at as many
    tasks/d as sequences/d^2.

    Parameters
    ----------
    tau, rho : array_like
        Broadcast together; tau = 1 is refused.

    Examples
    --------
    >>> import icltheory as icl
    >>> round(float(icl.theory.limits.critical_growth(tau=0.5, rho=0.21).idg), 6)
    0.095455
    """
    tau, rho = np.broadcast_arrays(ridgeless_tau(tau), check("rho", rho))
    root = np.sqrt(1.0 + rho)
    u = 1.0 / tau
    icl = rho * np.where(tau > 1, u / np.abs(1.0 - u), 1.0 / np.abs(u - 1.0)) / root
    return Coefficients(icl=np.asarray(icl), idg=np.asarray(np.where(tau > 1, 0.0, rho / (2.0 * root))))


@dataclass(frozen=True, kw_only=True)
class ShortContext:
    """Errors as alpha -> 0: risk + slope alpha.

    Attributes
    ----------
    risk : array
        The same for both errors.
    icl_slope, idg_slope : array
    """

    risk: Floats
    icl_slope: Floats
    idg_slope: Floats


def short_context(*, tau: ArrayLike, kappa: ArrayLike, rho: ArrayLike) -> ShortContext:
    r"""Return the ridgeless errors and their slopes in alpha as the context shrinks to nothing.

    .. math::
        e \to \frac{1+\rho}{1-\min(\tau,1/\tau)}, \qquad
        (1+\rho)\,\frac{de_{ICL}}{d\alpha} \to \begin{cases}
            \frac1\kappa - 1 - \frac{1+1/\kappa}{\tau-1} & \tau > 1 \\
            \tau\left[\frac2\kappa - \frac{(2-\tau)(1+1/\kappa)}{1-\tau}\right] & \tau < 1 . \end{cases}

    So for tau > 2 and kappa < 1 - 2/tau the first examples in the context do harm: the in-context error rises.
    (The limit itself holds for any fixed ridge, the slopes for ridge 0.)

    Parameters
    ----------
    tau, kappa, rho : array_like
        Broadcast together; tau = 1 is refused, tau and kappa may be ``math.inf``.

    Examples
    --------
    >>> import icltheory as icl
    >>> near = icl.theory.limits.short_context(tau=[0.5, 4.0], kappa=0.25, rho=0.0)
    >>> near.risk.round(4), near.icl_slope.round(4)
    (array([2.    , 1.3333]), array([-3.5   ,  1.3333]))
    """
    tau, kappa, rho = np.broadcast_arrays(ridgeless_tau(tau), check("kappa", kappa), check("rho", rho))
    c, u = 1.0 / kappa, 1.0 / tau
    with np.errstate(invalid="ignore"):  # tau = inf in the branch not taken
        below_idg = -tau * (2.0 - tau) * (1.0 + c) / (1.0 - tau)
        idg = np.where(tau > 1, -(1.0 + c) / (1.0 - u), below_idg)
        icl = np.where(tau > 1, c - 1.0 - (1.0 + c) * u / (1.0 - u), below_idg + 2.0 * c * tau)
    return ShortContext(
        risk=np.asarray((1.0 + rho) / (1.0 - np.minimum(tau, u))),
        icl_slope=np.asarray(icl / (1.0 + rho)),
        idg_slope=np.asarray(idg / (1.0 + rho)),
    )


def ridgeless_tau(tau: ArrayLike) -> Floats:
    """Return tau, checked, or raise an error if it is 1 anywhere."""
    checked = check("tau", tau)
    if np.any(checked == 1):
        raise ValueError("tau must not be 1 at ridge 0, where both errors are infinite (tau = n/d^2)")
    return checked
