"""The limit of strong correlations: regression on features whose scale differs from prompt to prompt."""

import numpy as np
from numpy.typing import ArrayLike


def error_without_signal(eigenvalues: ArrayLike, *, tau: float, rho: float) -> float:
    r"""Return the ICL error for an independent query in the limit of correlations over the whole context.

    As d goes to infinity with :math:`k_2 \sim l`, a prompt's features are :math:`x_{l+1} r^\top` with
    :math:`r \approx \sqrt{S}\, z`, z standard normal and much larger than the signal in it, and their scale
    :math:`S \propto y^\top K y` does not concentrate. What is fitted is noise, of which the ridgeless fit above the
    threshold makes the error

    .. math:: (1 + \rho)\,(1 + \delta) , \qquad E \frac{S\delta}{1 + S\delta} = \frac1\tau , \qquad E\,S = 1 .

    Theory takes S to be 1 and has :math:`\delta = 1/(\tau-1)`. With :math:`y \sim N(0, K + \rho)` and
    :math:`\mu_i = \lambda_i (\lambda_i + \rho) / \sum_j \lambda_j (\lambda_j + \rho)`,

    .. math:: E \frac{1}{1 + S\delta} = \int_0^\infty e^{-t} \prod_i (1 + 2 t \delta \mu_i)^{-1/2}\, dt .

    Parameters
    ----------
    eigenvalues : array of shape (l,)
        :math:`\lambda_i \ge 0`, of K.
    tau : float
        n/d^2, > 1.
    rho : float
        Label-noise variance.
    """
    from scipy.optimize import brentq

    spectrum = np.asarray(eigenvalues, dtype=np.float64)
    weights = spectrum * (spectrum + rho)
    weights = weights[weights > 1e-12 * weights.max()] / weights.sum()
    # t = s/(1-s) maps the half-line to (0, 1): Gauss-Legendre converges there, the integrand being smooth
    nodes, factors = np.polynomial.legendre.leggauss(200)
    s = 0.5 * (nodes + 1.0)
    t, measure = s / (1.0 - s), 0.5 * factors / (1.0 - s) ** 2

    def excess(delta: float) -> float:
        product = -t - 0.5 * np.log1p(2.0 * delta * np.multiply.outer(t, weights)).sum(axis=1)
        return float(measure @ np.exp(product)) - (1.0 - 1.0 / tau)

    # by Jensen's inequality delta is at least what it is at S = 1
    low = 1.0 / (tau - 1.0)
    high = low
    while excess(high) > 0:
        high *= 2.0
    return (1.0 + rho) * (1.0 + float(brentq(excess, 0.5 * low, high)))
