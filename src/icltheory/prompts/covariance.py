"""Covariances of structured tasks: three spectra, and what is accepted as a covariance."""

from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats

_ROUNDING = 1e-10  # asymmetry and negative eigenvalues forgiven, relative to the largest entry


def power_law(d: int, exponent: float) -> Floats:
    r"""Return eigenvalues that decay as a power, of mean 1.

    .. math:: \lambda_i = \frac{d\, i^{-a}}{\sum_{j \le d} j^{-a}} , \qquad i = 1, \dots, d .

    Parameters
    ----------
    d : int
        Token dimension.
    exponent : float
        a >= 0; 0 gives the identity.

    Returns
    -------
    array of shape (d,)
        Eigenvalues, the largest first: a covariance C, diagonal in the token basis, with signal variance
        :math:`\frac1d \mathrm{tr}\, C = 1`.

    Examples
    --------
    >>> power_law(3, 1.0).round(3).tolist()
    [1.636, 0.818, 0.545]
    """
    size = _integer("d", d)
    power = _number("exponent", exponent, lambda value: value >= 0, ">= 0 and finite")
    return _mean_one(np.arange(1.0, size + 1.0) ** -power)


def spiked(d: int, strength: float, *, rank: int = 1) -> Floats:
    r"""Return the eigenvalues of identity plus a spike, scaled to mean 1.

    .. math:: \lambda_i \propto 1 + \theta\, 1\{i \le q\} , \qquad i = 1, \dots, d .

    Parameters
    ----------
    d : int
        Token dimension.
    strength : float
        theta > -1, the excess variance of the spiked directions before scaling.
    rank : int, default 1
        q, the number of spiked directions, 1 to d.

    Returns
    -------
    array of shape (d,)
        Eigenvalues in the token basis.

    Examples
    --------
    >>> spiked(4, 4.0).tolist()
    [2.5, 0.5, 0.5, 0.5]
    """
    size = _integer("d", d)
    spike = _number("strength", strength, lambda value: value > -1, "> -1 and finite")
    values = np.ones(size)
    values[: _integer("rank", rank, size)] += spike
    return _mean_one(values)


def low_rank(d: int, rank: int) -> Floats:
    r"""Return equal eigenvalues on the first directions and zero elsewhere: :math:`\lambda_i = (d/q)\, 1\{i \le q\}`.

    Parameters
    ----------
    d : int
        Token dimension.
    rank : int
        q, the dimension of the space in which the tasks lie, 1 to d.

    Returns
    -------
    array of shape (d,)
        Eigenvalues in the token basis, of mean 1.

    Examples
    --------
    >>> low_rank(4, 2).tolist()
    [2.0, 2.0, 0.0, 0.0]
    """
    size = _integer("d", d)
    values = np.zeros(size)
    values[: _integer("rank", rank, size)] = 1.0
    return _mean_one(values)


def check_covariance(name: str, covariance: ArrayLike, d: int) -> Floats:
    """Return a covariance as a float array, or raise an error that names the argument and what is wrong with it.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    covariance : array of shape (d,) or (d, d)
        Eigenvalues, for a covariance that is diagonal in the token basis, or a symmetric positive semidefinite matrix.
        Its scale is free: the signal variance is its normalised trace.
    d : int
        Token dimension.

    Returns
    -------
    array of the same shape
        Symmetric; eigenvalues that are negative only by rounding are set to zero.

    Raises
    ------
    ValueError, TypeError
        For a wrong shape or type, entries that are not finite, an asymmetric matrix, a negative eigenvalue, or rank 0.
    """
    value = np.asarray(covariance)
    if value.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be an array of real numbers, got {covariance!r}")
    if value.shape not in ((d,), (d, d)):
        raise ValueError(
            f"{name} must have shape (d,) = {(d,)} (eigenvalues in the token basis) or (d, d) = {(d, d)}, "
            f"got {value.shape}"
        )
    value = value.astype(np.float64)
    if not np.all(np.isfinite(value)):
        index = tuple(map(int, np.argwhere(~np.isfinite(value))[0]))
        raise ValueError(f"{name} must be finite, got {value[index]:g} at index {index}")
    matrix = _symmetric(name, value) if value.ndim == 2 else None
    eigenvalues = value if matrix is None else np.linalg.eigvalsh(matrix)
    smallest, largest = float(eigenvalues.min()), float(eigenvalues.max())
    if smallest < -_ROUNDING * np.abs(eigenvalues).max():
        raise ValueError(f"{name} must be positive semidefinite, got the eigenvalue {smallest:g}")
    if not 1e-50 <= largest <= 1e50:
        raise ValueError(
            f"{name} must have a largest eigenvalue between 1e-50 and 1e50, got {largest:g} "
            "(at rank 0 there is no task to learn)"
        )
    return np.maximum(value, 0.0) if matrix is None else matrix


def square_root(covariance: Floats) -> Floats:
    r"""Return the symmetric :math:`C^{1/2}` of a checked covariance, in its own form: (d,) or (d, d)."""
    if covariance.ndim == 1:
        return np.sqrt(covariance)
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def _symmetric(name: str, matrix: Floats) -> Floats:
    difference = np.abs(matrix - matrix.T)
    if difference.max() > _ROUNDING * np.abs(matrix).max():
        i, j = map(int, np.unravel_index(int(difference.argmax()), matrix.shape))
        raise ValueError(
            f"{name} must be symmetric, got {matrix[i, j]:g} at index {(i, j)} and {matrix[j, i]:g} at {(j, i)}"
        )
    half: Floats = 0.5 * (matrix + matrix.T)
    return half


def _mean_one(values: Floats) -> Floats:
    scaled: Floats = values / values.mean()
    return scaled


def _number(name: str, value: float, good: Callable[[float], bool], allowed: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be one number, got {value!r}")
    if not (np.isfinite(value) and good(value)):
        raise ValueError(f"{name} must be {allowed}, got {value:g}")
    return float(value)


def _integer(name: str, value: int, most: int | None = None) -> int:
    allowed = "an integer >= 1" if most is None else f"an integer from 1 to d = {most}"
    return int(_number(name, value, lambda v: v == int(v) and 1 <= v <= (most or np.inf), allowed))
