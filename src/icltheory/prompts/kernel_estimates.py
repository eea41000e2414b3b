"""Estimates of a stationary kernel from sequences of tokens, and the jackknife that corrects what is made of them."""

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats
from icltheory.prompts.correlations import Estimated, Tabulated

_GROUPS = 100  # of sequences, left out one at a time: that many give an error bar to 7 %


def estimate(tokens: ArrayLike, length: int | None) -> Estimated:
    """Return the estimated correlations of `length` tokens (default: all), see `Kernel.from_sequences`."""
    x = _sequences(tokens)
    n, m, _ = x.shape
    length = m if length is None else length
    if length > m:
        raise ValueError(f"context_length must be at most {m}, the tokens of a sequence, got {length}")
    groups = [x[rows[0] : rows[-1] + 1] for rows in np.array_split(np.arange(n), min(n, _GROUPS))]
    sums = np.array([len(group) * _autocovariances(group) for group in groups])
    rest = sums.sum(axis=0) - sums
    if not np.all(rest[:, 0] > 0):
        raise ValueError("tokens must not all be zero, nor in all sequences but a hundredth of them")
    total = sums.sum(axis=0)
    return Estimated(
        values=total / total[0],
        length=length,
        left_out=tuple(Tabulated(each / each[0], length) for each in rest),
        shares=np.array([n / len(group) for group in groups]),
    )


def jackknife(value: Floats, left_out: Floats, shares: Floats) -> tuple[Floats, Floats]:
    r"""Return an estimate free of bias and its standard error, from values with one group of sequences left out.

    .. math:: \theta_J = G \theta - \sum_g (1 - 1/h_g)\, \theta_{(g)} , \qquad
              \mathrm{var} = \frac1G \sum_g \frac{(h_g \theta - (h_g - 1)\, \theta_{(g)} - \theta_J)^2}{h_g - 1} ,

    with :math:`h_g` = n/(size of group g) (Busing, Meijer, van der Leeden, Statistics and Computing 9, 1999).

    Parameters
    ----------
    value : array of shape (p,)
        From all sequences.
    left_out : array of shape (G, p)
    shares : array of shape (G,)
        h.
    """
    h = shares[:, None]
    best = len(h) * value - np.sum((1.0 - 1.0 / h) * left_out, axis=0)
    pseudo = h * value - (h - 1.0) * left_out
    variance = np.mean((pseudo - best) ** 2 / (h - 1.0), axis=0)
    return best, np.sqrt(variance)


def _autocovariances(tokens: Floats, max_bytes: int = 2**26) -> Floats:
    r"""Return the mean over sequences of :math:`\frac{1}{m-j} \sum_a x_a \cdot x_{a+j}`, for all lags j < m."""
    n, m, d = tokens.shape
    size = 2 * m  # zero padding: no pair wraps around
    step = max(1, max_bytes // (16 * size * d))
    power = np.zeros(m + 1)
    for start in range(0, n, step):
        spectrum = np.fft.rfft(tokens[start : start + step], size, axis=1)
        for part in (spectrum.real, spectrum.imag):
            power += np.einsum("nfd,nfd->f", part, part)
    sums: Floats = np.fft.irfft(power, size)[:m]
    mean: Floats = sums / (n * (m - np.arange(m)))
    return mean


def _sequences(tokens: ArrayLike) -> Floats:
    value = np.asarray(tokens)
    if value.dtype.kind not in "iuf":
        raise TypeError(f"tokens must be an array of real numbers, got {tokens!r}")
    if value.ndim != 3 or 0 in value.shape or value.shape[0] < 2:
        raise ValueError(f"tokens must have shape (n, m, d) with n >= 2 sequences, got {value.shape}")
    if not np.all(np.isfinite(value)):
        index = tuple(map(int, np.argwhere(~np.isfinite(value))[0]))
        raise ValueError(f"tokens must be finite, got {value[index]:g} at index {index}")
    return value.astype(np.float64, copy=False)
