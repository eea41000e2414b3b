"""How an interpolation threshold grows with the dimension."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Exponent:
    """The slope of log n* against log d, its standard error, and the prefactor."""

    value: float
    se: float
    prefactor: float


def threshold_exponent(d: Sequence[int], n: Sequence[float]) -> Exponent:
    r"""Fit :math:`n^* = c\, d^{\,\beta}` by least squares in logarithms, one entry for every repetition.

    Returns
    -------
    Exponent
        The slope, and its standard error from the scatter about the line with (entries - 2) degrees of freedom.

    Examples
    --------
    >>> fit = threshold_exponent([4, 8, 16], [17.0, 62.0, 260.0])
    >>> round(fit.value, 2), round(fit.se, 2)
    (1.97, 0.06)
    """
    x, y = np.log(np.asarray(d, dtype=float)), np.log(np.asarray(n, dtype=float))
    if x.shape != y.shape:
        raise ValueError(f"d and n must have one entry for every repetition, got {len(d)} and {len(n)}")
    if len(x) < 3 or np.ptp(x) == 0:
        raise ValueError(f"an exponent with its error needs three entries and two dimensions, got d = {list(d)}")
    spread = x - x.mean()
    slope = float(spread @ y / (spread @ spread))
    rest = y - y.mean() - slope * spread
    se = math.sqrt(float(rest @ rest) / (len(x) - 2) / float(spread @ spread))
    return Exponent(value=slope, se=se, prefactor=float(np.exp(y.mean() - slope * x.mean())))
