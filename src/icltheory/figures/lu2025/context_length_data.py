"""Error against context length (Lu et al. 2025, Fig. 2): the simulations to run, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.figures.averages import by_point, mean_row, pick
from icltheory.figures.figure import Row
from icltheory.figures.published import LU2025_FIG2, LU2025_FIG2_D, LU2025_FIG2_KAPPA, LU2025_FIG2_RUNS
from icltheory.points import Point
from icltheory.simulate.batch import Job, Outcome
from icltheory.theory import linear_attention, optimal_context_length

VANISHING = 1e-8  # the ridge of the paper's "ridgeless" runs
LONGEST = 1000.0
# the paper's context lengths, and a shorter one, without which a minimum at 2.3 would not show
_ICL_ALPHAS = (0.7, 2.35, 5.5, 9.62, 22.7, 100.0, LONGEST)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What is held fixed in a panel, and what varies."""

    name: str
    target: Literal["icl", "idg"]
    tau: float
    rho: float
    kappas: tuple[float, ...]
    alphas: tuple[float, ...]


PANELS = (
    Panel(name="A", target="icl", tau=0.5, rho=0.1, kappas=(0.2, 0.4, 0.5, 0.6, 1.5), alphas=_ICL_ALPHAS),
    Panel(name="B", target="icl", tau=20.0, rho=0.5, kappas=(0.25, 0.75, 1.0, 1.1, 2.0), alphas=_ICL_ALPHAS),
    Panel(
        name="C",
        target="idg",
        tau=0.5,
        rho=0.5,
        kappas=(0.1, 0.3, 0.5, 0.7, 2.0),
        alphas=(1.0, 5.6, 6.15, 7.4, 100.0, LONGEST),
    ),
)


@dataclass(frozen=True, kw_only=True)
class ContextLength:
    """Parameters: dimension and seeds of each panel. Panel B has 40 times as many sequences as the others."""

    dimensions: tuple[int, int, int]
    seeds: tuple[int, int, int]


def _points(panel: Panel, d: int) -> list[Point]:
    return [
        Point.of(d=d, tau=panel.tau, alpha=alpha, kappa=kappa, rho=panel.rho, ridge=VANISHING)
        for kappa in panel.kappas
        for alpha in panel.alphas
    ]


def jobs(parameters: ContextLength) -> list[Job]:
    """Return all simulations."""
    return [
        Job(point=point, assignment="balanced", repetition=i)
        for panel, d, seeds in zip(PANELS, parameters.dimensions, parameters.seeds, strict=True)
        for point in _points(panel, d)
        for i in range(seeds)
    ]


def rows(parameters: ContextLength, done: Sequence[Job], outcomes: Sequence[Outcome]) -> list[Row]:
    """Return every plotted number: simulated (averaged over seeds), predicted and published."""
    groups = by_point(done, outcomes)
    table: list[Row] = []
    for panel, d in zip(PANELS, parameters.dimensions, strict=True):
        table += [mean_row(panel.name, point, groups[point], panel.target) for point in _points(panel, d)]
        for kappa in panel.kappas:
            table += _theory_rows(panel, Point.of(d=d, tau=panel.tau, alpha=1, kappa=kappa, rho=panel.rho))
    return table + _published_rows()


def _theory_rows(panel: Panel, point: Point) -> list[Row]:
    """Return the curve at the realised tau and kappa, and its minimum (panel name + " optimum") where there is one."""
    # the shortest context any panel shows, to well past the longest
    alphas = np.geomspace(0.4, 4 * LONGEST, 240)
    law = linear_attention(tau=point.tau, alpha=alphas, kappa=point.kappa, rho=point.rho)
    best = optimal_context_length(tau=point.tau, kappa=point.kappa, rho=point.rho, target=panel.target)
    places = [(panel.name, float(a), float(e)) for a, e in zip(alphas, getattr(law, panel.target), strict=True)]
    if not np.isnan(best.local):
        places.append((f"{panel.name} optimum", float(best.local), float(best.local_risk)))
    return [
        Row(
            panel=name,
            kind="theory",
            target=panel.target,
            tau=point.tau,
            alpha=alpha,
            kappa=point.kappa,
            rho=point.rho,
            ridge=0.0,
            value=value,
        )
        for name, alpha, value in places
    ]


def _published_rows() -> list[Row]:
    panel = PANELS[0]
    return [
        Row(
            panel=panel.name,
            kind="published",
            target=panel.target,
            tau=panel.tau,
            alpha=alpha,
            kappa=kappa,
            rho=panel.rho,
            ridge=VANISHING,
            value=value,
            d=LU2025_FIG2_D,
            seeds=LU2025_FIG2_RUNS,
        )
        for alpha, values in LU2025_FIG2.items()
        for kappa, value in zip(LU2025_FIG2_KAPPA, values, strict=True)
    ]


def curves(rows: Sequence[Row], panel: str) -> list[list[Row]]:
    """Return the simulated curves of a panel, one for each kappa in increasing order."""
    kappas = sorted({row.kappa for row in pick(rows, panel, "simulation", across="alpha")})
    return [pick(rows, panel, "simulation", kappa=kappa, across="alpha") for kappa in kappas]
