"""Direct solvers: Cholesky factors of the dual (n x n) or primal (p x p) Gram matrix, or the SVD of the features."""

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve
from scipy.linalg import svd as singular_values

from icltheory.simulate.khatri_rao import Array, KhatriRao

_REFINEMENTS = 2


def dual(features: KhatriRao, target: Array, penalty: float) -> Array:
    r"""Return :math:`G = F^\top a` with :math:`(F F^\top + \mu) a = y`: O(n^2) memory; the minimum norm at mu = 0."""
    factor = _factor(features.dual_gram().T, penalty, lower=False)
    a = np.zeros_like(target)
    for _ in range(1 + _REFINEMENTS):
        a += cho_solve(factor, target - features.forward(features.adjoint(a)) - penalty * a, check_finite=False)
    return features.adjoint(a)


def primal(features: KhatriRao, target: Array, penalty: float) -> Array:
    r"""Return G from :math:`(F^\top F + \mu)\,\mathrm{vec}(G) = F^\top y`: O(p^2) memory, p = d(d+1).

    Refinement takes its residual from the features, not from the Gram matrix, so that the rounding error grows with
    the condition of F and not with its square.
    """
    p = features.shape[1]
    gram = np.zeros((p, p), order="F")
    for rows in features.feature_blocks():
        gram = blas.dsyrk(1.0, rows.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
    factor = _factor(gram, penalty, lower=True)
    g = np.zeros((features.x.shape[1], features.r.shape[1]))
    for _ in range(1 + _REFINEMENTS):
        slope = features.adjoint(target - features.forward(g)) - penalty * g
        g += cho_solve(factor, slope.ravel(), check_finite=False).reshape(g.shape)
    return g


def svd(features: KhatriRao, target: Array, penalty: float) -> Array:
    r"""Return :math:`G = V \frac{s}{s^2 + \mu} U^\top y` from the features themselves: O(np) memory, many times slower.

    It never squares the condition of F, and so still answers where a Gram matrix is singular to working precision.
    """
    u, s, vt = singular_values(
        np.concatenate(list(features.feature_blocks())), full_matrices=False, overwrite_a=True, check_finite=False
    )
    kept = s > np.finfo(s.dtype).eps * max(features.shape) * s[0]
    weights = np.where(kept, s / np.where(kept, s**2 + penalty, 1.0), 0.0)
    g: Array = (vt.T @ (weights * (u.T @ target))).reshape(features.x.shape[1], features.r.shape[1])
    return g


def _factor(gram: Array, penalty: float, *, lower: bool) -> tuple[Array, bool]:
    """Factor gram + penalty in place; one triangle of a Fortran-ordered array is read."""
    gram[np.diag_indices_from(gram)] += penalty
    try:
        factor: tuple[Array, bool] = cho_factor(gram, lower=lower, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise ArithmeticError("the Gram matrix is singular to working precision") from error
    return factor
