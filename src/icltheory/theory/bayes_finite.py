"""The errors of dMMSE at finite dimension: its random energy model with fluctuations kept."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check, one_whole, ratios
from icltheory.prompts.tasks import TaskLaw, check_law
from icltheory.theory.bayes import LEAST, Traces, bayes_ridge, freezing_point

_CELL = 0.05  # width of a cell of levels, in standard deviations of a task's energy
_WORST = 8.0  # standard deviations above the mean energy, beyond which there are no tasks
_FARTHEST = 35.0  # levels at which fewer than exp(-35) of the k tasks lie are left out
_MOST_TASKS = 1e15
_LEAST_D = 4
_LEAST_RHO = 1e-12  # what smaller noise is taken for; the errors have settled long before
_HALF = 0.51780937452  # log of the x at which (1 + x) exp(-x) is 1/2: a level's edge, seen from s
_EULER = 0.5772156649015329


@dataclass(frozen=True, kw_only=True)
class BayesFiniteRisk:
    """Predicted risk of dMMSE at finite d; every field has the broadcast shape of the arguments.

    Attributes
    ----------
    icl, idg, gap : array
        Errors on fresh and on pretraining tasks, label noise included, and their difference.
    condensation : array
        The mean sum of the squared posterior weights for a fresh task.
    """

    icl: Floats
    idg: Floats
    gap: Floats
    condensation: Floats


def bayes_discrete_finite(
    *,
    d: int,
    alpha: ArrayLike | None = None,
    rho: ArrayLike,
    kappa: ArrayLike | None = None,
    context_length: ArrayLike | None = None,
    n_tasks: ArrayLike | None = None,
    tasks: TaskLaw = "gaussian",
) -> BayesFiniteRisk:
    r"""Predict the errors of dMMSE with k tasks in d dimensions, with corrections of order log(d)/d and the smearing.

    To a fresh task the energies :math:`E_j = |y - X w_j|^2/2\rho` of a list are independent draws. Their law in a
    typical prompt is found level by level: tasks that fit as well as a posterior at inverse temperature b does have the
    mean :math:`w_b` and the covariance :math:`S_b` of `bayes_discrete`, and the density of their energies is the
    saddle point's, :math:`e^{-\mathrm{KL}(b)}/\sqrt{2\pi\, \mathrm{Var}_b E}`. The error of the posterior mean
    :math:`\sum_j p_j w_j` of k such tasks is then exact, by :math:`1/Z^2 = \int_0^\infty s\, e^{-sZ} ds`,
    :math:`Z = \sum_j e^{-E_j}`:

    .. math:: e_{ICL} - \rho = \frac1d \int_0^\infty s\, ds \Big[ k \langle |w_* - w|^2 e^{-2E - s e^{-E}} \rangle
              \varphi^{k-1} + k(k-1)\, \big| \langle (w_* - w)\, e^{-E - s e^{-E}} \rangle \big|^2 \varphi^{k-2} \Big] ,
              \qquad \varphi(s) = \langle e^{-s e^{-E}} \rangle .

    A pretraining task has k - 1 such rivals, and an energy that is normal about the mean at b = 1 with variance
    :math:`d V`, the dispersion of the information density: :math:`V = u` for Gaussian tasks, :math:`u - u^2/2` on the
    sphere, :math:`u = \mathrm{trd}\, X^\top X (X^\top X + \rho)^{-1}`. This smears the transition.

    An approximation: spectra are those of the limit and prompts typical, which leaves out terms of O(1/d). Simulated
    at alpha 1/2 to 4, rho 0.05 to 1, log(k)/d 0.15 to 0.6 and both laws, the ICL error less the noise is within 6, 2
    and 1 per cent of this at d = 10, 20 and 40 (statistical errors are 1 per cent); the IDG error less the noise within
    15 per cent around the transition at d = 10 and 20, and up to a factor of 2 above this where retrieval hardly ever
    fails. It is worst for many tasks in few dimensions and clean prompts (18 per cent too large for 4096 tasks on the
    sphere at d = 8, alpha = 2, rho = 1/32), where `nearest_task`, exact as alpha/rho -> infinity, has another exponent.

    Parameters
    ----------
    d : int
        Token dimension, at least 4.
    alpha, kappa, context_length, n_tasks : array_like
        Context and list as ratios to d, rounded to the nearest sizes, or as sizes; k up to 1e15, or ``math.inf``, which
        is ridge regression.
    rho : array_like
        Label-noise variance (the signal variance is 1).
    tasks : {"gaussian", "sphere"}
        Law of the tasks.

    Returns
    -------
    BayesFiniteRisk

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
    >>> law = icl.theory.bayes_discrete_finite(d=20, alpha=2.0, rho=0.5, n_tasks=[20, 403])
    >>> law.icl.round(2)   # simulation: 1.73(1), 1.352(8); as d -> infinity: 1.52, 1.21
    array([1.72, 1.35])
    """
    dimension, law = one_whole("d", d, "token dimension"), check_law(tasks)
    if dimension < _LEAST_D:
        raise ValueError(f"d must be at least {_LEAST_D}, got {dimension} (errors of O(1/d) are left out)")
    _, alpha, kappa = ratios(
        d=d, tau=1.0, alpha=alpha, kappa=kappa, context_length=context_length, n_sequences=None, n_tasks=n_tasks
    )
    k = np.round(kappa * dimension)
    if np.any((k > _MOST_TASKS) & np.isfinite(k)):
        raise ValueError(f"n_tasks must be at most {_MOST_TASKS:g} or math.inf, got {np.max(k[np.isfinite(k)]):g}")
    alpha, rho, k = np.broadcast_arrays(alpha, check("rho", rho), k)
    points = zip(alpha.ravel(), np.maximum(rho, _LEAST_RHO).ravel(), k.ravel(), strict=True)
    found = np.array([_errors(dimension, a, noise, tasks_, law) for a, noise, tasks_ in points])
    icl, idg, condensation = (column.reshape(alpha.shape) for column in found.reshape(-1, 3).T)
    return BayesFiniteRisk(icl=rho + icl, idg=rho + idg, gap=icl - idg, condensation=condensation)


@dataclass(frozen=True)
class _Levels:
    """The tasks sorted by how well they fit a typical prompt, in m cells from the worst to the best."""

    energy: Floats  # (m + 1,) at the edges, decreasing; that of the true task is d/2 on average
    share: Floats  # (m,) of the tasks
    distance: Floats  # (m,) E|w_* - w|^2/d
    overlap: Floats  # (m, m) (w_* - w_b).(w_* - w_b')/d between means


def _levels(d: int, alpha: Floats, rho: Floats, k: float, law: TaskLaw) -> _Levels:
    """Cut the tasks into cells of equal width in r = sqrt(2 KL(b)), and mirror the better half for the worse.

    From dE = -r dr/b and dKL = -b dE follows the density of the saddle point as exp(-r^2/2) sqrt(-dE db/2 pi). To first
    order in b the mean w_b is odd; tasks worse than average have no weight to speak of unless all are.
    """
    farthest = max(math.sqrt(2.0 * (math.log(k) + _FARTHEST)), _WORST)
    r = _CELL / 2.0 * np.arange(2 * math.ceil(farthest / _CELL) + 1)  # edges and middles
    z, _ = freezing_point(np.asarray(r**2 / (2.0 * d), dtype=np.float64), alpha, rho, _least(alpha, rho, law), law)
    t = Traces.of(z, alpha)
    variance = z * _inverse_mu(z, t, rho, law)
    energy = d * (z**2 * t.n + rho * t.q2 + variance * t.u)[::2] / (2.0 * rho)
    growth = np.diff((rho / variance)[::2])
    share = np.exp(-(r[1::2] ** 2) / 2.0) * np.sqrt(np.maximum(-np.diff(energy) * growth, 0.0))
    middle = Traces.of(z[1::2], alpha)
    agreement, product = middle.u, _products(z[1::2], middle, rho)
    distance = 1.0 - 2.0 * agreement + np.diagonal(product) + (variance[1::2] * middle.f)
    worse = slice(round(_WORST / _CELL) - 1, None, -1)
    agreement = np.concatenate([-agreement[worse], agreement])
    sign = np.where(agreement < 0, -1.0, 1.0)
    order = np.concatenate([np.arange(share.size)[worse], np.arange(share.size)])
    share = share[order] / np.sum(share[order])
    return _Levels(
        energy=np.concatenate([2.0 * energy[0] - energy[1 : order.size - energy.size + 2][::-1], energy]),
        share=share,
        distance=np.concatenate([4.0 - distance[worse], distance]),
        overlap=1.0
        - agreement[:, None]
        - agreement[None, :]
        + sign[:, None] * sign[None, :] * product[np.ix_(order, order)],
    )


def _inverse_mu(z: Floats, t: Traces, rho: Floats, law: TaskLaw) -> Floats:
    return np.ones_like(z) if law == "gaussian" else 1.0 + (z - rho) * t.n / t.q


def _least(alpha: Floats, rho: Floats, law: TaskLaw) -> Floats:
    """Return the z at which b is infinite: 0, or on the sphere where the best possible task lies."""
    low, high = math.log(LEAST), math.log(rho)
    if law == "sphere":
        for _ in range(80):
            z = np.exp(np.asarray((low + high) / 2.0))
            if _inverse_mu(z, Traces.of(z, alpha), rho, law) > 0:
                high = (low + high) / 2.0
            else:
                low = (low + high) / 2.0
        return np.asarray(math.exp(high) * (1.0 + 1e-9))
    return np.asarray(LEAST)


def _products(z: Floats, t: Traces, rho: Floats) -> Floats:
    """Return w_b.w_b'/d = trd X^T X (X^T X + rho) G G' for all pairs.

    With (z - z') G G' = G' - G, trd X^T X G G' = (z f - z' f')/(z - z') = (q - q')/(z - z'), n where they are equal.
    """
    gap = z[:, None] - z[None, :]
    close = np.abs(gap) <= 1e-6 * z[:, None]
    first = np.where(close, np.sqrt(np.outer(t.n, t.n)), t.q[:, None] - t.q[None, :]) / np.where(close, 1.0, gap)
    # trd (X^T X)^2 G G' = trd X^T X G - z' trd X^T X G G', made symmetric
    second = (t.u[:, None] - z[None, :] * first + t.u[None, :] - z[:, None] * first) / 2.0
    return second + rho * first


def _errors(d: int, alpha: float, rho: float, k: float, law: TaskLaw) -> tuple[float, float, float]:
    """Return both errors less the noise, and the condensation."""
    if math.isinf(k):
        ridge = float(bayes_ridge(alpha=alpha, rho=rho)) - rho
        return ridge, ridge, 0.0
    levels = _levels(d, np.asarray(alpha), np.asarray(rho), k, law)
    low, high = np.arange(math.log(k) + 20.0, 0.0, -0.5), np.arange(0.5, 15.0, 0.5)
    edges = levels.energy[::-1]
    log_s = np.concatenate([edges[0] - low, edges, edges[-1] + high]) + _HALF
    weight = np.gradient(log_s)
    one = _one_task(log_s, levels)
    icl, total = one.sums(k, levels, weight)
    idg, _ = one.sums(k - 1.0, levels, weight * _true_task(log_s, d, np.asarray(alpha), np.asarray(rho), law))
    squares = k * float(weight @ (one.twice.sum(axis=1) * one.power(k - 1.0)))
    return icl / total, idg, squares / total


def _dispersion(t: Traces, rho: Floats, law: TaskLaw) -> tuple[Floats, Floats]:
    """Return Var(i)/d of i = log p(y|w_*)/p(y), and -Cov(i, |w_* - w_1|^2)/d, from the traces at z = rho.

    Every direction counts by itself. On the sphere both are conditioned on |w_*|^2/2, of variance d/2, with which i has
    the covariance d u/2 and the error d trd (rho G)^2.
    """
    if law == "gaussian":
        return t.u, rho * t.n
    return t.u - t.u**2 / 2.0, rho * t.n + t.u * t.q2


def _true_task(log_s: Floats, d: int, alpha: Floats, rho: Floats, law: TaskLaw) -> Floats:
    """Average exp(-x) of a prompt's own task over prompts, each with the error that goes with it, relative to the mean.

    The information density i is normal, and the task's energy that of b = 1 less i - d I. Where it is low errors are
    large.
    """
    t = Traces.of(rho, alpha)
    variance, covariance = _dispersion(t, rho, law)
    deviation = np.linspace(-6.0, 6.0, 121)  # of -i, in standard deviations
    density = np.exp(-(deviation**2) / 2.0)
    larger = np.maximum(1.0 + deviation * covariance / (t.q * np.sqrt(d * variance)), 0.0)
    exponent = log_s[:, None] - d / 2.0 - deviation * np.sqrt(d * variance)
    return np.asarray(np.exp(-np.exp(np.minimum(exponent, 6.0))) @ (density * larger / np.sum(density)))


@dataclass(frozen=True)
class _OneTask:
    """Averages over one task, for every s a row: exp(-x), and cell by cell x exp(-x) and x^2 exp(-x), x = s e^{-E}."""

    log_missing: Floats  # (S,) log of the mean of exp(-x)
    once: Floats  # (S, m)
    twice: Floats  # (S, m)

    def power(self, k: float) -> Floats:
        return np.exp(k * self.log_missing)

    def sums(self, k: float, levels: _Levels, weight: Floats) -> tuple[float, float]:
        """Integrate over s: the error of the posterior mean of k tasks, and the same with 1 for every distance."""
        if k == 0:
            return 0.0, 0.0
        alone, pairs = k * weight * self.power(k - 1.0), k * (k - 1.0) * weight * self.power(k - 2.0)
        error = alone @ (self.twice @ levels.distance) + pairs @ np.sum(self.once @ levels.overlap * self.once, axis=1)
        return float(error), float(alone @ self.twice.sum(axis=1) + pairs @ self.once.sum(axis=1) ** 2)


def _one_task(log_s: Floats, levels: _Levels) -> _OneTask:
    """Average over one task, with the density of energies constant within a cell: in closed form."""
    log_x = log_s[:, None] - levels.energy[None, :]
    x = np.exp(np.clip(log_x, -100.0, 6.0))
    width = -np.diff(levels.energy)
    wide = width > 1e-3
    density = levels.share / np.where(wide, width, 1.0)
    middle = np.exp(np.clip(log_s[:, None] - (levels.energy[1:] + levels.energy[:-1]) / 2.0, -100.0, 6.0))
    faded = -np.expm1(-x)
    # 1 - (1 + x) exp(-x)
    twice_faded = np.where(x < 1e-3, x**2 * (0.5 - x / 3.0 + x**2 / 8.0), faded - x * np.exp(-x))
    once = np.where(wide, density * np.diff(faded), levels.share * middle * np.exp(-middle))
    twice = np.where(wide, density * np.diff(twice_faded), levels.share * middle**2 * np.exp(-middle))
    seen = np.where(wide, density * np.diff(_ein(log_x, x)), levels.share * -np.expm1(-middle))
    return _OneTask(np.log1p(-np.minimum(seen.sum(axis=1), 1.0 - 1e-15)), once, twice)


def _ein(log_x: Floats, x: Floats) -> Floats:
    """Return the integral of (1 - exp(-t))/t from 0 to x."""
    from scipy.special import exp1

    small = np.minimum(x, 0.5)
    series = np.zeros_like(x)
    for i in range(14, 0, -1):
        series = small * ((-1) ** (i + 1) / (i * math.factorial(i)) + series)
    return np.where(x < 0.5, series, log_x + _EULER + exp1(np.maximum(x, 0.5)))
