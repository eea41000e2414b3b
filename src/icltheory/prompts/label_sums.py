"""What linear attention sees of a context along its task: five numbers a prompt, drawn without a single token."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from icltheory.points import Floats
from icltheory.prompts.correlations import ROUNDING, Exponential
from icltheory.prompts.kernels import Kernel, Query
from icltheory.resources import require_memory

_ZERO = 1e-12  # an eigenvalue of K, of which the largest may be l, below which it is rounding


@dataclass(frozen=True, kw_only=True)
class LabelSums:
    r"""Sums over the context of b prompts; :math:`g_a = \sqrt d\, x_a \cdot w/|w|` is a token's part along its task.

    Attributes
    ----------
    squared : array of shape (b,)
        :math:`|y|^2`.
    along : array of shape (b,)
        :math:`y^\top g`.
    energy : array of shape (b,)
        :math:`y^\top K y`: d times the variance of each entry of :math:`\sum_a y_a x_a` orthogonal to the task.
    overlap : array of shape (b,)
        :math:`y^\top k`: d times its covariance with the query's.
    query_mean : array of shape (b,)
        What the context makes one expect of the query's part along the task, :math:`k^\top K^{-1} g`.
    """

    squared: Floats
    along: Floats
    energy: Floats
    overlap: Floats
    query_mean: Floats


Draw = Callable[[Floats, np.random.Generator, np.random.Generator], LabelSums]


def label_sampler(length: int, rho: float, kernel: Kernel | None, query: Query) -> tuple[Draw, float]:
    r"""Return ``draw(signal, normal, gamma)`` and the variance that the context leaves to the query's parts.

    Labels are :math:`y_a = m g_a + \sqrt\rho\, e_a` with :math:`g \sim N(0, K)`, m = |w|/sqrt(d) the `signal` of each
    prompt, and the variance left is :math:`1 - k^\top K^{-1} k`. Independent tokens cost O(1) a prompt, whatever their
    number; a chain of exponential correlations O(l), in order of its tokens; any other kernel O(l), in its eigenbasis.
    """
    if kernel is None:
        return _independent(length, rho), 1.0
    k, source = kernel.query_vector(query), kernel.correlations
    if isinstance(source, Exponential) and source.xi == 0 and not k.any():
        return _independent(length, rho), 1.0
    if isinstance(source, Exponential) and np.isfinite(source.xi):
        return _chain(source, rho, k)
    return _in_eigenbasis(kernel.matrix(), rho, k)


def _independent(length: int, rho: float) -> Draw:
    r"""Draw for K = I, k = 0 from the Gram matrix of (g, e), a 2 x 2 Wishart matrix.

    Bartlett: :math:`g \cdot g` is chi-squared with l degrees of freedom, :math:`g \cdot e = |g| z` with z standard
    normal, and :math:`e \cdot e = z^2` plus a chi-squared variate with l - 1 degrees of freedom.
    """
    noise = np.sqrt(rho)

    def draw(signal: Floats, normal: np.random.Generator, gamma: np.random.Generator) -> LabelSums:
        z = normal.standard_normal(len(signal))
        chi2 = 2.0 * gamma.standard_gamma((length / 2.0, (length - 1) / 2.0), size=(len(signal), 2))
        gg, ge, ee = chi2[:, 0], np.sqrt(chi2[:, 0]) * z, z**2 + chi2[:, 1]
        squared = signal**2 * gg + 2 * noise * signal * ge + rho * ee
        nothing = np.zeros(len(signal))
        return LabelSums(
            squared=squared, along=signal * gg + noise * ge, energy=squared, overlap=nothing, query_mean=nothing
        )

    return draw


def _chain(source: Exponential, rho: float, k: Floats) -> tuple[Draw, float]:
    r"""Draw a chain, :math:`g_{a+1} = r g_a + \sqrt{1-r^2}\,N(0,1)`; its :math:`K^{-1}` is tridiagonal."""
    from scipy.signal import lfilter

    r, step = chain_steps(source)
    weights = chain_regression(source, k)

    def draw(signal: Floats, normal: np.random.Generator, gamma: np.random.Generator) -> LabelSums:
        g = normal.standard_normal((len(signal), len(k)))
        g[:, 1:] *= step
        g = lfilter([1.0], [1.0, -r], g, axis=1)
        y = signal[:, None] * g + np.sqrt(rho) * gamma.standard_normal(g.shape)
        squared = np.einsum("ij,ij->i", y, y)
        # (K y)_a = sum over b <= a plus sum over b > a, and K is symmetric: y K y = 2 y.(first sum) - y.y
        past = lfilter([1.0], [1.0, -r], y, axis=1)
        return LabelSums(
            squared=squared,
            along=np.einsum("ij,ij->i", y, g),
            energy=2.0 * np.einsum("ij,ij->i", y, past) - squared,
            overlap=y @ k,
            query_mean=g @ weights,
        )

    return draw, max(0.0, 1.0 - float(weights @ k))


def chain_steps(source: Exponential) -> tuple[float, float]:
    r"""Return r and :math:`\sqrt{1-r^2}` of a chain."""
    if source.xi == 0:
        return 0.0, 1.0
    return float(np.exp(-1.0 / source.xi)), float(np.sqrt(-np.expm1(-2.0 / source.xi)))


def chain_regression(source: Exponential, k: Floats) -> Floats:
    r"""Return :math:`K^{-1} k`, the query's regression on the tokens of a chain, by way of its innovations."""
    r, step = chain_steps(source)
    innovations = np.concatenate([k[:1], (k[1:] - r * k[:-1]) / step])
    weights: Floats = innovations / np.concatenate([[1.0], np.full(len(k) - 1, step)])
    weights[:-1] -= r * innovations[1:] / step
    return weights


def eigenbasis(matrix: Floats) -> tuple[Floats, Floats]:
    """Return K's eigenvalues, those that are only rounding set to zero, and its eigenvectors.

    Raises
    ------
    ValueError
        If an eigenvalue is negative by more than rounding, as those of an estimated kernel may be.
    """
    require_memory(24.0 * matrix.size, f"the eigenvectors of a kernel of {len(matrix)} tokens", "take shorter contexts")
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -ROUNDING * len(matrix):
        raise ValueError(
            f"kernel must be positive semidefinite to draw tokens, got the eigenvalue {values[0]:.3g}; an estimate "
            "seldom is: draw from a family near it, such as Kernel.exponential, or from_matrix of a projection"
        )
    return np.where(values > _ZERO * len(matrix), values, 0.0), vectors


def _in_eigenbasis(matrix: Floats, rho: float, k: Floats) -> tuple[Draw, float]:
    r"""Draw in the basis of K's eigenvectors, in which tokens are independent and label noise is as it was."""
    values, vectors = eigenbasis(matrix)
    turned = vectors.T @ k
    # per unit of the independent normal variables behind g
    weights = np.where(values > 0, turned / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)

    def draw(signal: Floats, normal: np.random.Generator, gamma: np.random.Generator) -> LabelSums:
        z = normal.standard_normal((len(signal), len(k)))
        g = np.sqrt(values) * z
        y = signal[:, None] * g + np.sqrt(rho) * gamma.standard_normal(g.shape)
        return LabelSums(
            squared=np.einsum("ij,ij->i", y, y),
            along=np.einsum("ij,ij->i", y, g),
            energy=np.einsum("ij,ij,j->i", y, y, values),
            overlap=y @ turned,
            query_mean=z @ weights,
        )

    return draw, max(0.0, 1.0 - float(weights @ weights))
