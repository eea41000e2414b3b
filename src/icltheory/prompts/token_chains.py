"""Tokens that resemble each other: from independent draws to a prompt with the correlations of a kernel."""

from collections.abc import Callable

import numpy as np

from icltheory.points import Floats
from icltheory.prompts.correlations import Exponential
from icltheory.prompts.kernels import Kernel, Query
from icltheory.prompts.label_sums import chain_regression, chain_steps, eigenbasis

Colour = Callable[[Floats, Floats], tuple[Floats, Floats]]


def token_colouring(kernel: Kernel | None, query: Query) -> Colour:
    r"""Return ``colour(x, query)``, which correlates independent tokens (b, l, d) and queries (b, d).

    A chain of exponential correlations is run through in order, O(l) a prompt; any other kernel takes the factor
    :math:`V \Lambda^{1/2}` of K, O(l^2). The query is its regression on the tokens plus what that leaves,
    :math:`x_{l+1} = \sum_a (K^{-1} k)_a x_a + \sqrt{1 - k^\top K^{-1} k}\; z`.
    """
    if kernel is None:
        return lambda x, last: (x, last)
    k = kernel.query_vector(query)
    source = kernel.correlations
    if isinstance(source, Exponential) and np.isfinite(source.xi):
        mix, weights = _along_the_chain(*chain_steps(source)), chain_regression(source, k)
    else:
        values, vectors = eigenbasis(kernel.matrix())
        factor, turned = vectors * np.sqrt(values), vectors.T @ k
        weights = vectors @ np.where(values > 0, turned / np.where(values > 0, values, 1.0), 0.0)

        def mix(x: Floats) -> Floats:
            product: Floats = factor @ x
            return product

    left = np.sqrt(max(0.0, 1.0 - float(weights @ k)))

    def colour(x: Floats, last: Floats) -> tuple[Floats, Floats]:
        tokens = mix(x)
        if not k.any():
            return tokens, last
        return tokens, np.einsum("a,nad->nd", weights, tokens) + left * last

    return colour


def _along_the_chain(r: float, step: float) -> Callable[[Floats], Floats]:
    from scipy.signal import lfilter

    def mix(x: Floats) -> Floats:
        scaled = x.copy()
        scaled[:, 1:] *= step
        chained: Floats = lfilter([1.0], [1.0, -r], scaled, axis=1)
        return chained

    return mix
