"""Resolvent traces of the sample covariance A_k = (1/k) sum w w^T of structured tasks, w ~ N(0, C)."""

from dataclasses import dataclass

import numpy as np

from icltheory.points import Booleans, Floats
from icltheory.theory.linear_attention import quadratic_root

_MAX_STEPS = 200
_WIDTH = 1e-11  # relative half-width of the interval on which a root is certified


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of C, shape (m,), and the share of dimensions that has each, shape (m,), of sum 1."""

    values: Floats
    shares: Floats

    @property
    def mean(self) -> float:
        """The normalised trace of C: the signal variance."""
        return float(self.values @ self.shares)

    @property
    def rank(self) -> float:
        """The share of dimensions in which C is positive."""
        return float(self.shares[self.values > 0].sum())


@dataclass(frozen=True)
class StructuredTraces:
    r"""Traces of A_k at n points, in the limit d -> infinity, and the two spectral filters from which others follow.

    With :math:`G = (A_k + z)^{-1}` and for any test matrix B, :math:`\mathrm{trd}\,B G^2` tends to the sum of
    ``second`` against the diagonal of B in the eigenbasis of C, and :math:`\mathrm{trd}\,B A_k G^2` to that of
    ``signal``.

    Attributes
    ----------
    t02, t12, t22 : array of shape (n,)
        :math:`t_{ij} = \mathrm{trd}\,A_k^i G^j`.
    excess, noise_excess : array of shape (n,)
        :math:`\mathrm{trd}\,C G^2 - t_{12}` and :math:`\mathrm{trd}\,C A_k G^2 - t_{22}`, which vanish like 1/kappa.
    second, signal, first : array of shape (n, m)
        Deterministic equivalents of :math:`G^2`, :math:`A_k G^2` and :math:`G`, diagonal in the eigenbasis of C.
    """

    t02: Floats
    t12: Floats
    t22: Floats
    excess: Floats
    noise_excess: Floats
    second: Floats
    signal: Floats
    first: Floats


def resolution(z: Floats, inverse: Floats, spectrum: Spectrum, start: Floats | None = None) -> tuple[Floats, Booleans]:
    r"""Solve :math:`z = \omega\,(1 - \frac1\kappa \mathrm{trd}\,C (C + \omega)^{-1})` for omega; (omega, certified).

    Omega is the variance below which k tasks leave a direction of C unresolved:
    :math:`A_k (A_k + z)^{-1}` acts as :math:`C (C + \omega)^{-1}`. The right side h is convex and h(0) = 0, so that
    there is one root; by Jensen's inequality it lies below that of the quadratic equation in which C is replaced by
    its mean, and Newton's method descends from there without overshooting.

    Parameters
    ----------
    z : array of shape (n,)
        Positive.
    inverse : array of shape (n,)
        1/kappa; 0 gives omega = z.
    spectrum : Spectrum
    start : array of shape (n,), optional
        A better upper bound of the root, if one is known.
    """
    omega = quadratic_root(inverse, z, np.full_like(z, spectrum.mean)) if start is None else start
    for _ in range(_MAX_STEPS):
        value, slope = _unresolved(omega, z, inverse, spectrum)
        new = np.clip(omega - value / slope, z, omega)
        moving = np.any(omega - new > 1e-15 * omega)
        omega = new
        if not moving:
            break
    below = _unresolved(omega * (1.0 - _WIDTH), z, inverse, spectrum)[0]
    above = _unresolved(omega * (1.0 + _WIDTH), z, inverse, spectrum)[0]
    return omega, (below <= 0) & (above >= 0)


def _unresolved(omega: Floats, z: Floats, inverse: Floats, spectrum: Spectrum) -> tuple[Floats, Floats]:
    """Return h(omega) - z and its derivative."""
    c, share = spectrum.values, spectrum.shares
    gaps = c + omega[:, None]
    resolved = (c / gaps) @ share
    # 1 - trd[C/(C + omega)]/kappa: the first form keeps its digits where kappa is near the rank of C
    rank = spectrum.rank
    left = (1.0 - inverse * rank) + inverse * ((omega[:, None] / gaps) @ np.where(c > 0, share, 0.0))
    rest = np.where(inverse * rank < 2.0, left, 1.0 - inverse * resolved)
    return omega * rest - z, rest + inverse * omega * ((c / gaps**2) @ share)


def structured_traces(z: Floats, omega: Floats, inverse: Floats, spectrum: Spectrum) -> StructuredTraces:
    r"""Return every trace that the theory needs, from a solved omega; sums of positive terms but `noise_excess`.

    With :math:`s = z/\omega` the resolvent tends to :math:`F = (s C + z)^{-1}` (the equation of `resolution` is
    :math:`s = 1/(1 + \frac1\kappa \mathrm{trd}\,CF)` in other words). All else is its derivative in z, by
    :math:`\omega' = 1/(s + \frac{\omega}{\kappa} D)`, :math:`s' = \frac1\kappa D \omega'`,
    :math:`D = \mathrm{trd}\,C (C + \omega)^{-2}`.
    """
    c, share = spectrum.values, spectrum.shares
    s = z / omega
    share_left = 1.0 / (c + omega[:, None])
    t11 = (c * share_left) @ share
    slope = (c * share_left**2) @ share
    square = ((c * share_left) ** 2) @ share
    growth = 1.0 / (s + inverse * omega * slope)
    first = share_left / s[:, None]
    second = first**2 * (1.0 + c * (inverse * slope * growth)[:, None])
    return StructuredTraces(
        t02=second @ share,
        t12=growth * slope,
        t22=growth * (s * square + inverse * omega * slope * t11),
        excess=inverse * growth * slope * t11 * (1.0 + s) / s**2,
        noise_excess=inverse * growth * t11 * (square - omega * slope),
        second=second,
        signal=growth[:, None] * c * share_left**2,
        first=first,
    )


def effective_ridge(
    u: Floats, inverse: Floats, x: Floats, ridge: Floats, spectrum: Spectrum
) -> tuple[Floats, Floats, Booleans]:
    r"""Solve :math:`\xi (1 - \frac1\tau \mathrm{trd}\,R (R + \xi)^{-1}) = \lambda`; (xi, omega at x + xi, certified).

    :math:`R = A_k + x`, u = 1/tau. As a function of xi the left side is convex and 0 at 0; with A_k replaced by its
    mean it gives an upper bound of the root (Jensen), and with A_k by 0 a lower one. Newton's method descends, and
    each omega is an upper bound of the next.
    """
    xi = quadratic_root(u, ridge, spectrum.mean + x)
    lowest = quadratic_root(u, ridge, x)
    omega = resolution(x + xi, inverse, spectrum)[0]
    for _ in range(_MAX_STEPS):
        value, slope = _missing(xi, omega, u, inverse, x, ridge, spectrum)
        step = np.divide(value, slope, out=np.zeros_like(xi), where=(slope > 0) & (xi > 0))
        new = np.clip(xi - step, lowest, xi)
        moving = np.any(xi - new > 1e-15 * xi)
        xi = new
        omega = resolution(x + xi, inverse, spectrum, omega)[0]
        if not moving:
            break
    good = resolution(x + xi, inverse, spectrum, omega)[1]
    signs = []
    for side in (1.0 - _WIDTH, 1.0 + _WIDTH):
        shifted, certified = resolution(x + xi * side, inverse, spectrum)
        signs.append(_missing(xi * side, shifted, u, inverse, x, ridge, spectrum)[0])
        good = good & certified
    exactly_zero = (xi == 0) & (ridge == 0) & (u <= 1)
    return xi, omega, good & (((signs[0] <= 0) & (signs[1] >= 0)) | exactly_zero)


def _missing(
    xi: Floats, omega: Floats, u: Floats, inverse: Floats, x: Floats, ridge: Floats, spectrum: Spectrum
) -> tuple[Floats, Floats]:
    """Return xi (1 - u trd[R/(R + xi)]) - ridge and its derivative, in forms free of cancellation."""
    nu = x + xi
    t = structured_traces(nu, omega, inverse, spectrum)
    m = t.first @ spectrum.shares
    resolved = (spectrum.values / (spectrum.values + omega[:, None])) @ spectrum.shares
    rest = np.where(u < 2.0, (1.0 - u) + u * xi * m, 1.0 - u * (resolved + x * m))
    return xi * rest - ridge, rest + u * xi * (t.t12 + x * t.t02)
