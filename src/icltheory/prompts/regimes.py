"""The statistics of a kernel, and whether they are of order 1, as the theory takes them to be."""

import math
from dataclasses import dataclass
from typing import Literal

from icltheory.prompts.correlations import Correlations, PowerLaw

_SETTLED = 0.1  # local exponent up to which a statistic counts as settled: xi up to about l/8 in an exponential chain
_GROWING = 0.5  # local exponent of k2 above which it counts as proportional to l: xi above about 2l/3 there


@dataclass(frozen=True, kw_only=True)
class Statistics:
    r"""The numbers by which correlated prompts enter the theory.

    Attributes
    ----------
    k0, k1, k2 : float
        :math:`k_0 = k^\top k`, :math:`k_1 = k^\top K k`, :math:`k_2 = \frac1l \mathrm{tr}\,K^2`.
    k0_error, k1_error, k2_error : float
        Standard errors, where the kernel was estimated from sequences; 0 where it is known.
    """

    k0: float
    k1: float
    k2: float
    k0_error: float = 0.0
    k1_error: float = 0.0
    k2_error: float = 0.0

    def possible(self) -> "Statistics":
        """Return the nearest statistics that prompts can have: noise may take estimates out of k2 >= 1, k1 >= k0^2."""
        k0 = max(self.k0, 0.0)
        k1 = max(self.k1, k0**2) if k0 > 0 else 0.0
        return Statistics(
            k0=k0,
            k1=k1,
            k2=max(self.k2, 1.0),
            k0_error=self.k0_error,
            k1_error=self.k1_error,
            k2_error=self.k2_error,
        )


@dataclass(frozen=True, kw_only=True)
class Regime:
    r"""Where a kernel stands between correlations that a long context averages out and those that it does not.

    Attributes
    ----------
    name : {"weak", "borderline", "strong"}
        Weak: k0, k1 and k2 are of order 1, as the theory takes them to be. Strong: k2 grows with the context, and the
        fitted parameters no longer concentrate. Borderline: between the two, or k0 or k1 alone grow.
    reason : str
    k0_growth, k1_growth, k2_growth : float
        Local exponents of growth with l, between l/2 and l: of :math:`1 + k_0`, :math:`1 + k_1` and :math:`k_2`.
    """

    name: Literal["weak", "borderline", "strong"]
    reason: str
    k0_growth: float
    k1_growth: float
    k2_growth: float


def judge(
    source: Correlations,
    now: tuple[float, float, float],
    before: tuple[float, float, float],
    shorter: int,
    query: str,
) -> Regime:
    """Judge a kernel by (k0, k1, k2) of all its tokens and of the last, shorter, part of them, and by its family."""
    length = source.length
    if length == 1:
        return _regime("borderline", "one token is too few to tell", (0.0, 0.0, 0.0))
    offsets = (1.0, 1.0, 0.0)  # k2 >= 1, while k0 and k1 matter only where they are not small against 1
    growth = tuple(
        math.log(max(a + o, 1e-300) / max(b + o, 1e-300)) / math.log(length / shorter)
        for a, b, o in zip(now, before, offsets, strict=True)
    )
    k0, k1, k2 = growth
    if isinstance(source, PowerLaw):
        known = _power_law(source.gamma, query)
        if known is not None:
            return _regime(*known, (k0, k1, k2))
    elif k2 > _GROWING:
        return _regime("strong", f"k2 grows like l^{k2:.2f} at l = {length}", (k0, k1, k2))
    fastest, rate = max(zip(("k0", "k1", "k2"), growth, strict=True), key=lambda item: item[1])
    if rate > _SETTLED:
        return _regime("borderline", f"{fastest} still grows like l^{rate:.2f} at l = {length}", (k0, k1, k2))
    settled = "k2 has" if query == "independent" else "k0, k1 and k2 have"
    return _regime("weak", f"{settled} settled: none grows faster than l^{_SETTLED} at l = {length}", (k0, k1, k2))


def _power_law(gamma: float, query: str) -> tuple[Literal["borderline", "strong"], str] | None:
    r"""Return what is known as l -> infinity; None if all statistics converge.

    :math:`k_2 \sim \sum_j j^{-2\gamma}`. For the next token :math:`(Kk)_j \sim j^{1-2\gamma}` at distance j while
    gamma < 1, so that :math:`k_1 \sim \sum_j j^{1-3\gamma}`.
    """
    if gamma < 0.5:
        return "strong", f"k2 grows without bound for gamma < 1/2, like l^{1 - 2 * gamma:.2f}"
    if gamma == 0.5:
        return "borderline", "k2 grows like log l at gamma = 1/2"
    if query == "next" and gamma <= 2 / 3:
        return "borderline", "k2 converges, but k1 grows without bound for gamma <= 2/3"
    return None


def _regime(name: Literal["weak", "borderline", "strong"], reason: str, growth: tuple[float, float, float]) -> Regime:
    return Regime(name=name, reason=reason, k0_growth=growth[0], k1_growth=growth[1], k2_growth=growth[2])
