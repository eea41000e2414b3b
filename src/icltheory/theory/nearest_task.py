"""How far the nearest of k pretraining tasks is from a fresh one: what dMMSE comes to in long or clean prompts."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, one_whole, whole
from icltheory.prompts.tasks import TaskLaw, check_law

_MOST_TASKS = 1e15
# Nodes in s, where exp(-e^s) is the probability that the nearest task is farther: the integrand falls to 1e-18 at
# both ends, and a trapezoidal rule of this step has an error of exp(-pi^2/step), whatever d and k
_S = np.arange(-42.0, 4.01, 0.2)
_PER_UNIT = 8  # Gauss nodes for each unit of |w|, which has a spread of 0.7
_STEPS = 256  # over log distance


def nearest_task(*, d: int, n_tasks: ArrayLike, tasks: TaskLaw = "gaussian") -> Floats:
    r"""Return the mean squared distance from a fresh task to the nearest of k tasks of the same law.

    .. math:: \Delta = \frac1d\, E \min_{j \le k} |w - w_j|^2 , \qquad
              w, w_1, \dots, w_k \text{ independent}, \quad w \sim N(0, I_d) \text{ or uniform on } |w|^2 = d .

    It is the ICL error of dMMSE less the noise, once a prompt tells the tasks apart: as alpha/rho -> infinity at fixed
    k. It starts at 2 for k = 1 and falls like :math:`k^{-2/d}` for Gaussian tasks (d > 2) and like
    :math:`k^{-2/(d-1)}` on the sphere: see `nearest_task_exponent` for the slope at finite k.

    Exact at every d and k, to 1e-10 or better, without sampling, at a cost that does not grow with k. On the sphere
    :math:`|w - w_j|^2 = 4 d\, x`, :math:`x \sim \mathrm{Beta}(\frac{d-1}2, \frac{d-1}2)`, of survival function S, and

    .. math:: \Delta = 4\, E \min x = 4 \int_{-\infty}^\infty x(s)\, e^{s - e^s}\, ds , \qquad S(x(s))^k = \exp(-e^s) ;

    for Gaussian tasks :math:`|w - w_j|^2` is a noncentral chi-square given :math:`|w|`, over which a second integral
    goes.

    Parameters
    ----------
    d : int
        Token dimension; d = 1 on the sphere means the two tasks +1 and -1.
    n_tasks : array_like of integers
        k, from 1 to 1e15.
    tasks : {"gaussian", "sphere"}
        Law of the tasks.

    Returns
    -------
    array
        Of the shape of ``n_tasks``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    This project's own. The :math:`k^{-2/d}` law of dMMSE is stated by Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS
    122(28), 2025 (arXiv:2405.11751).

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.nearest_task(d=64, n_tasks=[1, 64, 2048], tasks="gaussian").round(3)
    array([2.  , 1.35, 1.1 ])
    """
    return _over_tasks(d, n_tasks, tasks, lambda distance, _: distance)


def nearest_task_exponent(*, d: int, n_tasks: ArrayLike, tasks: TaskLaw = "gaussian") -> Floats:
    r"""Return the local exponent of the distance to the nearest task, :math:`d\log\Delta / d\log k`.

    With s as in `nearest_task` and averages over :math:`e^{s - e^s} ds`, integration by parts gives

    .. math:: \frac{d \log \Delta}{d \log k} = 1 - \frac{\langle \delta\, e^s\rangle}{\langle \delta \rangle} ,

    :math:`\delta` the squared distance at s. It tends to -2/(d-1) on the sphere and, for d > 2, to -2/d for Gaussian
    tasks, but slowly: tasks are scarce in high dimension.

    Parameters
    ----------
    d, n_tasks, tasks
        As in `nearest_task`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    This project's own.

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.nearest_task_exponent(d=11, n_tasks=[10, 1000, 10**9], tasks="sphere").round(3)
    array([-0.253, -0.215, -0.201])
    """
    return _over_tasks(d, n_tasks, tasks, lambda _, slowing: 1.0 - slowing)


def _over_tasks(d: int, n_tasks: ArrayLike, tasks: str, of: Callable[[float, float], float]) -> Floats:
    """Apply a function of <delta> and <delta e^s>/<delta> to every number of tasks."""
    dimension, law = one_whole("d", d, "token dimension"), check_law(tasks)
    k = whole("n_tasks", n_tasks, "pretraining tasks")
    if np.any(k > _MOST_TASKS):
        raise ValueError(f"n_tasks must be at most {_MOST_TASKS:g}, got {np.max(k):g}")
    averages = _two_points if law == "sphere" and dimension == 1 else _sphere if law == "sphere" else _gaussian
    return np.array([of(*averages(dimension, each)) for each in k.ravel()]).reshape(k.shape)


def _two_points(_: int, k: float) -> tuple[float, float]:
    """Return them for tasks +1 and -1: the distance is 0, or 4 if all k tasks are the other one."""
    return 4.0 * 0.5**k, 1.0 + k * math.log(2.0)


def _sphere(d: int, k: float) -> tuple[float, float]:
    """Return them for d > 1 on the sphere."""
    from scipy.special import betaincinv

    half = (d - 1) / 2.0
    weight = 0.2 * np.exp(_S - np.exp(_S))
    distance = 4.0 * betaincinv(half, half, -np.expm1(-np.exp(_S) / k))
    mean = float(weight @ distance)
    return mean, float(weight @ (distance * np.exp(_S))) / mean


def _gaussian(d: int, k: float) -> tuple[float, float]:
    """Return them for Gaussian tasks: Gauss nodes over |w|, and for each a trapezoidal rule over log distance."""
    from scipy.stats import chi, ncx2

    # far out, where few tasks are, fresh tasks are rare but matter at d = 1 and 2: hence the wider upper end
    low, high = max(0.0, math.sqrt(d) - 8.0), math.sqrt(d) + 8.0 + math.sqrt(2.0 * math.log(k))
    finer = 2 if d <= 2 else 1  # distances there have the longest tails
    nodes, weights = np.polynomial.legendre.leggauss(finer * math.ceil(_PER_UNIT * (high - low)))
    norm = (low + high) / 2.0 + (high - low) / 2.0 * nodes
    weights = weights * (high - low) / 2.0 * chi.pdf(norm, d)
    norm, weights = norm[weights > 1e-30 / k], weights[weights > 1e-30 / k]
    log_low, log_high = _range(d, k, norm**2, ncx2)
    step = (log_high - log_low) / (finer**2 * _STEPS)
    distance = np.exp(log_low[:, None] + step[:, None] * np.arange(finer**2 * _STEPS + 1))
    closer = ncx2.cdf(distance, d, norm[:, None] ** 2)
    log_farther = np.log1p(-np.minimum(closer, 1.0 - 1e-16))
    density = k * np.exp((k - 1.0) * log_farther) * ncx2.pdf(distance, d, norm[:, None] ** 2)
    mass = weights[:, None] * step[:, None] * distance * density
    total = float(np.sum(mass * distance))
    return total / d, float(np.sum(mass * distance * (-k * log_farther))) / total


def _range(d: int, k: float, squared_norm: Floats, law: Any) -> tuple[Floats, Floats]:
    """Return, for every |w|^2, the log distances between which the nearest task is but for 1e-18."""
    ends = []
    for s in (_S[0], _S[-1]):
        closer = -np.expm1(-np.exp(s) / k)
        low = np.full_like(squared_norm, -600.0)
        high = np.log((np.sqrt(squared_norm) + math.sqrt(d) + 12.0) ** 2)
        for _ in range(40):
            middle = (low + high) / 2.0
            nearer = law.cdf(np.exp(middle), d, squared_norm) < closer
            low, high = np.where(nearer, middle, low), np.where(nearer, high, middle)
        ends.append((low + high) / 2.0)
    return ends[0], ends[1]
