"""Where a best context length exists (Lu et al. 2025, Fig. 3): maps from theory, and simulated cells to check them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.figures.averages import by_point, mean_row
from icltheory.figures.figure import Kind
from icltheory.points import Point
from icltheory.simulate.batch import Job, Outcome
from icltheory.theory import linear_attention, non_monotone_boundary, optimal_context_length, optimal_ridge

KAPPA = (0.1, 2.1)
RHO = (0.01, 1.0)


@dataclass(frozen=True, kw_only=True)
class Map:
    """One panel, and its cells (kappa, rho) to simulate: some on either side of the boundary, clear of it."""

    name: str
    target: Literal["icl", "idg"]
    tau: float
    cells: tuple[tuple[float, float], ...]


MAPS = (
    Map(name="A", target="icl", tau=0.5, cells=((0.3, 0.1), (0.3, 0.7), (0.7, 0.7), (1.2, 0.1), (1.8, 0.5))),
    Map(name="B", target="icl", tau=20.0, cells=((0.6, 0.15), (0.7, 0.8), (1.0, 0.5), (1.6, 0.2), (1.9, 0.7))),
    Map(name="C", target="idg", tau=0.5, cells=((0.4, 0.2), (0.5, 0.6), (0.8, 0.8), (0.2, 0.1), (1.5, 0.3))),
)


@dataclass(frozen=True, kw_only=True)
class NonMonotonicity:
    """Parameters: what is computed for each map.

    Attributes
    ----------
    grid : int
        Cells along each axis.
    edges : int
        Values of rho for the boundary, and cells along each axis for the tuned ridge.
    dimensions, seeds : tuple of int
        Of the simulations of each map.
    """

    grid: int
    edges: int
    dimensions: tuple[int, int, int]
    seeds: tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class MapRow:
    """One number of a map.

    Attributes
    ----------
    part : {"map", "edge", "check", "tuned"}
        A cell of the map (`alpha` is the context length of the local minimum and `value` its error; None where there
        is none), a point of the boundary (kappa, rho), a simulated error at `alpha`, or a cell with the best ridge at
        every context length (`value` is the largest relative change of the error from one length to the next longer).
    certified : bool or None
        Whether the number of minima is proved; None for a simulation.
    """

    panel: str
    part: Literal["map", "edge", "check", "tuned"]
    kind: Kind
    target: Literal["icl", "idg"]
    tau: float
    kappa: float
    rho: float
    alpha: float | None = None
    value: float | None = None
    error: float = 0.0
    certified: bool | None = None
    d: int | None = None
    seeds: int | None = None


def axes(parameters: NonMonotonicity) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of kappa and rho of a map's cells."""
    return np.linspace(*KAPPA, parameters.grid), np.linspace(*RHO, parameters.grid)


def check_points(panel: Map, d: int) -> list[Point]:
    """Return the points to simulate: at each cell a short context, that of the predicted minimum, and a long one."""
    points = []
    for kappa, rho in panel.cells:
        realised = round(kappa * d) / d
        best = optimal_context_length(tau=panel.tau, kappa=realised, rho=rho, target=panel.target)
        middle = 10.0 if np.isnan(best.local) else float(best.local)
        for alpha in (middle / 8, middle, 30 * middle):
            points.append(Point.of(d=d, tau=panel.tau, alpha=alpha, kappa=kappa, rho=rho, ridge=1e-8))
    return points


def jobs(parameters: NonMonotonicity) -> list[Job]:
    """Return all simulations."""
    return [
        Job(point=point, assignment="balanced", repetition=i)
        for panel, d, seeds in zip(MAPS, parameters.dimensions, parameters.seeds, strict=True)
        for point in check_points(panel, d)
        for i in range(seeds)
    ]


def rows(parameters: NonMonotonicity, done: Sequence[Job], outcomes: Sequence[Outcome]) -> list[MapRow]:
    """Return every plotted number."""
    groups = by_point(done, outcomes)
    table: list[MapRow] = []
    for panel, d in zip(MAPS, parameters.dimensions, strict=True):
        table += _map_rows(panel, parameters)
        table += _edge_rows(panel, parameters.edges)
        table += _tuned_rows(panel, parameters.edges)
        table += [_check_row(panel, point, groups[point]) for point in check_points(panel, d)]
    return table


def _map_rows(panel: Map, parameters: NonMonotonicity) -> list[MapRow]:
    kappa, rho = (values.ravel() for values in np.meshgrid(*axes(parameters)))
    best = optimal_context_length(tau=panel.tau, kappa=kappa, rho=rho, target=panel.target)
    certified = best.stationary.certified
    return [
        MapRow(
            panel=panel.name,
            part="map",
            kind="theory",
            target=panel.target,
            tau=panel.tau,
            kappa=float(kappa[i]),
            rho=float(rho[i]),
            alpha=None if math.isnan(best.local[i]) else float(best.local[i]),
            value=None if math.isnan(best.local[i]) else float(best.local_risk[i]),
            certified=bool(certified[i]),
        )
        for i in range(len(kappa))
    ]


def _edge_rows(panel: Map, count: int) -> list[MapRow]:
    rho = np.geomspace(*RHO, count)
    found = non_monotone_boundary(tau=panel.tau, rho=rho, target=panel.target, kappa_range=(KAPPA[0] / 2, 2 * KAPPA[1]))
    return [
        MapRow(
            panel=panel.name,
            part="edge",
            kind="theory",
            target=panel.target,
            tau=panel.tau,
            kappa=float(kappa),
            rho=float(noise),
            certified=bool(certified),
        )
        for ends in (found.lower, found.upper)
        for noise, certified, row in zip(rho, found.certified, ends, strict=True)
        for kappa in row
        if KAPPA[0] < kappa < KAPPA[1]
    ]


def _tuned_rows(panel: Map, count: int) -> list[MapRow]:
    kappa, rho = (values.ravel() for values in np.meshgrid(np.linspace(*KAPPA, count), np.linspace(*RHO, count)))
    alpha = np.geomspace(0.05, 1e4, 100)
    best = optimal_ridge(tau=panel.tau, alpha=alpha, kappa=kappa[:, None], rho=rho[:, None], target=panel.target)
    change = (np.diff(best.risk, axis=1) / best.risk[:, 1:]).max(axis=1)
    certified = np.all(best.stationary.certified.reshape(len(kappa), -1), axis=1).reshape(-1)
    return [
        MapRow(
            panel=panel.name,
            part="tuned",
            kind="theory",
            target=panel.target,
            tau=panel.tau,
            kappa=float(kappa[i]),
            rho=float(rho[i]),
            value=float(change[i]),
            certified=bool(certified[i]),
        )
        for i in range(len(kappa))
    ]


def _check_row(panel: Map, point: Point, group: Sequence[Outcome]) -> MapRow:
    mean = mean_row(panel.name, point, group, panel.target)
    return MapRow(
        panel=panel.name,
        part="check",
        kind="simulation",
        target=panel.target,
        tau=point.tau,
        kappa=point.kappa,
        rho=point.rho,
        alpha=point.alpha,
        value=mean.value,
        error=mean.error,
        d=point.d,
        seeds=mean.seeds,
    )


@dataclass(frozen=True, kw_only=True)
class Check:
    """A simulated cell: the error at the middle context length, against that at a shorter and at a longer one.

    Attributes
    ----------
    fall, rise : float
        From the short to the middle length, and from there to the long one, in standard errors.
    predicted_fall, predicted_rise : float
        What theory expects them to be, with the standard errors of the simulation.
    """

    kappa: float
    rho: float
    fall: float
    rise: float
    predicted_fall: float
    predicted_rise: float


def checks(rows: Sequence[MapRow], panel: str) -> list[Check]:
    """Return the simulated cells of a panel."""
    cells: dict[tuple[float, float], list[MapRow]] = {}
    for row in rows:
        if row.panel == panel and row.part == "check":
            cells.setdefault((row.kappa, row.rho), []).append(row)
    result = []
    for (kappa, rho), group in cells.items():
        short, middle, long = sorted(group, key=lambda row: row.alpha or 0.0)
        fall, predicted_fall = _above(short, middle)
        rise, predicted_rise = _above(long, middle)
        result.append(
            Check(
                kappa=kappa,
                rho=rho,
                fall=fall,
                rise=rise,
                predicted_fall=predicted_fall,
                predicted_rise=predicted_rise,
            )
        )
    return result


def _above(one: MapRow, other: MapRow) -> tuple[float, float]:
    """Return the difference of two errors over its standard error, as simulated and as predicted."""
    error = math.hypot(one.error, other.error)
    laws = [linear_attention(tau=r.tau, alpha=r.alpha or 0.0, kappa=r.kappa, rho=r.rho) for r in (one, other)]
    predicted = [float(getattr(law, one.target)) for law in laws]
    return ((one.value or 0.0) - (other.value or 0.0)) / error, (predicted[0] - predicted[1]) / error
