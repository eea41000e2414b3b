"""The gap between fresh and pretraining tasks against task diversity (Lu et al. 2025, Fig. 4): what to simulate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from icltheory.figures.figure import Kind
from icltheory.figures.published import LU2025_FIG4_ALPHA, LU2025_FIG4_D, LU2025_FIG4_KAPPA, LU2025_FIG4_TAU
from icltheory.points import Point
from icltheory.prompts.tasks import TaskLaw
from icltheory.simulate.batch import Job
from icltheory.simulate.discrete import DiscreteJob

Estimator = Literal["linear attention", "dMMSE", "nearest task"]

RHO = 0.01
VANISHING = 1e-8  # the ridge of the paper's "ridgeless" runs
SEQUENCES = 0.2  # c in tau = c alpha
ALPHAS = (10.0, 20.0, 40.0)
KAPPAS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
FAR = 5.0  # the 1/kappa law is fitted from here on
# Panel C: exponents of dMMSE
EXPONENT_KAPPAS = (1, 2, 5, 10, 20, 50, 100)
SERIES: tuple[tuple[int, TaskLaw, float], ...] = (
    (10, "gaussian", 10.0),
    (10, "gaussian", 100.0),
    (10, "sphere", 10.0),
    (20, "gaussian", 10.0),
)
# Panel D: the transition
TRANSITION_ALPHAS = (10.0, 100.0, 1000.0)
TRANSITION_KAPPAS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)


@dataclass(frozen=True, kw_only=True)
class TaskDiversity:
    """Parameters: dimensions, and how often each simulation is repeated.

    Attributes
    ----------
    d, seeds, far_seeds : int
        Panel A: linear attention at few tasks, and from kappa = 5 on, where the gap is small and noisy.
    published_seeds : int
        Panel B, of the published dimension.
    lists, prompts : int
        Lists of tasks for each point of dMMSE, and test prompts of either kind for each list (four times as many in
        panel C, where d is small).
    transition_d, transition_seeds : int
        Panel D.
    """

    d: int
    seeds: int
    far_seeds: int
    published_seeds: int
    lists: int
    prompts: int
    transition_d: int
    transition_seeds: int


@dataclass(frozen=True, kw_only=True)
class GapRow:
    """One plotted number: a gap g = e_ICL - e_IDG, with all that it depends on.

    `error` is the standard error over `seeds` repetitions, 0 for theory; `tau` is None for dMMSE, which is not trained;
    `alpha` = inf and `d` = None are limits. Panel "D inset" has the gap at kappa = 1 against alpha.
    """

    panel: str
    kind: Kind
    estimator: Estimator
    tasks: TaskLaw
    tau: float | None
    alpha: float
    kappa: float
    rho: float = RHO
    value: float
    error: float = 0.0
    spread: float = 0.0
    icl: float | None = None
    idg: float | None = None
    d: int | None = None
    n_tasks: int | None = None
    seeds: int | None = None


def jobs(parameters: TaskDiversity) -> list[Job | DiscreteJob]:
    """Return all simulations."""
    fits: list[tuple[Point, int]] = []
    for point in diversity_points(parameters):
        fits.append((point, parameters.far_seeds if point.kappa >= FAR else parameters.seeds))
    fits += [(point, parameters.published_seeds) for point in published_points()]
    fits += [(point, parameters.transition_seeds) for point in transition_points(parameters)]
    wanted: list[Job | DiscreteJob] = [
        Job(point=point, assignment="balanced", repetition=i) for point, seeds in fits for i in range(seeds)
    ]
    bayes = [job for panel in "ABC" for job in bayes_jobs(parameters, panel)]
    wanted += [replace(job, repetition=i) for job in bayes for i in range(parameters.lists)]
    # a point of two panels is simulated once
    return list(dict.fromkeys(wanted))


def diversity_points(parameters: TaskDiversity) -> list[Point]:
    """Return the points of panel A: all kappas at which a task has two sequences at least."""
    points = [
        Point.of(d=parameters.d, tau=SEQUENCES * alpha, alpha=alpha, kappa=kappa, rho=RHO, ridge=VANISHING)
        for alpha in ALPHAS
        for kappa in KAPPAS
    ]
    return [point for point in points if point.n_sequences >= 2 * point.n_tasks]


def published_points() -> list[Point]:
    """Return the points of panel B at the published sizes: whole tasks, and whole sequences for each."""
    d, points = LU2025_FIG4_D, []
    for kappa in LU2025_FIG4_KAPPA:
        k = math.floor(kappa * d)
        n = round(LU2025_FIG4_TAU * d**2 / k) * k
        points.append(Point.of(d=d, n_sequences=n, alpha=LU2025_FIG4_ALPHA, n_tasks=k, rho=RHO, ridge=VANISHING))
    return points


def transition_points(parameters: TaskDiversity) -> list[Point]:
    """Return the points of panel D."""
    return [
        Point.of(d=parameters.transition_d, tau=SEQUENCES * alpha, alpha=alpha, kappa=kappa, rho=RHO, ridge=VANISHING)
        for alpha in TRANSITION_ALPHAS
        for kappa in TRANSITION_KAPPAS
    ]


def bayes_jobs(parameters: TaskDiversity, panel: str) -> list[DiscreteJob]:
    """Return the simulations of dMMSE in a panel, one of each."""
    if panel == "C":
        sizes = [(d, round(alpha * d), kappa * d, law) for d, law, alpha in SERIES for kappa in EXPONENT_KAPPAS]
    else:
        points = diversity_points(parameters) if panel == "A" else published_points()
        laws: tuple[TaskLaw, ...] = ("gaussian",) if panel == "A" else ("gaussian", "sphere")
        sizes = [(point.d, point.context_length, int(point.n_tasks), law) for point in points for law in laws]
    return [
        DiscreteJob(
            d=d,
            context_length=length,
            n_tasks=k,
            rho=RHO,
            tasks=law,
            prompts=parameters.prompts * (4 if panel == "C" else 1),
        )
        for d, length, k, law in sizes
    ]


def pick(rows: Sequence[GapRow], panel: str, kind: str, **fields: float | str | None) -> list[GapRow]:
    """Return the rows of one panel and kind with the given fields, in order of kappa and alpha."""
    chosen = [
        row
        for row in rows
        if row.panel == panel and row.kind == kind and all(getattr(row, k) == v for k, v in fields.items())
    ]
    return sorted(chosen, key=lambda row: (row.kappa, row.alpha))
