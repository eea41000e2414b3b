"""Direct solvers: Cholesky factors of the dual (n x n) or primal (p x p) Gram matrix, or the SVD of the features.

Each returns (G, condition): the answer, and an estimate of the condition number of the matrix it worked with.
"""

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack
from scipy.linalg import svd as singular_values

from icltheory.simulate.khatri_rao import Array, KhatriRao

_REFINEMENTS = 2


def dual(features: KhatriRao, target: Array, penalty: float) -> tuple[Array, float]:
    r"""Return :math:`G = F^\top a` with :math:`(F F^\top + \mu) a = y`: O(n^2) memory; the minimum norm at mu = 0."""
    factor, condition = _factor(features.dual_gram().T, penalty, lower=False)
    a = np.zeros_like(target)
    for _ in range(1 + _REFINEMENTS):
        a += cho_solve(factor, target - features.forward(features.adjoint(a)) - penalty * a, check_finite=False)
    return features.adjoint(a), condition


def primal(features: KhatriRao, target: Array, penalty: float) -> tuple[Array, float]:
    r"""Return G from :math:`(F^\top F + \mu)\,\mathrm{vec}(G) = F^\top y`: O(p^2) memory, p = d(d+1).

    Refinement takes its residual from the features, not from the Gram matrix, so that the rounding error grows with
    the condition of F and not with its square.
    """
    factor, condition = _factor(features.gram(), penalty, lower=True)
    g = np.zeros(features.shape_of_g)
    for _ in range(1 + _REFINEMENTS):
        slope = features.adjoint(target - features.forward(g)) - penalty * g
        g += cho_solve(factor, slope.ravel(), check_finite=False).reshape(g.shape)
    return g, condition


def svd(features: KhatriRao, target: Array, penalty: float) -> tuple[Array, float]:
    r"""Return :math:`G = V \frac{s}{s^2 + \mu} U^\top y` from the features themselves: O(np) memory, many times slower.

    It never squares the condition of F, and so still answers where a Gram matrix is singular to working precision.
    """
    u, s, vt = singular_values(
        np.concatenate(list(features.feature_blocks())), full_matrices=False, overwrite_a=True, check_finite=False
    )
    kept = s > np.finfo(s.dtype).eps * max(features.shape) * s[0]
    weights = np.where(kept, s / np.where(kept, s**2 + penalty, 1.0), 0.0)
    return (vt.T @ (weights * (u.T @ target))).reshape(features.shape_of_g), float(s[0] / s[kept].min())


def _factor(gram: Array, penalty: float, *, lower: bool) -> tuple[tuple[Array, bool], float]:
    """Factor gram + penalty in place; one triangle of a Fortran-ordered array is read."""
    gram[np.diag_indices_from(gram)] += penalty
    norm = _one_norm(gram)
    try:
        factor = cho_factor(gram, lower=lower, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise ArithmeticError("the Gram matrix is singular to working precision") from error
    reciprocal, _ = lapack.dpocon(factor[0], norm, uplo="L" if lower else "U")
    return factor, 1.0 / reciprocal if reciprocal > 0 else math.inf


def _one_norm(triangle: Array) -> float:
    """Return the 1-norm of the symmetric matrix of which one triangle is given, the other being zero."""
    sums = np.zeros(len(triangle))
    for start in range(0, len(triangle), 256):
        block = np.abs(triangle[:, start : start + 256])
        sums += block.sum(axis=1)
        sums[start : start + 256] += block.sum(axis=0)
    return float((sums - np.abs(np.diag(triangle))).max())
