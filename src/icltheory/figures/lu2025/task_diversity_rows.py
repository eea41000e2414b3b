"""The gap against task diversity (Lu et al. 2025, Fig. 4): every plotted number, simulated, predicted, published."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from icltheory.figures.lu2025.task_diversity_data import (
    ALPHAS,
    RHO,
    SEQUENCES,
    TRANSITION_ALPHAS,
    TRANSITION_KAPPAS,
    Estimator,
    GapRow,
    TaskDiversity,
    bayes_jobs,
    diversity_points,
    published_points,
    transition_points,
)
from icltheory.figures.published import (
    LU2025_FIG4_ALPHA,
    LU2025_FIG4_D,
    LU2025_FIG4_DMMSE,
    LU2025_FIG4_LINEAR,
    LU2025_FIG4_RUNS,
    LU2025_FIG4_SPREAD,
    LU2025_FIG4_TAU,
)
from icltheory.points import Point, Ratios
from icltheory.prompts.tasks import TaskLaw
from icltheory.simulate.batch import Job, Outcome
from icltheory.simulate.discrete import DiscreteJob, DiscreteRisk
from icltheory.theory import finite_size, linear_attention
from icltheory.theory.nearest_task import nearest_task

RESOLVED = (
    0.5  # relative change that finite d makes in g: beyond, the theory of first order in 1/d is not shown or used
)
_SHOWN = (0.15, 70.0)  # kappas of the curves of panels A and B


def rows(
    parameters: TaskDiversity, done: Sequence[Job | DiscreteJob], outcomes: Sequence[Outcome | DiscreteRisk]
) -> list[GapRow]:
    """Return every plotted number."""
    fits: dict[Point, list[Outcome | DiscreteRisk]] = {}
    bayes: dict[DiscreteJob, list[Outcome | DiscreteRisk]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        if isinstance(job, Job):
            fits.setdefault(job.point, []).append(outcome)
        else:
            bayes.setdefault(replace(job, seed=0, repetition=0), []).append(outcome)
    table = [_fit_row("A", point, fits[point]) for point in diversity_points(parameters)]
    table += [_fit_row("B", point, fits[point]) for point in published_points()]
    transition = [_fit_row("D", point, fits[point]) for point in transition_points(parameters)]
    table += transition + [replace(row, panel="D inset") for row in transition if row.kappa == 1]
    table += [_bayes_row(panel, job, bayes[job]) for panel in "ABC" for job in bayes_jobs(parameters, panel)]
    return table + _curves(parameters) + _transition_curves(parameters.transition_d) + _published_rows()


def _fit_row(panel: str, point: Point, group: Sequence[Outcome | DiscreteRisk]) -> GapRow:
    row = _mean(panel, "linear attention", "sphere", point.alpha, point.d, int(point.n_tasks), group)
    return replace(row, tau=point.tau)


def _bayes_row(panel: str, job: DiscreteJob, group: Sequence[Outcome | DiscreteRisk]) -> GapRow:
    return _mean(panel, "dMMSE", job.tasks, job.context_length / job.d, job.d, job.n_tasks, group)


def _mean(
    panel: str,
    estimator: Estimator,
    law: TaskLaw,
    alpha: float,
    d: int,
    n_tasks: int,
    group: Sequence[Outcome | DiscreteRisk],
) -> GapRow:
    """Return the mean gap of the repetitions, its standard error and their standard deviation."""
    icl, idg = (np.array([getattr(outcome, target) for outcome in group]) for target in ("icl", "idg"))
    gap = icl - idg
    spread = float(gap.std(ddof=1)) if len(gap) > 1 else math.nan
    return GapRow(
        panel=panel,
        kind="simulation",
        estimator=estimator,
        tasks=law,
        tau=None,
        alpha=alpha,
        kappa=n_tasks / d,
        value=float(gap.mean()),
        error=spread / math.sqrt(len(gap)),
        spread=spread,
        icl=float(icl.mean()),
        idg=float(idg.mean()),
        d=d,
        n_tasks=n_tasks,
        seeds=len(gap),
    )


def _whole_tasks(low: float, high: float, d: int, count: int) -> list[int]:
    """Return numbers of tasks between two kappas, evenly spaced on a logarithmic scale."""
    return [int(k) for k in np.unique(np.round(np.geomspace(low * d, high * d, count)))]


def _curves(parameters: TaskDiversity) -> list[GapRow]:
    """Return the theory of panels A, B and C: the limit, finite d, and the nearest task."""
    table: list[GapRow] = []
    for alpha in ALPHAS:
        table += _limit("A", SEQUENCES * alpha, alpha, np.geomspace(*_SHOWN, 120))
        # a task has two sequences at least, as in the simulation
        most = min(_SHOWN[1], SEQUENCES * alpha * parameters.d / 2)
        table += _finite("A", SEQUENCES * alpha, alpha, parameters.d, _whole_tasks(_SHOWN[0], most, parameters.d, 60))
    table += _limit("B", LU2025_FIG4_TAU, LU2025_FIG4_ALPHA, np.geomspace(*_SHOWN, 120))
    sizes = _whole_tasks(*_SHOWN, LU2025_FIG4_D, 60)
    table += _finite("B", LU2025_FIG4_TAU, LU2025_FIG4_ALPHA, LU2025_FIG4_D, sizes)
    for panel in "ABC":
        series: dict[tuple[int, TaskLaw], set[int]] = {}
        for job in bayes_jobs(parameters, panel):
            series.setdefault((job.d, job.tasks), set()).add(job.n_tasks)
        ends = (0.7, 150.0) if panel == "C" else _SHOWN
        for (d, law), simulated in series.items():
            # so nearly straight that the simulated sizes will do
            table += _nearest(panel, d, law, sorted({*simulated, *_whole_tasks(*ends, d, 2)}))
    return table


def _transition_curves(d: int) -> list[GapRow]:
    kappas = np.unique(np.concatenate([np.linspace(0.05, 2.2, 130), TRANSITION_KAPPAS]))
    sizes = list(range(math.ceil(0.2 * d), round(2.2 * d)))
    table: list[GapRow] = []
    for alpha in TRANSITION_ALPHAS:
        table += _limit("D", SEQUENCES * alpha, alpha, kappas)
        table += _finite("D", SEQUENCES * alpha, alpha, d, sizes)
    table += [
        _theory("D", "linear attention", "sphere", math.inf, math.inf, kappa, endless_context(kappa))
        for kappa in map(float, kappas)
    ]
    for alpha in map(float, np.geomspace(8.0, 1e6, 61)):
        table += _limit("D inset", SEQUENCES * alpha, alpha, np.array([1.0]))
    for length in np.unique(np.round(np.geomspace(8.0, 3000.0, 40) * d)):
        table += _finite("D inset", SEQUENCES * length / d, length / d, d, [d])
    return [row for row in table if row.d is None or abs(finite_change(row)) < RESOLVED]


def finite_change(row: GapRow) -> float:
    """Return the relative change that finite d makes in the gap of linear attention, according to theory."""
    finite, limit = predicted(row)
    return finite / limit - 1


def predicted(row: GapRow) -> tuple[float, float]:
    """Return the gap of linear attention at a row's sizes, in the finite-size theory and as d -> infinity."""
    at: Ratios = {"tau": row.tau or 0.0, "alpha": row.alpha, "kappa": row.kappa, "rho": row.rho, "ridge": 0.0}
    return float(finite_size(d=row.d or 0, **at).gap), float(linear_attention(**at).gap)


def endless_context(kappa: float) -> float:
    r"""Return the limit of the gap as alpha -> infinity, :math:`(1 - \kappa)_+ (1 + \rho/(c (1 + \rho)))`."""
    return max(1.0 - kappa, 0.0) * (1.0 + RHO / (SEQUENCES * (1.0 + RHO)))


def critical_gap(alpha: float) -> float:
    r"""Return the leading term of the gap at kappa = 1 as alpha -> infinity.

    It is :math:`\alpha^{-1/2} [\sqrt{1+\rho}/2 + \rho/(c\sqrt{1+\rho})]`.
    """
    root = math.sqrt(1.0 + RHO)
    return (root / 2 + RHO / (SEQUENCES * root)) / math.sqrt(alpha)


def _limit(panel: str, tau: float, alpha: float, kappas: np.ndarray) -> list[GapRow]:
    gap = linear_attention(tau=tau, alpha=alpha, kappa=kappas, rho=RHO).gap
    return [
        _theory(panel, "linear attention", "sphere", tau, alpha, float(k), float(g))
        for k, g in zip(kappas, gap, strict=True)
    ]


def _finite(panel: str, tau: float, alpha: float, d: int, n_tasks: Sequence[int]) -> list[GapRow]:
    gap = finite_size(d=d, tau=tau, alpha=alpha, n_tasks=n_tasks, rho=RHO).gap
    return [
        _theory(panel, "linear attention", "sphere", tau, alpha, k / d, float(g), d)
        for k, g in zip(n_tasks, gap, strict=True)
    ]


def _nearest(panel: str, d: int, law: TaskLaw, n_tasks: Sequence[int]) -> list[GapRow]:
    gap = nearest_task(d=d, n_tasks=n_tasks, tasks=law)
    return [
        _theory(panel, "nearest task", law, None, math.inf, k / d, float(g), d)
        for k, g in zip(n_tasks, gap, strict=True)
    ]


def _theory(
    panel: str,
    estimator: Estimator,
    law: TaskLaw,
    tau: float | None,
    alpha: float,
    kappa: float,
    value: float,
    d: int | None = None,
) -> GapRow:
    return GapRow(
        panel=panel,
        kind="theory",
        estimator=estimator,
        tasks=law,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        value=value,
        d=d,
        n_tasks=None if d is None else round(kappa * d),
    )


def _published_rows() -> list[GapRow]:
    table = []
    for point, gap, spread, bayes in zip(
        published_points(), LU2025_FIG4_LINEAR, LU2025_FIG4_SPREAD, LU2025_FIG4_DMMSE, strict=True
    ):
        cross = GapRow(
            panel="B",
            kind="published",
            estimator="linear attention",
            tasks="sphere",
            tau=point.tau,
            alpha=point.alpha,
            kappa=point.kappa,
            value=gap,
            error=spread / math.sqrt(LU2025_FIG4_RUNS),
            spread=spread,
            d=point.d,
            n_tasks=int(point.n_tasks),
            seeds=LU2025_FIG4_RUNS,
        )
        # how many prompts and lists of tasks it averages was not printed
        unknown = replace(cross, estimator="dMMSE", tasks="gaussian", tau=None, value=bayes, error=0.0, spread=0.0)
        table += [cross, replace(unknown, seeds=None)]
    return table
