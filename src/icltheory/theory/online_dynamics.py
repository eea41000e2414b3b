"""The closed equations of one-pass training, mode by mode of the task covariance, and their exact solution."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from icltheory.points import Floats

_LARGEST_EXPONENT = 600.0  # an error may grow to exp of this before numbers run out


@dataclass(frozen=True, kw_only=True)
class Modes:
    r"""Directions along which contexts vary, with their weights, and what is known of each; arrays of shape (N,).

    Attributes
    ----------
    weight : array
        Number of directions of the kind, over d.
    a, second : array
        Covariance of the context feature with the task, and second moment R of the feature, over pretraining tasks.
    fresh_a, fresh_second : array
        The same over fresh tasks.
    rho, ridge : float
    """

    weight: Floats
    a: Floats
    second: Floats
    fresh_a: Floats
    fresh_second: Floats
    rho: float
    ridge: float

    @property
    def decay(self) -> Floats:
        """R + lambda, the rate at which each mode forgets, per unit of step size."""
        return self.second + self.ridge

    @property
    def target(self) -> Floats:
        """a/(R + lambda), to which each mode's mean tends."""
        return self.a / self.decay

    def error(self, mean: Floats, variance: Floats) -> Any:
        """Return the IDG error, as a sum of positive terms; the last axis is that of the modes."""
        bias = self.a * (1.0 - mean) ** 2 + (self.second - self.a) * mean**2
        return self.rho + (bias + self.second * variance) @ self.weight


Noise = Callable[[Floats, Floats], Floats]  # of means and variances


def limit_modes(order: int, alpha: float, kappa: float, rho: float, ridge: float) -> Modes:
    """Return the modes as d -> infinity: R = a + x on pretraining tasks, 1 + x on fresh ones."""
    a, weight = gauss_rule(kappa, order)
    x, one = (1.0 + rho) / alpha, np.ones_like(a)
    return Modes(weight=weight, a=a, second=a + x, fresh_a=one, fresh_second=one + x, rho=rho, ridge=ridge)


def limit_noise(modes: Modes) -> Noise:
    """Return the function that gives E (y - prediction)^2 r_a^2 for every mode a: independent factors as d -> inf."""

    def noise(mean: Floats, variance: Floats) -> Floats:
        product: Floats = modes.error(mean, variance) * modes.second
        return product

    return noise


def gauss_rule(kappa: float, order: int) -> tuple[Floats, Floats]:
    r"""Return nodes and weights of Gauss quadrature for the Marchenko-Pastur law of A_k, with mean 1, variance 1/kappa.

    With ratio :math:`c \le 1` the law's orthogonal polynomials have the Jacobi matrix with diagonal
    (1, 1+c, 1+c, ...) and off-diagonal :math:`\sqrt c`. For kappa < 1 the spectrum is an atom of weight 1 - kappa at 0
    and, with weight kappa, the law of ratio c = kappa scaled by 1/kappa. No edge singularity is left to resolve.
    """
    if np.isinf(kappa):
        return np.ones(1), np.ones(1)
    c = min(kappa, 1.0 / kappa)
    side = np.full(order - 1, np.sqrt(c))
    jacobi = np.diag(np.r_[1.0, np.full(order - 1, 1.0 + c)]) + np.diag(side, 1) + np.diag(side, -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    nodes, weights = np.maximum(nodes, 0.0), vectors[0] ** 2
    if kappa >= 1.0:
        return nodes, weights
    return np.r_[0.0, nodes / kappa], np.r_[1.0 - kappa, kappa * weights]


def constant_rate(modes: Modes, t: Floats, rate: float) -> tuple[Floats, Floats]:
    r"""Return means and variances, shape (times, N), at a constant rate h: exactly, and at all times at once.

    With the target :math:`m^\star = a/(R+\lambda)`, the offset :math:`\Delta = m - m^\star` and
    :math:`S = \Delta^2 + v`,

    .. math:: \dot\Delta = -h (R+\lambda) \Delta, \qquad
              \dot S = -2h (R+\lambda) S + h^2 R\, e(t), \qquad
              e(t) = e_\infty + \sum 2 w \lambda m^{\star 2} e^{-h (R+\lambda) t} + \sum w R S .

    In the variables :math:`\sqrt w\, S` the matrix is diagonal plus symmetric of rank one: its eigenvectors turn the
    system into separate exponentials.
    """
    m, decay, root = modes.target, modes.decay, np.sqrt(modes.weight)
    coupling = root * modes.second
    growth, vectors = np.linalg.eigh(-2.0 * rate * np.diag(decay) + rate**2 * np.outer(coupling, coupling))
    if growth[-1] * t.max(initial=0.0) > _LARGEST_EXPONENT:
        raise OverflowError(
            f"step_size is so far above the edge of stability that the error grows like exp({growth[-1]:.3g} t): "
            f"ask for t below {_LARGEST_EXPONENT / growth[-1]:.3g}"
        )
    drive = rate**2 * (vectors.T @ coupling)
    time = t[:, None]
    exponent = growth * time
    floor = modes.error(m, np.zeros_like(m))
    modal = (vectors.T @ (root * m**2)) * np.exp(exponent) + drive * floor * time * _phi(exponent)
    if modes.ridge > 0:
        pull = 2.0 * modes.weight * modes.ridge * m**2
        for j, rate_j in enumerate(growth):
            # (exp(p t) - exp(q t))/(p - q), written so that p = q and large |p - q| t are both harmless
            larger, spacing = np.maximum(rate_j, -rate * decay), np.abs(rate_j + rate * decay)
            modal[:, j] += drive[j] * ((np.exp(larger * time) * time * _phi(-spacing * time)) @ pull)
    left = np.exp(-rate * decay * time)
    return m * (1.0 - left), (modal @ vectors.T) / root - (m * left) ** 2


def varying_rate(
    modes: Modes,
    t: Floats,
    rate: Callable[[float], float],
    noise: Noise,
    excess: Callable[[float], float] = lambda _elapsed: 0.0,
) -> tuple[Floats, Floats, Floats]:
    r"""Return (int h, means, variances) for a rate h(t) and sorted times, by numerical integration.

    .. math:: m = \frac{a}{R+\lambda} \big(1 - e^{-(R+\lambda) \int h}\big) , \qquad
              \dot v = -2h (R+\lambda)\, v + h^2\, E (y - \hat y)^2 r_a^2 .

    The means and variances have shape (times, N). `excess` is an error, a function of int h, that the modes leave out.
    """
    from scipy.integrate import solve_ivp

    target, decay, end = modes.target, modes.decay, float(t.max(initial=0.0))

    def velocity(time: float, state: Floats) -> Floats:
        h, variance = rate(float(time)), state[1:]
        mean = -target * np.expm1(-decay * state[0])
        change: Floats = np.r_[
            h, -2.0 * h * decay * variance + h**2 * (noise(mean, variance) + excess(state[0]) * modes.second)
        ]
        return change

    states = np.zeros((len(t), 1 + len(target)))
    if end > 0.0:
        # short steps, lest a schedule's details fall between two of them
        solution = solve_ivp(
            velocity, (0.0, end), states[0], t_eval=t, method="LSODA", rtol=1e-10, atol=1e-12, max_step=end / 50
        )
        if not solution.success or not np.all(np.isfinite(solution.y)):
            raise ArithmeticError(
                f"the equations could not be integrated up to t = {end:g} ({solution.message}): check that "
                "step_size(t) is piecewise smooth and below the edge of stability"
            )
        states = solution.y.T
    return states[:, 0], -target * np.expm1(-decay * states[:, :1]), states[:, 1:]


def errors(modes: Modes, mean: Floats, variance: Floats) -> Floats:
    r"""Return (IDG error, gap, SGD's share of the ICL and of the IDG error), shape (4, times).

    With a and R over pretraining tasks, a' and R' over fresh ones,

    .. math:: e_{IDG} = \rho + 1 + \sum w\, (R (m^2 + v) - 2 a m), \qquad
              e_{ICL} - e_{IDG} = \sum w\, ((R' - R)(m^2 + v) - 2 (a' - a) m) .
    """
    difference = (mean**2 + variance) * (modes.fresh_second - modes.second) - 2.0 * mean * (modes.fresh_a - modes.a)
    return np.stack(
        [
            modes.error(mean, variance),
            difference @ modes.weight,
            np.maximum(variance @ (modes.weight * modes.fresh_second), 0.0),
            np.maximum(variance @ (modes.weight * modes.second), 0.0),
        ]
    )


def _phi(z: Floats) -> Floats:
    """Return (exp(z) - 1)/z, which is 1 at 0."""
    return np.divide(np.expm1(z), z, out=np.ones_like(z), where=z != 0.0)
