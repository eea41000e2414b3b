r"""Polynomials on [0, 1] in the Bernstein basis, many at a time: products, bounds, and all roots, counted for certain.

A polynomial of degree n is an array of n + 1 coefficients along the last axis, :math:`p(s) = \sum_i b_i
\binom ni s^i (1-s)^{n-i}`. Its ends are b_0 and b_n exactly, products of non-negative coefficients are
non-negative, and the number of roots in (0, 1) is at most the number of sign changes of the coefficients, and differs
from it by an even number (Descartes' rule of signs). So 0 sign changes prove that there is no root and 1 that there is
exactly one; else the interval is cut in two and each half is counted anew.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from icltheory.points import Booleans, Floats

_DEPTH = 48  # halvings before two roots are held to be indistinguishable
_CUT = 0.4921875  # not a half, which a symmetric problem may have as its root
_ROUNDING = 1e-14  # of a coefficient, relative to the sum of the absolute values that it was made of
_BISECTIONS = 60


def line(start: Floats, end: Floats) -> Floats:
    """Return the polynomial of degree 1 with these values at 0 and 1."""
    return np.stack(np.broadcast_arrays(start, end), axis=-1)


def multiply(*factors: Floats) -> Floats:
    """Return the product of polynomials of any degrees."""
    product = factors[0]
    for factor in factors[1:]:
        n, m = product.shape[-1] - 1, factor.shape[-1] - 1
        shape = np.broadcast_shapes(product.shape[:-1], factor.shape[:-1])
        result = np.zeros((*shape, n + m + 1))
        for i in range(n + 1):
            for j in range(m + 1):
                result[..., i + j] += comb(n, i) * comb(m, j) / comb(n + m, i + j) * product[..., i] * factor[..., j]
        product = result
    return product


def add(*terms: Floats) -> Floats:
    """Return the sum of polynomials of any degrees."""
    degree = max(term.shape[-1] for term in terms) - 1
    total: Floats = sum(multiply(term, np.ones(degree - term.shape[-1] + 2)) for term in terms)  # type: ignore[assignment]
    return total


def slope(numerator: Floats, denominator: Floats) -> tuple[Floats, Floats]:
    """Return p, which has the sign of the derivative of numerator/denominator, and a bound on its rounding errors."""
    n, m = numerator.shape[-1] - 1, denominator.shape[-1] - 1
    # of a constant the derivative is 0, of degree 0
    up = n * np.diff(numerator) if n else np.zeros_like(numerator)
    down = m * np.diff(denominator) if m else np.zeros_like(denominator)
    p = add(multiply(up, denominator), -multiply(numerator, down))
    top, bottom = np.abs(numerator), np.abs(denominator)
    up, down = (
        k * (size[..., 1:] + size[..., :-1]) if k else np.zeros_like(size) for k, size in ((n, top), (m, bottom))
    )
    return p, _ROUNDING * add(multiply(up, bottom), multiply(top, down))


def evaluate(p: Floats, s: Floats) -> Floats:
    """Return p(s); p has shape (..., n + 1) and s shape (...)."""
    n = p.shape[-1] - 1
    total = np.zeros(np.broadcast_shapes(p.shape[:-1], s.shape))
    for i in range(n + 1):
        total = total + comb(n, i) * p[..., i] * s**i * (1.0 - s) ** (n - i)
    return total


@dataclass(frozen=True)
class Roots:
    """Roots in the open interval (0, 1) of m polynomials.

    Attributes
    ----------
    owner : array of int, shape (r,)
        Whose root each one is.
    low, high : array, shape (r,)
        Bracket on which the polynomial changes sign.
    rising : array of bool, shape (r,)
        Whether it goes from negative to positive.
    certified : array of bool, shape (m,)
        Whether the roots of this polynomial are all here, to rounding.
    """

    owner: np.ndarray
    low: Floats
    high: Floats
    rising: Booleans
    certified: Booleans


def roots(p: Floats, rounding: Floats) -> Roots:
    """Return all roots in (0, 1) of the polynomials p, shape (m, n + 1), whose coefficients are known to +-rounding."""
    certified = np.any(np.abs(p) > rounding, axis=-1)
    owner = np.flatnonzero(certified)
    low, high = np.zeros(len(owner)), np.ones(len(owner))
    part, error = p[owner], rounding[owner]
    found: list[tuple[np.ndarray, Floats, Floats, Booleans]] = []
    for _ in range(_DEPTH):
        changes, start = _sign_changes(part, error, low > 0, high < 1)
        certified[owner[start == 0]] = False  # nothing but rounding errors
        one = changes == 1
        found.append((owner[one], low[one], high[one], start[one] < 0))
        many = (changes > 1) & (start != 0)
        if not np.any(many):
            break
        owner, low, high, part, error = owner[many], low[many], high[many], part[many], error[many]
        middle = low + _CUT * (high - low)
        (left, right), (left_error, right_error) = _cut(part), _cut(error)
        owner = np.concatenate([owner, owner])
        part, error = np.concatenate([left, right]), np.concatenate([left_error, right_error])
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    else:
        certified[owner] = False
    owners, lows, highs, risings = zip(*found, strict=True)
    owner, rising = np.concatenate(owners), np.concatenate(risings)
    low, high = _bisect(p[owner], np.concatenate(lows), np.concatenate(highs), rising)
    return Roots(owner=owner, low=low, high=high, rising=rising, certified=certified)


def _sign_changes(
    p: Floats, rounding: Floats, cut_before: Booleans, cut_after: Booleans
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest number of sign changes that the coefficients may have, and the sign of the first certain one.

    Uncertain coefficients at an end of [0, 1] are left out: they can only add roots that are there, to rounding. At a
    cut they may hide any.
    """
    signs = np.where(np.abs(p) > rounding, np.sign(p), 0).astype(int)
    changes, uncertain, start, last = np.zeros((4, len(p)), dtype=int)
    for sign in signs.T:
        inner = (sign != 0) & (last != 0)
        # between equal signs an uncertain one may hide two changes; between opposite signs it takes two of them
        hidden = np.where(sign == last, uncertain > 0, uncertain > 1)
        changes += inner * ((sign != last) + 2 * hidden)
        changes += 2 * ((sign != 0) & (last == 0) & (uncertain > 0) & cut_before)
        uncertain = np.where(sign == 0, uncertain + 1, 0)
        start = np.where(start == 0, sign, start)
        last = np.where(sign != 0, sign, last)
    return changes + 2 * ((uncertain > 0) & cut_after), start


def _cut(p: Floats) -> tuple[Floats, Floats]:
    """Return the polynomials on both sides of _CUT, each rescaled to [0, 1] (de Casteljau)."""
    left, right, row = [p[:, 0]], [p[:, -1]], p
    while row.shape[1] > 1:
        row = (1.0 - _CUT) * row[:, :-1] + _CUT * row[:, 1:]
        left.append(row[:, 0])
        right.append(row[:, -1])
    return np.stack(left, axis=1), np.stack(right[::-1], axis=1)


def _bisect(p: Floats, low: Floats, high: Floats, rising: Booleans) -> tuple[Floats, Floats]:
    sign = np.where(rising, 1.0, -1.0)
    for _ in range(_BISECTIONS):
        middle = low + (high - low) / 2
        above = sign * evaluate(p, middle) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return low, high
