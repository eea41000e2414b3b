r"""What the errors of linear attention become at the ends of every parameter, and how fast they get there.

Each function gives a limit of `linear_attention` together with the coefficient of the next term, ridgeless unless it
says otherwise; those in the context length are written in `icltheory.theory.context_limits`. The limits of the gap
with their transition, and the 1/kappa law, are in Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025
(arXiv:2405.11751); the other coefficients are derived here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check
from icltheory.theory.context_limits import (
    Coefficients,
    LongContext,
    ShortContext,
    critical_growth,
    long_context,
    short_context,
)
from icltheory.theory.linear_attention import linear_attention
from icltheory.theory.rational import captured
from icltheory.theory.task_spectrum import resolvent

__all__ = [
    "Coefficients",
    "Divergence",
    "GapTransition",
    "LongContext",
    "ShortContext",
    "critical_growth",
    "divergence",
    "gap_many_tasks",
    "gap_transition",
    "infinite_pretraining",
    "long_context",
    "short_context",
    "strong_ridge",
]


def infinite_pretraining(*, alpha: ArrayLike, rho: ArrayLike) -> Floats:
    r"""Return the error after endless pretraining on endlessly many tasks: the floor of both errors at this context.

    .. math:: \lim_{\tau, \kappa \to \infty} e = \rho + \frac{1+\rho}{\alpha+1+\rho}

    Parameters
    ----------
    alpha, rho : array_like
        Context length/d and label-noise variance, broadcast together.

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.limits.infinite_pretraining(alpha=1.0, rho=0.0)
    array(0.5)
    """
    alpha, rho = np.broadcast_arrays(check("alpha", alpha), check("rho", rho))
    return np.asarray(rho + (1.0 + rho) / (alpha + 1.0 + rho))


@dataclass(frozen=True, kw_only=True)
class Divergence(Coefficients):
    r"""How the errors diverge at tau = 1.

    Attributes
    ----------
    icl, idg : array
        Ridgeless: coefficients of :math:`1/|\tau-1|`.
    icl_at_threshold, idg_at_threshold : array
        At tau = 1: coefficients of :math:`\lambda^{-1/2}` as the ridge vanishes.
    """

    icl_at_threshold: Floats
    idg_at_threshold: Floats


def divergence(*, alpha: ArrayLike, kappa: ArrayLike, rho: ArrayLike) -> Divergence:
    r"""Return how the errors diverge at the interpolation threshold tau = 1, from both sides and in the ridge.

    With :math:`x = (1+\rho)/\alpha`, :math:`t = \mathrm{trd}\,A_k(A_k+x)^{-1}` and
    :math:`M = \mathrm{trd}\,(A_k+x)^{-1}`,

    .. math::
        r_{IDG} = \rho + x t, \quad r_{ICL} = (1+x) M\, r_{IDG}, \qquad
        e \simeq \frac{r}{|\tau-1|}\ (\lambda = 0), \qquad e \simeq \frac{r}{2\sqrt{M\lambda}}\ (\tau = 1) .

    For tau > 1 these are exact: :math:`e(\tau) = e(\infty) + r/(\tau-1)` at ridge 0, for both errors.

    Parameters
    ----------
    alpha, kappa, rho : array_like
        Broadcast together; kappa may be ``math.inf``.

    Examples
    --------
    >>> import math
    >>> import icltheory as icl
    >>> icl.theory.limits.divergence(alpha=1.0, kappa=math.inf, rho=0.0).icl
    array(0.5)
    """
    alpha, kappa, rho = np.broadcast_arrays(check("alpha", alpha), check("kappa", kappa), check("rho", rho))
    x = (1.0 + rho) / alpha
    m = resolvent(x, kappa)[0]
    idg = rho + x * captured(x, kappa)
    icl = (1.0 + x) * m * idg
    scale = 0.5 / np.sqrt(m)
    return Divergence(
        icl=np.asarray(icl),
        idg=np.asarray(idg),
        icl_at_threshold=np.asarray(scale * icl),
        idg_at_threshold=np.asarray(scale * idg),
    )


def strong_ridge(*, kappa: ArrayLike) -> Coefficients:
    r"""Return the coefficients of :math:`1/\lambda` as the ridge grows: the errors tend to :math:`1+\rho`.

    .. math:: e_{ICL} \simeq 1 + \rho - \frac2\lambda, \qquad e_{IDG} \simeq 1 + \rho - \frac{2(1+1/\kappa)}\lambda

    Parameters
    ----------
    kappa : array_like
        Tasks/d; may be ``math.inf``.

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.limits.strong_ridge(kappa=0.5).idg
    array(-6.)
    """
    kappa = check("kappa", kappa)
    return Coefficients(icl=np.full_like(kappa, -2.0), idg=np.asarray(-2.0 * (1.0 + 1.0 / kappa)))


def gap_many_tasks(*, tau: ArrayLike, alpha: ArrayLike, rho: ArrayLike, ridge: ArrayLike = 0.0) -> Floats:
    r"""Return the coefficient of :math:`1/\kappa` in the gap :math:`e_{ICL} - e_{IDG}` as the number of tasks grows.

    With :math:`\xi` and e the effective ridge and the error at :math:`\kappa = \infty`, and :math:`\nu = x + \xi`,

    .. math:: g \simeq \frac1\kappa\, \frac{2\nu^2 + (1 - \nu + 2x)\, e/\tau}{(1+\nu)^3} .

    At tau > 1 and ridge 0 it is the law of Lu et al.,
    :math:`\frac{2x^2}{(1+x)^3} + \frac{\rho + x/(1+x)}{(\tau-1)(1+x)^2}`.

    Parameters
    ----------
    tau, alpha, rho, ridge : array_like
        Broadcast together; at tau = 1 and ridge 0 the coefficient is ``inf``.

    Examples
    --------
    >>> import icltheory as icl
    >>> round(float(icl.theory.limits.gap_many_tasks(tau=2.0, alpha=1.0, rho=0.0)), 6)
    0.375
    """
    law = linear_attention(tau=tau, alpha=alpha, kappa=np.inf, rho=rho, ridge=ridge)
    tau, alpha, rho = np.broadcast_arrays(check("tau", tau), check("alpha", alpha), check("rho", rho))
    x = (1.0 + rho) / alpha
    nu = x + law.effective_ridge
    return np.asarray((2.0 * nu**2 + (1.0 - nu + 2.0 * x) * law.idg / tau) / (1.0 + nu) ** 3)


@dataclass(frozen=True, kw_only=True)
class GapTransition:
    r"""The gap as :math:`g \simeq coefficient\;\alpha^{-exponent}`.

    Attributes
    ----------
    coefficient : array
    exponent : array
        0 for kappa < 1 (the gap stays), 1/2 at kappa = 1, 1 for kappa > 1.
    """

    coefficient: Floats
    exponent: Floats


def gap_transition(*, kappa: ArrayLike, rho: ArrayLike, growth: ArrayLike) -> GapTransition:
    r"""Return how the ridgeless gap behaves as alpha -> infinity with tau = growth * alpha: a transition at kappa = 1.

    .. math::
        g \to (1-\kappa)\left(1 + \frac{\rho}{c(1+\rho)}\right)\ (\kappa < 1), \quad
        g \simeq \left[\frac{\sqrt{1+\rho}}2 + \frac{\rho}{c\sqrt{1+\rho}}\right]\alpha^{-1/2}\ (\kappa = 1), \quad
        g \simeq \frac{\rho}{c(\kappa-1)}\,\alpha^{-1}\ (\kappa > 1),

    with c = growth. (At rho = 0 and kappa > 1 the gap falls like :math:`\alpha^{-2}`: the coefficient is 0.)

    Parameters
    ----------
    kappa, rho, growth : array_like
        Broadcast together; growth is tau/alpha > 0.

    Examples
    --------
    >>> import icltheory as icl
    >>> law = icl.theory.limits.gap_transition(kappa=[0.5, 1.0, 2.0], rho=0.0, growth=1.0)
    >>> law.coefficient, law.exponent
    (array([0.5, 0.5, 0. ]), array([0. , 0.5, 1. ]))
    """
    values = np.asarray(growth, dtype=np.float64)
    if not np.all(values > 0):
        raise ValueError(f"growth must be > 0, got {float(np.min(values)):g} (growth = tau/alpha)")
    kappa, rho, c = np.broadcast_arrays(check("kappa", kappa), check("rho", rho), values)
    root = np.sqrt(1.0 + rho)
    above = rho / (c * np.where(kappa > 1, kappa - 1.0, np.inf))
    below = (1.0 - np.minimum(kappa, 1.0)) * (1.0 + rho / (c * (1.0 + rho)))
    at = root / 2.0 + rho / (c * root)
    return GapTransition(
        coefficient=np.select([kappa < 1, kappa == 1], [below, at], above),
        exponent=np.select([kappa < 1, kappa == 1], [0.0, 0.5], 1.0),
    )
