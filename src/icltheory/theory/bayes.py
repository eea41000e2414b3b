"""Exact asymptotics of the Bayes estimators, ridge and dMMSE, as d -> infinity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Booleans, Floats, check, ratios
from icltheory.prompts.tasks import TaskLaw, check_law

LEAST = 1e-200  # z below which no error changes any more; what a root at 0 is taken for
_BISECTIONS = 80
_WIDTH = 1e-11  # relative half-width of the interval on which the root is certified
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True, kw_only=True)
class BayesDiscreteRisk:
    r"""Predicted risk of dMMSE with :math:`k = e^{cd}` tasks; every field has the broadcast shape of the arguments.

    Attributes
    ----------
    icl, idg, gap : array
        Errors on fresh and on pretraining tasks, label noise included, and their difference.
    rate : array
        :math:`c = \log(k)/d`, in nats for each dimension.
    critical_rate : array
        I, the information that a prompt holds about its task, in the same unit. Below it dMMSE knows its own tasks and
        fails on others; above it is ridge regression. There are :math:`e^{Id}` tasks at the transition.
    condensation : array
        :math:`\lim E \sum_j p_j^2` of the posterior weights for a fresh task: 1 if one task has all the weight, 0 if
        ever more tasks share it.
    converged : array of bool
        True where the freezing condition changes sign within 1e-11 (relative) around its root, or has none to solve.
    """

    icl: Floats
    idg: Floats
    gap: Floats
    rate: Floats
    critical_rate: Floats
    condensation: Floats
    converged: Booleans


def bayes_ridge(
    *, alpha: ArrayLike | None = None, rho: ArrayLike, d: int | None = None, context_length: ArrayLike | None = None
) -> Floats:
    r"""Predict the error of the best estimator for Gaussian tasks, ridge regression on the prompt, as d -> infinity.

    .. math:: e = \rho (1 + S) , \qquad S = \lim \mathrm{trd} (X^\top X + \rho)^{-1}
              = \frac{2}{\rho + \alpha - 1 + \sqrt{(\rho + \alpha - 1)^2 + 4\rho}} ,

    with X the l x d matrix of tokens and :math:`\alpha = l/d`. It is the same for fresh and for pretraining tasks, and
    for tasks on the sphere. At :math:`\rho = 0` it is the limit, :math:`\max(1 - \alpha, 0)`.

    Parameters
    ----------
    alpha : array_like
        Context length/d.
    rho : array_like
        Label-noise variance (the signal variance is 1).
    d, context_length : optional
        Sizes in place of alpha, which with ``d`` alone is rounded to the realised ratio.

    Returns
    -------
    array
        Of the broadcast shape, accurate to rounding.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    The resolvent is that of Marchenko and Pastur, 1967; the estimator is the benchmark of Raventos, Paul, Chen,
    Ganguli, 2023 (arXiv:2306.15063).

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.bayes_ridge(alpha=[0.5, 1.0, 10.0], rho=0.1).round(4)
    array([0.6742, 0.3702, 0.111 ])
    """
    _, alpha, _ = ratios(
        d=d, tau=1.0, alpha=alpha, kappa=1.0, context_length=context_length, n_sequences=None, n_tasks=None
    )
    alpha, rho = np.broadcast_arrays(alpha, check("rho", rho))
    return np.asarray(rho + shrinkage(rho, alpha)[0])


def bayes_discrete(
    *,
    alpha: ArrayLike | None = None,
    rho: ArrayLike,
    rate: ArrayLike | None = None,
    d: int | None = None,
    kappa: ArrayLike | None = None,
    context_length: ArrayLike | None = None,
    n_tasks: ArrayLike | None = None,
    tasks: TaskLaw = "gaussian",
) -> BayesDiscreteRisk:
    r"""Predict the errors of dMMSE, the posterior mean over k tasks, as d -> infinity with :math:`\log(k)/d = c` fixed.

    To a fresh task the list is a random energy model: given the prompt, the energies
    :math:`E_j = |y - X w_j|^2/2\rho` are independent. Below a critical rate few tasks carry the posterior, as they
    would at an inverse temperature b < 1 from infinitely many tasks. With :math:`G = (X^\top X + z)^{-1}`,

    .. math:: w \sim N(w_b, S_b) , \quad w_b = G X^\top y , \quad S_b = \frac{\rho}{b} G , \quad z = \frac{\mu\rho}{b},

    :math:`\mu = 1` for Gaussian tasks, on the sphere such that :math:`E|w|^2 = d`. Then

    .. math::
        c < I: \quad & \frac1d \mathrm{KL}(b) = c , & e_{ICL} &= \rho + \frac1d E|w_* - w_b|^2
                       + (1 - b)\, \mathrm{trd}\, S_b , & e_{IDG} &= \rho \\
        c > I: \quad & b = 1 , & e_{ICL} &= e_{IDG} = \rho + \mathrm{trd}\, S_1 & & (\text{ridge regression}) ,

    with :math:`\mathrm{KL}(b)` the divergence of the tempered posterior from the law of the tasks and
    :math:`I = \mathrm{KL}(1)/d = \frac12 \mathrm{trd} \log(1 + X^\top X/\rho)` the mutual information of task and
    prompt. The factor :math:`1 - b = E \sum_j p_j^2` comes from the Poisson-Dirichlet law of the frozen weights. All
    traces are closed forms in the Marchenko-Pastur resolvent; z is found by bisection and certified. At
    :math:`\rho = 0`, I is infinite and b = 0: the task that fits best is taken (rho -> 0 comes after d -> infinity).

    Corrections are of order :math:`\log(d)/d` in c, and the transition has a width of order :math:`d^{-1/2}`. Both are
    large at d < 100: at alpha = 2, rho = 0.5, c = 0.3 the simulated ICL error of Gaussian tasks is 1.45 at d = 10 and
    1.35 at d = 20, against 1.21 here. `bayes_discrete_finite` has these corrections, and for long and clean prompts
    `nearest_task` is exact at any d.

    Parameters
    ----------
    alpha : array_like
        Context length/d.
    rho : array_like
        Label-noise variance (the signal variance is 1).
    rate : array_like
        c >= 0, in place of the number of tasks; ``math.inf`` is ridge regression.
    d, kappa, n_tasks, context_length : optional
        ``d`` with ``kappa`` (tasks/d, rounded) or ``n_tasks`` sets the rate to :math:`\log(k)/d`, and alpha to what is
        realised at that dimension.
    tasks : {"gaussian", "sphere"}
        Law of the tasks.

    Returns
    -------
    BayesDiscreteRisk

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    This project's own: a heuristic of statistical physics, not a proof, checked by simulation. Derrida, Phys. Rev. B
    24, 1981, for the random energy model; Raventos, Paul, Chen, Ganguli, 2023 (arXiv:2306.15063), for dMMSE.

    Examples
    --------
    >>> import icltheory as icl
    >>> law = icl.theory.bayes_discrete(alpha=2.0, rho=0.5, rate=[0.0, 0.3, 0.6, 0.9])
    >>> law.icl.round(4), float(law.critical_rate[0].round(4))
    (array([2.5   , 1.2109, 0.8671, 0.7808]), 0.7212)
    >>> law.idg.round(4)
    array([0.5   , 0.5   , 0.5   , 0.7808])
    """
    law = check_law(tasks)
    alpha, rate = _alpha_and_rate(d, alpha, context_length, rate, kappa, n_tasks)
    alpha, rho, rate = np.broadcast_arrays(alpha, check("rho", rho), rate)
    critical = information(alpha, rho)
    frozen = rate < critical
    z, certified = freezing_point(np.where(frozen, rate, 0.0), alpha, rho, np.maximum(rho, LEAST), law)
    frozen_gap, condensation = _frozen(z, alpha, rho, law)
    idg = np.where(frozen, rho, rho + shrinkage(rho, alpha)[0])
    gap = np.where(frozen, frozen_gap, 0.0)
    return BayesDiscreteRisk(
        icl=idg + gap,
        idg=idg,
        gap=gap,
        rate=np.array(rate),
        critical_rate=critical,
        condensation=np.where(frozen, condensation, 0.0),
        converged=certified | ~frozen,
    )


@dataclass(frozen=True)
class Traces:
    """Limits of normalised traces with G = (X^T X + z)^{-1}: f of G, q of z G, u of X^T X G, n of X^T X G^2.

    All are positive and found without subtraction, from z f^2 + (z + alpha - 1) f = 1.
    """

    f: Floats
    q: Floats
    u: Floats
    n: Floats
    q2: Floats  # of (z G)^2

    @classmethod
    def of(cls, z: Floats, alpha: Floats) -> "Traces":
        """Evaluate them at z > 0."""
        q, discriminant = shrinkage(z, alpha)
        f = q / z
        u = alpha * f / (1.0 + f)
        return cls(f=f, q=q, u=u, n=u / discriminant, q2=q * (z + q) / discriminant)


def shrinkage(z: Floats, alpha: Floats) -> tuple[Floats, Floats]:
    """Return q, the positive root of q^2 + (z + alpha - 1) q = z, and 2q + z + alpha - 1; at z = 0 the limit."""
    b = z + (alpha - 1.0)
    discriminant = np.hypot(b, 2.0 * np.sqrt(z))
    total = np.abs(b) + discriminant
    return np.where(b > 0, 2.0 * z / np.where(b > 0, total, 1.0), total / 2.0), discriminant


def information(alpha: Floats, rho: Floats) -> Floats:
    """Return I = trd log(1 + X^T X/rho)/2, infinite at rho = 0."""
    t = Traces.of(np.maximum(rho, LEAST), alpha)
    return np.where(rho > 0, (t.u * _mean_log(t.f) + _minus_log(t)) / 2.0, np.inf)


def divergence(z: Floats, alpha: Floats, rho: Floats, law: TaskLaw) -> Floats:
    r"""Return KL(b)/d at z = mu rho/b, as a sum of positive terms.

    With L = trd log(1 + X^T X/z), it is (L - (z - rho) n)/2 for Gaussian tasks and (L - log(1/mu))/2 on the sphere,
    where 1/mu = 1 + (z - rho) n/q. Each is small of second order in u as z grows, its terms of first order.
    """
    t = Traces.of(z, alpha)
    scale = 1.0 + t.q * t.f
    if law == "gaussian":
        rest = np.where(t.u < 0.5, _log_excess(-np.minimum(t.u, 0.5)), -np.log(t.q) - t.u)
        rest = rest + t.u * (t.u + t.q * t.f) / scale + t.u * (rho * t.f) / scale
    else:
        small = np.where(t.u < 0.5, t.u * (t.u + t.q * t.f + rho * t.f) / scale, 0.0)
        rest = np.where(t.u < 0.5, -np.log1p(-small), -np.log(t.q * (1.0 + (1.0 - rho / z) * t.u / scale)))
    return np.asarray((t.u * _mean_log(t.f) + rest) / 2.0)


def freezing_point(rate: Floats, alpha: Floats, rho: Floats, least: Floats, law: TaskLaw) -> tuple[Floats, Booleans]:
    """Solve KL/d = rate for z, by bisection of log z from the least up to where a bound says so; return (z, certified).

    Where even the least z has a KL below the rate, it is the result.
    """
    # where u <= 1/2 and mu > 1/2, both KL/d are below alpha (3 + 3 alpha + 2 rho)/2 z^2
    second = alpha * (3.0 + 3.0 * alpha + 2.0 * rho)
    most = np.maximum(np.maximum(rho, 2.0 * alpha), np.sqrt(second / np.minimum(1.0, 2.0 * np.maximum(rate, 1e-120))))
    low, high = np.log(least), np.log(most)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        above = divergence(np.exp(middle), alpha, rho, law) > rate
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    z = np.maximum(np.exp(high), least)
    before, after = (divergence(z * (1.0 + side), alpha, rho, law) for side in (-_WIDTH, _WIDTH))
    # no tasks but one: b = 0; very many without noise: z = 0
    return z, ((before >= rate) & (after <= rate)) | (rate == 0) | (z <= LEAST * (1.0 + _WIDTH))


def _frozen(z: Floats, alpha: Floats, rho: Floats, law: TaskLaw) -> tuple[Floats, Floats]:
    """Return ICL error less noise, and 1 - b, where few tasks carry the posterior."""
    t = Traces.of(z, alpha)
    inverse_mu = 1.0 if law == "gaussian" else 1.0 + (z - rho) * t.n / t.q
    variance = inverse_mu * z  # rho/b
    condensation = (variance - rho) / variance
    return t.q2 + rho * t.n + condensation * inverse_mu * t.q, condensation


def _mean_log(f: Floats) -> Floats:
    """Return (1 + f) log(1 + f)/f - 1, which is f/2 for small f."""
    return np.asarray(np.log1p(f) - _log_excess(f) / f)


def _minus_log(t: Traces) -> Floats:
    """Return -log q."""
    return np.where(t.u < 0.5, -np.log1p(-np.minimum(t.u, 0.5)), -np.log(t.q))


def _log_excess(x: Floats) -> Floats:
    """Return x - log(1 + x), x > -1; where that cancels, as x^2 times the integral of s/(1 + x s) over [0, 1]."""
    s, near = (1.0 + _NODES) / 2.0, np.where(np.abs(x) < 0.5, x, 0.0)
    integral = np.sum(_WEIGHTS / 2.0 * s / (1.0 + near[..., None] * s), axis=-1)
    return np.where(np.abs(x) < 0.5, near**2 * integral, x - np.log1p(x))


def _alpha_and_rate(
    d: int | None,
    alpha: ArrayLike | None,
    context_length: ArrayLike | None,
    rate: ArrayLike | None,
    kappa: ArrayLike | None,
    n_tasks: ArrayLike | None,
) -> tuple[Floats, Floats]:
    """Return checked (alpha, rate), whichever way they were given."""
    by_tasks = kappa is not None or n_tasks is not None
    if by_tasks and d is None:
        raise TypeError("kappa and n_tasks need d as well (rate = log(n_tasks)/d)")
    if by_tasks and rate is not None:
        raise ValueError(f"give rate or the tasks, not both (got rate={rate!r}, kappa={kappa!r}, n_tasks={n_tasks!r})")
    if not by_tasks and rate is None:
        raise TypeError("missing rate (= log(n_tasks)/d); with d, kappa or n_tasks may be given instead")
    _, alpha, kappa = ratios(
        d=d,
        tau=1.0,
        alpha=alpha,
        kappa=kappa if by_tasks else 1.0,
        context_length=context_length,
        n_sequences=None,
        n_tasks=n_tasks,
    )
    if d is not None and by_tasks:
        return alpha, np.log(np.round(kappa * d)) / d
    given = np.asarray(rate)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"rate must be a number or an array of numbers, got {rate!r}")
    if not np.all(given >= 0):
        raise ValueError(f"rate must be >= 0, got {rate!r} (rate = log(n_tasks)/d; math.inf is ridge regression)")
    return alpha, given.astype(np.float64)
