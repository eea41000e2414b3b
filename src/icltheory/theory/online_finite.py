"""One-pass training at finite d: what the limit leaves out of order 1/d, for tasks on the sphere."""

from collections.abc import Callable

import numpy as np

from icltheory.points import Floats
from icltheory.theory.mean_spectrum import mean_spectrum
from icltheory.theory.online_dynamics import Modes, Noise, gauss_rule


def finite_modes(d: int, alpha: float, kappa: float, rho: float, ridge: float) -> Modes:
    r"""Return the modes at dimension d: exact second moments of a context, and its last feature as one more direction.

    With l = alpha d examples a task feature has :math:`R = (1 + 1/l) a + x`; the last feature, the mean squared label,
    has :math:`R = (1+\rho)^2 (1 + 2/l)`; what it says about the tasks is in `mean_task`. The eigenvalues a are those of
    k tasks on the sphere, averaged over their draws to order 1/d.
    """
    tasks = mean_spectrum("sphere", d, np.round(kappa * d), rho)
    a, weight = tasks.value, tasks.weight / d
    length, x, one = alpha * d, (1.0 + rho) / alpha, np.ones_like(a)
    last = (1.0 + rho) ** 2 * (1.0 + 2.0 / length)
    return Modes(
        weight=np.r_[weight, 1.0 / d],
        a=np.r_[a, 0.0],
        second=np.r_[x + (1.0 + 1.0 / length) * a, last],
        fresh_a=np.r_[one, 0.0],
        fresh_second=np.r_[x + (1.0 + 1.0 / length) * one, last],
        rho=rho,
        ridge=ridge,
    )


def mean_task(
    order: int, d: int, alpha: float, kappa: float, rho: float, ridge: float
) -> Callable[[float], tuple[float, float]]:
    r"""Return what the mean of the k tasks adds to the IDG and to the ICL error, as a function of int h.

    The last feature is nearly constant, so that its weights learn :math:`h = (1+\rho)\,\bar w`, the mean task times
    the label power: of order 1/k in the errors. With the features along h and the last one as coordinates, R is an
    arrow matrix, :math:`A = [\mathrm{diag}(a), h]`, the mean of :math:`\Gamma` is
    :math:`M = A (R+\lambda)^{-1} (1 - e^{-(R+\lambda)\int h})`, and its error
    :math:`\frac1d \mathrm{tr}(M R_t M^\top - 2 M A_t^\top)`; that of the decoupled modes is taken off. On average
    over draws h has squared components :math:`(1+\rho)^2 a/k` in the eigenbasis of :math:`A_k`.
    """
    if np.isinf(kappa):
        return lambda _elapsed: (0.0, 0.0)
    a, weight = gauss_rule(kappa, order)
    length, x = alpha * d, (1.0 + rho) / alpha
    body, last = x + (1.0 + 1.0 / length) * a, (1.0 + rho) ** 2 * (1.0 + 2.0 / length)
    h = (1.0 + rho) * np.sqrt(a * weight / kappa)
    r = np.diag(np.append(body, last))
    r[:-1, -1] = r[-1, :-1] = (1.0 + 2.0 / length) * h
    known = np.column_stack([np.diag(a), h])
    rates, basis = np.linalg.eigh(r)
    seen = known @ basis
    fresh_body = x + 1.0 + 1.0 / length

    def shift(elapsed: float) -> tuple[float, float]:
        mean = (seen * _learned(rates + ridge, elapsed)) @ basis.T
        alone = a * _learned(body + ridge, elapsed)
        idg = np.sum((mean @ r - 2.0 * known) * mean) - np.sum((body * alone - 2.0 * a) * alone)
        squares = fresh_body * (np.sum(mean[:, :-1] ** 2) - np.sum(alone**2)) + last * np.sum(mean[:, -1] ** 2)
        icl = squares - 2.0 * (np.trace(mean[:, :-1]) - np.sum(alone))
        return float(idg) / d, float(icl) / d

    return shift


def _learned(rate: Floats, elapsed: float) -> Floats:
    share: Floats = -np.expm1(-rate * elapsed) / rate
    return share


def finite_noise(modes: Modes, d: int, alpha: float, kappa: float) -> Noise:
    r"""Return the function that gives :math:`E (y - \hat y)^2 |x|^2 r_a^2` for every mode a, to first order in 1/d.

    Write :math:`y - \hat y = x \cdot u + \varepsilon` with :math:`u = w - \Gamma r`. Averaging the query alone is
    exact, :math:`E (x \cdot u + \varepsilon)^2 |x|^2 = (1 + 2/d)|u|^2/d + \rho`. What is left is the covariance of
    :math:`|u|^2/d` and :math:`r_a^2`. It has two causes:

    - Both depend on the same component of the task and of the context noise, r = w + n. For n that is Wick's theorem.
      Over k given Gaussian tasks with mean square :math:`A_k`, quadratic forms :math:`w^\top f w` and
      :math:`w^\top g w` with f, g functions of :math:`A_k` have covariance :math:`2d\,K(f, g)`,
      :math:`K = \mathrm{trd}\, A_k^2 f g - \frac1\kappa\, \mathrm{trd}\, A_k f\; \mathrm{trd}\, A_k g` (the rows of
      their singular vectors are uniform on a sphere in k dimensions). Tasks of fixed length have no covariance with
      :math:`|w|^2`: K(f, 1) K(1, g) is taken away, K(1, 1) being 1.
    - Both depend on the energy of the labels, :math:`q \propto \sum y_i^2`, which scales n and the last feature,
      and on :math:`G = \sum g_i^2/l`, the energy of the tokens along the task, which scales w: variances 2/l,
      covariance :math:`2/(l(1+\rho))`.
    """
    rho, length, x = modes.rho, alpha * d, (1.0 + modes.rho) / alpha
    a, w = modes.a[:-1], modes.weight[:-1]
    aa, wa = a**2, w * a
    radial = aa - a / kappa
    energy = 2.0 * (1.0 + rho) ** 2  # d(r^2)/dq of the last feature

    def noise(mean: Floats, variance: Floats) -> Floats:
        m, v = mean[:-1], variance[:-1]
        task, size = (1.0 - m) ** 2 + v, m**2 + v  # |u|^2 has task w_a^2 + size n_a^2
        cross = 2.0 * (v - m * (1.0 - m))  # ... + cross w_a n_a
        along = wa @ task
        by_length = (w * radial) @ task
        same = aa * task - (along / kappa) * a - by_length * radial + x**2 * size + a * (x * cross)
        by_labels = x * (w @ size) + energy * variance[-1] / d  # d(|u|^2/d)/dq
        by_tokens = wa @ cross  # d(|u|^2/d)/dG
        with_labels, with_tokens = by_labels + by_tokens / (1.0 + rho), by_tokens + by_labels / (1.0 + rho)
        signal = modes.error(mean, variance) - rho
        total: Floats = ((1.0 + 2.0 / d) * signal + rho) * modes.second
        total[:-1] += (2.0 / d) * same + (2.0 / length) * (x * with_labels + 2.0 * with_tokens * a)
        total[-1] += (2.0 / length) * energy * with_labels
        return total

    return noise
