"""Spectra of the sample task covariance at finite size: averaged over task draws to relative order 1/d, or given."""

import math
from dataclasses import dataclass

import numpy as np

from icltheory.points import Floats
from icltheory.prompts.tasks import TaskLaw, TaskMoments

_NODES = 192  # the integrands are analytic in the angle: error exp(-2 _NODES sqrt(z)) or less, z > (1 + rho)/alpha


@dataclass(frozen=True, kw_only=True)
class TaskSpectrum:
    r"""Eigenvalues of :math:`A_k = \frac1k\sum_j w_j w_j^\top`, and how the label's mean lies in its eigenbasis.

    Attributes
    ----------
    value : array of shape (m,)
        a, the eigenvalues.
    weight : array of shape (m,)
        How many of them: :math:`\mathrm{tr} f(A_k) = \sum_i \mathrm{weight}_i f(a_i)`, of sum d. An average over draws
        has real, partly negative weights.
    label : array of shape (m,)
        :math:`h^\top f(A_k) h = \sum_i \mathrm{label}_i f(a_i)` for the task mean of label power times task,
        :math:`h = \frac1k\sum_j (|w_j|^2/d + \rho) w_j`.
    signal, signal_squared : float
        Means of :math:`|w|^2/d` and of its square.
    """

    value: Floats
    weight: Floats
    label: Floats
    signal: float
    signal_squared: float


def spectrum_of(tasks: TaskMoments, rho: float) -> TaskSpectrum:
    """Return the spectrum of given tasks."""
    value, basis = np.linalg.eigh(tasks.second)
    return TaskSpectrum(
        value=np.maximum(value, 0.0),
        weight=np.ones_like(value),
        label=(basis.T @ (tasks.signal_mean + rho * tasks.mean)) ** 2,
        signal=tasks.signal,
        signal_squared=tasks.signal_squared,
    )


def mean_spectrum(law: TaskLaw, d: int, n_tasks: float, rho: float) -> TaskSpectrum:
    r"""Return the spectrum averaged over draws of the tasks, up to terms of relative order :math:`1/d^2`.

    To leading order it is the Marchenko-Pastur law of ratio 1/kappa. Gaussian tasks add, for a matrix of real
    numbers, the measure :math:`C = \frac14(\delta_{a_-} + \delta_{a_+}) - \frac12 \mathrm{arcsine}` on the edges and
    the bulk. Tasks of fixed norm lack the spread 2/d of :math:`|w|^2/d`; weights of variance v on the tasks change the
    resolvent by v times

    .. math:: M_1 = \frac{M^2/\kappa}{(1+\beta)\,(1 + z(1+\beta)^2)}, \qquad \beta = M/\kappa ,

    so that sphere tasks have the correction :math:`C - 2M_1`. With :math:`a = 1 + 1/\kappa +
    (2/\sqrt\kappa)\cos\theta` all of these densities are smooth and periodic in :math:`\theta`, and the midpoint
    rule converges geometrically. The task mean has squared components a/k in the eigenbasis, on average.

    The correction C is that of Bai and Silverstein (Ann. Probab. 32, 2004) for real entries; M_1 is this project's.
    """
    spread = 2.0 / d if law == "gaussian" else 0.0
    if math.isinf(n_tasks):
        one = np.ones(1)
        return TaskSpectrum(value=one, weight=d * one, label=0.0 * one, signal=1.0, signal_squared=1.0 + spread)
    kappa = n_tasks / d
    cosine = np.cos((np.arange(_NODES) + 0.5) * np.pi / _NODES)
    width = 2.0 / math.sqrt(kappa)
    bulk = 1.0 + 1.0 / kappa + width * cosine
    sine_squared = 1.0 - cosine**2
    weight = d * 2.0 * sine_squared / bulk - 0.5
    if law == "sphere":
        weight -= 2.0 * _norm_spread(bulk, kappa) * width * np.sqrt(sine_squared) * np.pi
    edges = 1.0 + 1.0 / kappa + width * np.array([-1.0, 1.0])
    value = np.concatenate([bulk, edges, [0.0]])
    weights = np.concatenate([weight / _NODES, [0.25, 0.25], [max(d - n_tasks, 0.0)]])
    return TaskSpectrum(
        value=value,
        weight=weights,
        label=(1.0 + rho) ** 2 * weights * value / n_tasks,
        signal=1.0,
        signal_squared=1.0 + spread,
    )


def _norm_spread(a: Floats, kappa: float) -> Floats:
    """Return the density of the measure whose resolvent is M_1, at eigenvalues a inside the bulk."""
    z = -a.astype(complex)
    b = z + 1.0 - 1.0 / kappa
    root = np.sqrt(-(b**2 + 4.0 * z / kappa).real)  # inside the bulk the discriminant is negative
    m = (-b + 1j * root) / (2.0 * z / kappa)  # z < 0: Im M < 0, as for a point just below the cut
    beta = m / kappa
    m1 = m**2 / kappa / ((1.0 + beta) * (1.0 + z * (1.0 + beta) ** 2))
    density: Floats = -m1.imag / np.pi
    return density
