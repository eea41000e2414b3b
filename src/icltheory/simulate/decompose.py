"""The mean error split into noise, bias and variance, over draws of the tasks and of the training sets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import RNG, Floats, Point, generator, whole
from icltheory.prompts.sampling import Assignment
from icltheory.prompts.tasks import TaskLaw, TaskMoments, task_sampler
from icltheory.simulate.error import best_gamma
from icltheory.simulate.experiment import Experiment
from icltheory.simulate.solve import Method


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A mean error and its four parts, which add up to it.

    Attributes
    ----------
    error : float
        Mean over all draws.
    standard_error : float
        Of `error`, from the scatter between task draws (between sample draws if every prompt has its own task).
    noise : float
        The least error of any Gamma under the test law: it never falls below the label noise.
    bias : float
        What the average fit loses on top of that. An unbiased estimate, like the two below: it may come out slightly
        negative where the true part is smaller than its scatter.
    task_variance : float
        What is lost because the fit depends on which tasks were drawn.
    sample_variance : float
        What is lost because the fit depends on the prompts drawn on given tasks (tokens, noise, use of the tasks).
    """

    error: float
    standard_error: float
    noise: float
    bias: float
    task_variance: float
    sample_variance: float


@dataclass(frozen=True, kw_only=True)
class Decomposition:
    """Noise, bias and variance at one point.

    Attributes
    ----------
    icl, idg : Parts
        Of the error on fresh tasks, and on the pretraining tasks.
    point : Point
        The sizes and ratios that were realised after rounding.
    """

    icl: Parts
    idg: Parts
    point: Point


@dataclass(frozen=True)
class _Group:
    """The fits on one set of tasks: their errors on the two tests, shape (draws,), and their mean."""

    icl: Floats
    idg: Floats
    mean: Floats
    seen: TaskMoments


def decompose(
    *,
    d: int,
    tau: float | None = None,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    ridge: float = 0.0,
    context_length: int | None = None,
    n_sequences: int | None = None,
    n_tasks: float | None = None,
    tasks: TaskLaw = "sphere",
    assignment: Assignment = "random",
    task_covariance: ArrayLike | None = None,
    test_task_covariance: ArrayLike | None = None,
    test_context_length: int | None = None,
    task_draws: int = 8,
    sample_draws: int = 8,
    rng: RNG = None,
    method: Method = "auto",
    tol: float = 1e-8,
) -> Decomposition:
    r"""Simulate a point many times and split its mean errors into noise, bias and variance.

    With T draws of the k tasks and S training sets on each, the fits are :math:`\Gamma_{ts}`. As the error is quadratic
    in Gamma with the minimum :math:`\Gamma^\star` (`best_gamma`), its expectation splits exactly:

    .. math:: E\,e(\Gamma_{ts}) = e(\Gamma^\star) + \|\bar\Gamma - \Gamma^\star\|_B^2
              + E \|\bar\Gamma_t - \bar\Gamma\|_B^2 + E \|\Gamma_{ts} - \bar\Gamma_t\|_B^2 , \qquad
              \|X\|_B^2 = \frac1d \mathrm{tr}\,X B X^\top ,

    noise, bias, task variance and sample variance, where :math:`\bar\Gamma_t = E[\Gamma_{ts} \mid \text{tasks}]` and
    :math:`\bar\Gamma = E\,\Gamma_{ts}`. From the sample means :math:`G_t = \frac1S \sum_s \Gamma_{ts}` and
    :math:`G = \frac1T \sum_t G_t` follow the unbiased estimates of an analysis of variance,

    .. math::
        V_s &= \frac{S}{S-1} \big[\langle e(\Gamma_{ts}) \rangle - \langle e(G_t) \rangle\big] , \\
        V_t &= \frac{T}{T-1} \big[\langle e(G_t) \rangle - e(G)\big] - \frac{V_s}{S} , \\
        \text{bias} &= e(G) - e(\Gamma^\star) - \frac1T \Big(V_t + \frac{V_s}{S}\Big) ,

    which with the noise add up to the mean error :math:`\langle e(\Gamma_{ts}) \rangle`.

    The IDG test is made of the pretraining tasks, so that its law, e, B and :math:`\Gamma^\star` move with them. It is
    split for each task draw, and noise, bias and sample variance are averaged over these; its task variance is 0 by
    definition. If every prompt has its own task (``kappa=math.inf``) no draw of tasks is shared: all T S fits are
    sample draws, and the task variance is 0 in both.

    Parameters
    ----------
    d, tau, alpha, kappa, rho, ridge, context_length, n_sequences, n_tasks
        The point, see `icltheory.simulate.linear_attention`.
    tasks, assignment, task_covariance, test_task_covariance, test_context_length, method, tol
        As there.
    task_draws, sample_draws : int, default 8
        T and S, both >= 2; the cost is that of T S simulations.
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness; 0 is a seed.

    Returns
    -------
    Decomposition

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.
    MemoryError
        Before anything large is allocated, with the estimate.
    SolverError
        If a fit did not reach `tol`.

    References
    ----------
    The model is that of Lu et al., PNAS 122(28), 2025 (arXiv:2405.11751); the split is this project's own.

    Examples
    --------
    >>> import icltheory as icl
    >>> split = icl.simulate.decompose(
    ...     d=8, tau=2.0, alpha=2.0, kappa=0.5, rho=0.1, ridge=0.1, task_draws=4, sample_draws=4, rng=0
    ... )
    >>> parts = split.icl
    >>> bool(abs(parts.noise + parts.bias + parts.task_variance + parts.sample_variance - parts.error) < 1e-12)
    True
    """
    point = Point.of(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        rho=rho,
        ridge=ridge,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    draws = _draws("task_draws", task_draws), _draws("sample_draws", sample_draws)
    experiment = Experiment.of(
        point,
        tasks=tasks,
        assignment=assignment,
        task_covariance=task_covariance,
        test_task_covariance=test_task_covariance,
        test_context_length=test_context_length,
        method=method,
        tol=tol,
    )
    groups = _groups(experiment, *draws, generator(rng))
    return Decomposition(icl=_icl(experiment, groups), idg=_idg(experiment, groups), point=point)


def _draws(name: str, value: int) -> int:
    checked = whole(name, value, "a variance needs two draws")
    if checked.ndim or checked < 2:
        raise ValueError(f"{name} must be one integer >= 2, got {value} (a variance needs two draws)")
    return int(checked)


def _groups(experiment: Experiment, task_draws: int, sample_draws: int, rng: np.random.Generator) -> list[_Group]:
    """Fit S training sets on each of T draws of the tasks, or T S of them where every prompt has its own task."""
    point = experiment.point
    if np.isinf(point.n_tasks):
        return [_group(experiment, None, rng.spawn(task_draws * sample_draws))]
    draw = task_sampler(experiment.law, point.d, covariance=experiment.covariance)
    groups = []
    for stream in rng.spawn(task_draws):
        task_stream, *sample_streams = stream.spawn(1 + sample_draws)
        groups.append(_group(experiment, draw(int(point.n_tasks), task_stream), sample_streams))
    return groups


def _group(experiment: Experiment, tasks: Floats | None, streams: Sequence[np.random.Generator]) -> _Group:
    fresh, seen = experiment.fresh(), experiment.seen(tasks)
    icl, idg = np.empty(len(streams)), np.empty(len(streams))
    total = np.zeros((experiment.point.d, experiment.point.d + 1))
    for i, stream in enumerate(streams):
        gamma, _ = experiment.fit(experiment.sample(stream, tasks))
        icl[i], idg[i] = experiment.error(gamma, fresh), experiment.error(gamma, seen)
        total += gamma
    return _Group(icl, idg, total / len(streams), seen)


def _icl(experiment: Experiment, groups: Sequence[_Group]) -> Parts:
    """Split the error on fresh tasks: one test law for all groups."""
    fresh = experiment.fresh()
    noise = _noise(experiment, fresh)
    errors = np.array([group.icl for group in groups])
    of_means = np.array([experiment.error(group.mean, fresh) for group in groups])
    if len(groups) == 1:
        return _within(errors, of_means, np.array([noise]))
    of_all = experiment.error(np.mean([group.mean for group in groups], axis=0), fresh)
    t, s = errors.shape
    sample_variance = s / (s - 1) * float(errors.mean() - of_means.mean())
    task_variance = t / (t - 1) * float(of_means.mean() - of_all) - sample_variance / s
    return Parts(
        error=float(errors.mean()),
        standard_error=_standard_error(errors),
        noise=noise,
        bias=of_all - noise - (task_variance + sample_variance / s) / t,
        task_variance=task_variance,
        sample_variance=sample_variance,
    )


def _idg(experiment: Experiment, groups: Sequence[_Group]) -> Parts:
    """Split the error on the pretraining tasks: a test law for each group."""
    of_means = np.array([experiment.error(group.mean, group.seen) for group in groups])
    noise = np.array([_noise(experiment, group.seen) for group in groups])
    return _within(np.array([group.idg for group in groups]), of_means, noise)


def _within(errors: Floats, of_means: Floats, noise: Floats) -> Parts:
    """Split errors of shape (groups, draws) in every group, given that of its mean fit and its noise, and average."""
    s = errors.shape[1]
    sample_variance = s / (s - 1) * float(errors.mean() - of_means.mean())
    return Parts(
        error=float(errors.mean()),
        standard_error=_standard_error(errors),
        noise=float(noise.mean()),
        bias=float((of_means - noise).mean()) - sample_variance / s,
        task_variance=0.0,
        sample_variance=sample_variance,
    )


def _noise(experiment: Experiment, moments: TaskMoments) -> float:
    best = best_gamma(moments, experiment.test_context_length, experiment.point.rho)
    return experiment.error(best, moments)


def _standard_error(errors: Floats) -> float:
    """Return that of the mean of errors (groups, draws): groups are independent, or the draws of a single group."""
    independent = errors.mean(axis=1) if len(errors) > 1 else errors[0]
    return float(independent.std(ddof=1) / np.sqrt(len(independent)))
