r"""How the size of a feature varies from sequence to sequence, and how the residual goes with it.

A feature :math:`H = x r^\top` enters the fit through its scale
:math:`s = |x|^2\, r^\top G r / \mathrm{tr}\,RG`, of mean 1, which fluctuates by :math:`O(1/d)`; more so
where tokens are correlated, as there are then fewer independent examples to average over.
"""

from dataclasses import dataclass

import numpy as np

from icltheory.points import Floats
from icltheory.prompts.kernels import Kernel
from icltheory.theory.mean_spectrum import TaskSpectrum

_NODES = 16
_LOGNORMAL_NODES = 12

Moments = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class ScaleLaw:
    """Nodes and probabilities for the scale s, and the mean squared residual given s.

    Attributes
    ----------
    scale, probability : array of shape (m,)
    residual : array of shape (m,)
        Mean squared residual of the best linear predictor, given the scale; its own mean is that predictor's error.
    """

    scale: Floats
    probability: Floats
    residual: Floats


@dataclass(frozen=True, kw_only=True)
class Prompt:
    r"""What a prompt's summary depends on: its length l and noise rho, and the tasks' spectrum in d dimensions.

    Correlations K of its tokens enter by :math:`k_m = \frac1l \mathrm{tr}\,K^m`, all 1 for independent tokens.
    """

    d: int
    context_length: float
    n_tasks: float
    rho: float
    spectrum: TaskSpectrum
    k2: float = 1.0
    k3: float = 1.0
    k4: float = 1.0


def third_and_fourth(kernel: Kernel, k2: float) -> Moments:
    r"""Return :math:`k_3 = \frac1l \mathrm{tr}\,K^3` and :math:`k_4 = \frac1l \mathrm{tr}\,K^4`, in O(l^3).

    An estimated K need not be positive; its noise is kept within :math:`k_3 \ge k_2^2, k_4 \ge k_3^2/k_2`, which
    Cauchy and Schwarz demand of any kernel with unit diagonal.
    """
    matrix = kernel.matrix()
    square = matrix @ matrix
    k3 = max(float(np.vdot(square, matrix)) / len(matrix), k2**2)
    return k3, max(float(np.vdot(square, square)) / len(matrix), k3**2 / k2)


def scale_law(prompt: Prompt, xi: float, trace: float, floor: float) -> ScaleLaw:
    r"""Return the law of s at effective ridge xi, as a Gamma law of its variance to order 1/d.

    Of the laws tried, this one comes closest to simulated errors. What correlations between tokens add to the
    variance is a lognormal factor of its own: they leave few independent examples, the fluctuation may be of order 1,
    and a Gamma law of as large a variance would have far too much weight near 0.

    With :math:`r \approx (1 + \delta_1) w + \sqrt{\hat x (1 + \delta_2)}\, z`, where
    :math:`\hat x = (k_2 s_w+\rho) d/l`, z is standard normal, and the label sums fluctuate by

    .. math::
        l\,\mathrm{var}\,\delta_1 = 2 k_2 + \frac{\rho}{s_w}, \quad
        l\,\mathrm{cov}(\delta_1, \delta_2) = \frac{2 (k_3 s_w + k_2 \rho)}{k_2 s_w + \rho}, \quad
        l\,\mathrm{var}\,\delta_2 = \frac{2 (k_4 s_w^2 + 2 k_3 s_w \rho + k_2 \rho^2)}{(k_2 s_w + \rho)^2}

    (2 + rho/s_w, 2 and 2 for independent tokens), both :math:`Q = r^\top G r/d` and the residual's part
    :math:`D = |w - \Gamma_0 r|^2/d` are sums of independent small terms: one for the label sums, one linear and one
    quadratic in z, and one for the choice of the task. Their variances and covariances follow term by term. The
    residual is linear in s to this order.

    Parameters
    ----------
    prompt : Prompt
    xi : float
    trace : float
        tr RG/d at that xi: the mean of Q.
    floor : float
        Mean squared residual of the best linear predictor, noise included.
    """
    *causes, (extra, extra_covariance) = _causes(prompt, xi)
    variance, covariance = (sum(parts) for parts in zip(*causes, strict=True))
    variance, covariance = variance / trace**2, covariance / trace
    error = floor - prompt.rho
    # s = |x|^2 Q/trace, squared residual = rho + |x|^2 D, |x|^2 independent of (Q, D) with variance 2/d
    spread = 2.0 / prompt.d
    total = (1.0 + spread) * (1.0 + variance) - 1.0
    scale, probability = _gamma_nodes(1.0 / total)
    if extra > 0:
        extra, covariance = extra / trace**2, covariance + extra_covariance / trace
        total = (1.0 + total) * (1.0 + extra) - 1.0
        factor, share = _lognormal_nodes(extra)
        scale, probability = np.outer(scale, factor).ravel(), np.outer(probability, share).ravel()
    slope = (spread * error + (1.0 + spread) * covariance) / total
    return ScaleLaw(scale=scale, probability=probability, residual=floor + slope * (scale - 1.0))


def _causes(prompt: Prompt, xi: float) -> tuple[Moments, Moments, Moments, Moments]:
    """Return (var Q, cov(Q, D)) by cause.

    The causes are the label sums, as of independent tokens; the noise z of the context; the choice of the task; and
    what correlations add to the label sums.
    """
    d, length, rho, tasks = prompt.d, prompt.context_length, prompt.rho, prompt.spectrum
    a, signal = tasks.value, tasks.signal

    def trd(values: Floats) -> float:
        return float(tasks.weight @ values) / d

    k2, k3, k4 = prompt.k2, prompt.k3, prompt.k4
    energy = k2 * signal + rho
    x = energy * d / length
    g = 1.0 / ((1.0 + k2 / length) * a + x + xi)
    h = 1.0 / ((1.0 + k2 / length) * a + x)
    b = a * h  # Gamma_0 on the context, and what it leaves of a task: 1 - b
    t, p = trd(a * g), trd(a * b * (1.0 - b))
    noise_g, noise_b = x * trd(g), x * trd(b * b)

    def sums(first: float, both: float, second: float) -> Moments:  # (co)variances of delta_1 and delta_2
        return (
            4.0 * t * t * first + 4.0 * t * noise_g * both + noise_g**2 * second,
            -4.0 * t * p * first + 2.0 * (t * noise_b - p * noise_g) * both + noise_g * noise_b * second,
        )

    labels = sums((2.0 + rho / signal) / length, 2.0 / length, 2.0 / length)
    both = (signal * (k3 - k2) + rho * (k2 - 1.0)) / energy
    second = (signal**2 * (k4 - k2**2) + 2.0 * rho * signal * (k3 - k2) + rho**2 * (k2 - 1.0)) / energy**2
    added = sums(2.0 * (k2 - 1.0) / length, 2.0 * both / length, 2.0 * second / length)
    # terms linear in z, whose part along w is among the label sums, and terms quadratic in z
    noise = (
        4.0 * x / d * (trd(a * g * g) - t * t) + 2.0 * x * x / d * trd(g * g),
        -4.0 * x / d * (trd(a * g * (1.0 - b) * b) - t * p) + 2.0 * x * x / d * trd(g * b * b),
    )
    # The choice of the task: w^T f w/d, f a resolvent that contains w itself. Without w it fluctuates as for an
    # independent task; Sherman and Morrison put w back, which shrinks the fluctuation.
    spread = tasks.signal_squared - signal**2

    def cov(m: Floats, n: Floats) -> float:
        return 2.0 / d * (trd(m * n) - trd(m) * trd(n)) + spread * trd(m) * trd(n)

    with_g, with_h = 1.0 - t * d / prompt.n_tasks, 1.0 - trd(b) * d / prompt.n_tasks
    per_signal = k2 / energy
    # Q gains with_g^2 w^T g w/d + noise_g per_signal |w|^2/d, as a quadratic form of w; D likewise
    q = with_g**2 * g + noise_g * per_signal
    h_squared = with_h**2 * h * h - 2.0 * with_h**3 * trd(h * h) * h * d / prompt.n_tasks
    leftover = x * x * h_squared + noise_b * per_signal
    return labels, noise, (cov(q, q), cov(q, leftover)), added


def _lognormal_nodes(variance: float) -> tuple[Floats, Floats]:
    """Return the Gauss quadrature of a lognormal law of mean 1, in the logarithm."""
    node, weight = np.polynomial.hermite_e.hermegauss(_LOGNORMAL_NODES)
    width = np.sqrt(np.log1p(variance))
    return np.exp(width * node - width**2 / 2.0), weight / weight.sum()


def _gamma_nodes(shape: float) -> tuple[Floats, Floats]:
    """Return the Gauss quadrature of a Gamma law of mean 1 (Golub and Welsch, generalised Laguerre)."""
    from scipy.linalg import eigh_tridiagonal

    j = np.arange(_NODES)
    node, vector = eigh_tridiagonal(2.0 * j + shape, np.sqrt(j[1:] * (j[1:] + shape - 1.0)))
    return node / shape, vector[0] ** 2
