r"""The error of linear attention as a ratio of polynomials: along the context length, and along the ridge.

With :math:`t = \lim \frac1d \mathrm{tr}\, A_k (A_k + \nu)^{-1} \in (0, \min(1, \kappa))`, :math:`\nu = x + \xi`,
:math:`x = (1+\rho)/\alpha` and :math:`c = 1/\kappa`, the Marchenko-Pastur law reads
:math:`\nu = (1-t)(1-ct)/t`, and every trace that the theory needs is a ratio of polynomials in t:
:math:`t_{12} = t^2/(1-ct^2)`, :math:`t_{22} = t^2(1+c-2ct)/(1-ct^2)`, :math:`t_{02} = t_{12}/(1-ct)^2`.
So whatever varies, if it is a ratio of polynomials in t as well, all its optima are roots of one polynomial. Here t
runs from 0 to its largest value t_max, and s = t/t_max is the variable of the Bernstein polynomials. Derived here from
the formulas of `linear_attention`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.points import Booleans, Floats
from icltheory.theory.bernstein import add, line, multiply

Target = Literal["icl", "idg"]


def check_target(target: str) -> Target:
    """Return the target, or raise an error that names what is allowed."""
    for allowed in ("icl", "idg"):
        if target == allowed:
            return allowed
    raise ValueError(f'target must be "icl" (fresh tasks) or "idg" (pretraining tasks), got {target!r}')


def captured(z: Floats, kappa: Floats) -> Floats:
    r"""Return :math:`t = \lim \frac1d \mathrm{tr}\,A_k(A_k+z)^{-1}` for z >= 0, the root of z t = (1-t)(1-t/kappa)."""
    inverse = 1.0 / kappa
    # hypot form of (z + 1 + 1/kappa)^2 - 4/kappa, as in task_spectrum
    return 2.0 / (z + 1.0 + inverse + np.hypot(z + 1.0 - inverse, 2.0 * np.sqrt(z * inverse)))


@dataclass(frozen=True, kw_only=True)
class ContextCurve:
    r"""The ridgeless error of m models along their context length, each as numerator/denominator in s = t/t_max.

    .. math:: \alpha = (1+\rho)\, \frac{t}{(T-t)(1-ct)}, \quad T = \min(\tau, 1), \quad t_{max} = \min(T, \kappa),

    increases from 0 to infinity with s. Above the threshold (tau > 1), with :math:`L = \rho + (1-t)(1-ct)`,

    .. math::
        e_{IDG} = \frac{\tau}{\tau-1} L, \quad
        e_{ICL} = L + \frac{(1-t)^2 ct(2-ct)}{1-ct^2} + \frac{L}{\tau-1}\,\frac{1-ct+ct^2}{1-ct} .

    Below it, with :math:`J = (\tau-t)\,t\,(1+c-2ct) + (1-t)^2(1-ct)`,

    .. math::
        e_{IDG} &= \frac{\tau}{1-\tau}\,\frac{\rho(1-ct^2) + (1-ct) J}{\tau-ct^2} \\
        e_{ICL} &= e_{IDG} \left(1 + \frac{ct^2}{\tau(1-ct^2)}
                   \left[2t-1 + \frac{(\tau-t)(2-ct)}{1-ct}\right]\right) + \frac{(1-t)^2 ct(2-ct)}{1-ct^2} .
    """

    numerator: Floats
    denominator: Floats
    tau: Floats
    kappa: Floats
    rho: Floats

    @classmethod
    def of(cls, tau: Floats, kappa: Floats, rho: Floats, target: Target) -> "ContextCurve":
        """Form the polynomials of arrays of shape (m,), all finite, with tau != 1 (tau and kappa may be inf)."""
        top = np.zeros((len(tau), 9))  # the degrees that every case fits into
        bottom = np.zeros((len(tau), 6))
        for chosen, form in ((tau > 1, _above), (tau < 1, _below)):
            parts = form(tau[chosen], kappa[chosen], rho[chosen], target)
            for whole, part in zip((top, bottom), parts, strict=True):
                whole[chosen] = multiply(part, np.ones(whole.shape[1] - part.shape[1] + 1))
        return cls(numerator=top, denominator=bottom, tau=tau, kappa=kappa, rho=rho)

    def alpha(self, s: Floats, owner: np.ndarray | slice = slice(None)) -> Floats:
        """Return the context length/d at s in [0, 1]."""
        threshold, kappa, rho = np.minimum(self.tau[owner], 1.0), self.kappa[owner], self.rho[owner]
        largest = np.minimum(threshold, kappa)
        # exact zeros at s = 1, where one of the two factors vanishes
        gap = np.where(kappa < threshold, threshold - largest * s, threshold * (1.0 - s))
        rest = np.where(kappa > threshold, 1.0 - largest / kappa * s, 1.0 - s)
        with np.errstate(divide="ignore"):
            return np.asarray((1.0 + rho) * largest * s / (gap * rest))

    def position(self, alpha: Floats) -> Floats:
        """Return s at this context length/d, the inverse of `alpha`; shape (m,)."""
        threshold = np.minimum(self.tau, 1.0)
        ratio = self.kappa / threshold
        # t/T is the trace at x of tasks with kappa/T in place of kappa
        with np.errstate(divide="ignore"):
            share = captured((1.0 + self.rho) / alpha, ratio)
        return np.minimum(share / np.minimum(ratio, 1.0), 1.0)


def _factors(kappa: Floats, largest: Floats, singular: Booleans) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return t, 1 - t, 1 - ct, 2 - ct and 1 - ct^2; where singular, ct is 1 at the end."""
    c = 1.0 / kappa
    end = np.where(singular, 1.0, c * largest)  # exactly 1, not 1 + rounding
    one = np.ones_like(kappa)
    return (
        line(0.0 * one, largest),
        line(one, 1.0 - largest),
        line(one, 1.0 - end),
        line(2.0 * one, 2.0 - end),
        np.stack([one, one, 1.0 - end * largest], axis=-1),
    )


def _above(tau: Floats, kappa: Floats, rho: Floats, target: Target) -> tuple[Floats, Floats]:
    t, missed, a, a_plus, q = _factors(kappa, np.minimum(kappa, 1.0), kappa <= 1.0)
    c, weight = (1.0 / kappa)[:, None], (1.0 / (tau - 1.0))[:, None]
    noise = add(rho[:, None], multiply(missed, a))
    if target == "idg":
        return noise * (1.0 + weight), np.ones_like(c)
    memorised = c * multiply(missed, missed, t, a_plus, a)
    sampled = weight * multiply(noise, add(a, c * multiply(t, t)), q)
    return add(multiply(noise, q, a), memorised, sampled), multiply(q, a)


def _below(tau: Floats, kappa: Floats, rho: Floats, target: Target) -> tuple[Floats, Floats]:
    largest = np.minimum(tau, kappa)
    t, missed, a, a_plus, q = _factors(kappa, largest, kappa <= tau)
    c, weight = (1.0 / kappa)[:, None], (1.0 / (1.0 - tau))[:, None]
    rest = line(tau, tau - largest)
    skew = line(1.0 + c[:, 0], 1.0 + c[:, 0] - 2.0 * np.where(kappa <= tau, 1.0, largest / kappa))
    j = add(multiply(rest, t, skew), multiply(missed, missed, a))
    top = tau[:, None] * weight * add(rho[:, None] * q, multiply(a, j))
    bottom = add(rest, multiply(t, a))  # tau - c t^2
    if target == "idg":
        return top, bottom
    # the bracket times 1 - ct
    spread = add(multiply(2.0 * t - 1.0, a), multiply(rest, a_plus))
    factor = add(multiply(q, a), c / tau[:, None] * multiply(t, t, spread))
    memorised = c * multiply(missed, missed, t, a_plus, a, bottom)
    return add(multiply(top, factor), memorised), multiply(bottom, q, a)


@dataclass(frozen=True, kw_only=True)
class RidgeCurve:
    r"""The error of m models along their ridge, each as numerator/denominator in s = t/t_max.

    At fixed x, :math:`\xi = K/t` with :math:`K = (1-t)(1-ct) - xt`, and, with :math:`u = 1/\tau`,

    .. math:: \lambda = \xi \left(1 - u + \frac{uK}{1-ct}\right)

    falls from infinity to 0 as t grows to t_max, its value at the ridgeless fit. Further

    .. math::
        e_{IDG} &= \frac{(1-ct)^2 V}{E}, \quad V = \rho(1-ct^2) + x t^2 (1+c-2ct) + (1-t)^2(1-ct)^2, \\
        E &= (1-u)(1-ct)^2(1-ct^2) + uK(1-ct)(1-ct^2) + uKt\left[(1-ct)^2 + x\right], \\
        e_{ICL} &= e_{IDG} + \frac{(1-t)^2 ct(2-ct)}{1-ct^2}
                   + \frac{u c t^2 V \left[(2t-1)(1-ct)^2 + xt(2-ct)\right]}{E(1-ct^2)} .
    """

    numerator: Floats
    denominator: Floats
    tau: Floats
    x: Floats
    kappa: Floats
    largest: Floats

    @classmethod
    def of(cls, tau: Floats, alpha: Floats, kappa: Floats, rho: Floats, target: Target) -> "RidgeCurve":
        """Form the polynomials of arrays of shape (m,)."""
        x, u, c = (1.0 + rho) / alpha, (1.0 / tau)[:, None], (1.0 / kappa)[:, None]
        threshold = np.minimum(tau, 1.0)
        largest = threshold * captured(x, kappa / threshold)
        t, missed, a, a_plus, q = _factors(kappa, largest, np.zeros(len(tau), dtype=bool))
        k = _excess_ridge(tau, kappa, x, largest)
        skew = line(1.0 + c[:, 0], 1.0 + c[:, 0] - 2.0 * largest / kappa)
        a2 = multiply(a, a)
        v = add(rho[:, None] * q, x[:, None] * multiply(t, t, skew), multiply(missed, missed, a2))
        within = multiply(k, t, add(a2, x[:, None]))
        e = add((1.0 - u) * multiply(a2, q), u * multiply(k, a, q), u * within)
        if target == "idg":
            top, bottom = multiply(a2, v), e
        else:
            spread = add(multiply(2.0 * t - 1.0, a2), x[:, None] * multiply(t, a_plus))
            memorised = c * multiply(missed, missed, t, a_plus, e)
            top = add(multiply(a2, v, q), memorised, u * c * multiply(t, t, v, spread))
            bottom = multiply(e, q)
        return cls(numerator=top, denominator=bottom, tau=tau, x=x, kappa=kappa, largest=largest)

    def ridge(self, s: Floats, owner: np.ndarray | slice = slice(None)) -> Floats:
        """Return the ridge lambda at s in [0, 1]."""
        tau, x, kappa, largest = self.tau[owner], self.x[owner], self.kappa[owner], self.largest[owner]
        t = largest * s
        rest = 1.0 - t / kappa
        k = _product_form(tau, kappa, x, largest, s)
        # below the threshold 1 - u + uK/(1-ct) vanishes at s = 1, as (1-s) times what is left
        u = 1.0 / tau
        end = 1.0 - largest / kappa
        shrink_below = u * (1.0 - s) * largest * (1.0 + x / (rest * end))
        shrink = np.where(tau < 1.0, shrink_below, 1.0 - u + u * k / rest)
        with np.errstate(divide="ignore"):
            return np.asarray(k * shrink / t)


def _excess_ridge(tau: Floats, kappa: Floats, x: Floats, largest: Floats) -> Floats:
    """Return K = (1 - t)(1 - ct) - xt, whose end is 0 above the threshold and (1 - tau)(1 - ct) below."""
    c, one = 1.0 / kappa, np.ones_like(kappa)
    end = np.maximum(1.0 - tau, 0.0) * (1.0 - c * largest)
    # K = 1 - (1 + c + x) t + c t^2; above the threshold it factors into (1 - s)(1 - c t_max t)
    middle = np.where(tau < 1.0, 1.0 - (1.0 + c + x) * largest / 2.0, 0.5 * (1.0 - c * largest**2))
    return np.stack([one, middle, end], axis=-1)


def _product_form(tau: Floats, kappa: Floats, x: Floats, largest: Floats, s: Floats) -> Floats:
    t, c = largest * s, 1.0 / kappa
    return np.where(tau < 1.0, (1.0 - t) * (1.0 - c * t) - x * t, (1.0 - s) * (1.0 - c * largest * t))
