"""Kernels that look nothing alike but have the same k2."""

import math
from collections.abc import Callable

import numpy as np

from icltheory.prompts.kernels import Kernel

FAMILIES = ("exponential", "power law", "blocks", "random")
WEAKEST = 16  # k2 up to l/16 is shown
_DIRECTIONS = 16  # of the random kernel


def kernel_of(family: str, k2: float, context_length: int) -> Kernel:
    r"""Return the kernel of a family that has :math:`\frac1l \mathrm{tr} K^2` = k2.

    Blocks of l/16 tokens have one correlation within, none between them; at k2 = l/16 they are copies of one token. The
    random kernel is that of random unit vectors in 16 dimensions plus noise. In both, correlations are proportional to
    :math:`\sqrt{k_2 - 1}`.
    """
    if family == "exponential":
        return _tuned(lambda xi: Kernel.exponential(xi, context_length), k2, 0.0, float(context_length))
    if family == "power law":
        # in 1/gamma, of which k2 is an increasing function
        return _tuned(
            lambda width: Kernel.power_law(1.0 / width if width > 0 else np.inf, context_length), k2, 0.0, 10.0
        )
    index = np.arange(context_length)
    if family == "blocks":
        block = index // (context_length // WEAKEST)
        shape = (block[:, None] == block[None, :]).astype(np.float64)
    elif family == "random":
        vectors = np.random.default_rng(2026).standard_normal((context_length, _DIRECTIONS))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        shape = vectors @ vectors.T
    else:
        raise ValueError(f"family must be one of {FAMILIES}, got {family!r}")
    np.fill_diagonal(shape, 0.0)
    size = math.sqrt((k2 - 1.0) * context_length / float(np.vdot(shape, shape)))
    return Kernel.from_matrix(np.eye(context_length) + size * shape)


def _tuned(family: Callable[[float], Kernel], k2: float, low: float, high: float) -> Kernel:
    from scipy.optimize import brentq

    return family(float(brentq(lambda parameter: family(parameter).k2 - k2, low, high, xtol=1e-10)))
