"""Double descent (Lu et al. 2025, Fig. 1): the simulations to run, and every plotted number."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.figures.averages import by_point, mean_row
from icltheory.figures.figure import Row
from icltheory.figures.published import LU2025_FIG1, LU2025_FIG1_D, LU2025_FIG1_RUNS, LU2025_FIG1_TAU
from icltheory.points import Point
from icltheory.simulate.batch import Job, Outcome
from icltheory.theory import linear_attention

Target = Literal["icl", "idg"]

RHO = 0.01
KAPPA = 0.5
ALPHAS = (1.0, 10.0, 100.0)
VANISHING = 1e-8  # the ridge of the paper's "ridgeless" runs
RIDGES = (1e-5, 0.1, 1.0)
RIDGE_ALPHA = 10.0
RIDGE_TAU = (0.2, 0.5, 0.85, 1.0, 1.15, 1.5, 2.0)
# the peak: sizes n = d(d+1) + step d, among them n = d^2
PEAK_STEPS = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0)
PEAK_ALPHA = 10.0


@dataclass(frozen=True, kw_only=True)
class DoubleDescent:
    """Parameters: the dimension and seeds of panels A to C, of the peak, and which published points to check."""

    d: int
    seeds: int
    ridge_seeds: int
    peak_d: int
    peak_seeds: int
    published_tau: tuple[float, ...]


def jobs(parameters: DoubleDescent) -> list[Job]:
    """Return all simulations, of every panel and of the comparison with published values."""

    def repeat(seeds: int, points: Iterable[Point]) -> list[Job]:
        return [Job(point=point, assignment="balanced", repetition=i) for point in points for i in range(seeds)]

    def ridgeless(d: int, taus: Iterable[float]) -> list[Point]:
        return [
            Point.of(d=d, tau=tau, alpha=alpha, kappa=KAPPA, rho=RHO, ridge=VANISHING)
            for tau in taus
            for alpha in ALPHAS
        ]

    d = parameters.d
    wanted = repeat(parameters.seeds, ridgeless(d, LU2025_FIG1_TAU))
    if d != LU2025_FIG1_D:
        wanted += repeat(parameters.seeds, ridgeless(LU2025_FIG1_D, parameters.published_tau))
    wanted += repeat(
        parameters.ridge_seeds,
        [
            Point.of(d=d, tau=tau, alpha=RIDGE_ALPHA, kappa=math.inf, rho=RHO, ridge=ridge)
            for tau in RIDGE_TAU
            for ridge in RIDGES
        ],
    )
    return wanted + repeat(parameters.peak_seeds, _peak_points(parameters.peak_d))


def _peak_points(d: int) -> list[Point]:
    sizes = [d * (d + 1) + round(step * d) for step in PEAK_STEPS]
    return [Point.of(d=d, n_sequences=n, alpha=PEAK_ALPHA, kappa=KAPPA, rho=RHO) for n in sizes]


def rows(parameters: DoubleDescent, done: Sequence[Job], outcomes: Sequence[Outcome]) -> list[Row]:
    """Return every plotted number: simulated (averaged over seeds), predicted and published."""
    peak = set(_peak_points(parameters.peak_d))
    simulated: list[Row] = []
    for point, group in by_point(done, outcomes).items():
        if point in peak:
            simulated += [_median_row(point, group, target) for target in ("icl", "idg")]
        elif math.isinf(point.kappa):
            simulated.append(mean_row("C", point, group, "icl"))
        elif point.d == parameters.d:
            simulated += [mean_row("A", point, group, "icl"), mean_row("B", point, group, "idg")]
        if point.d == LU2025_FIG1_D and point not in peak and not math.isinf(point.kappa):
            simulated += [mean_row("published check", point, group, target) for target in ("icl", "idg")]
    return simulated + _theory_rows(parameters) + _published_rows()


def _median_row(point: Point, group: Sequence[Outcome], target: Target) -> Row:
    """At the peak the mean over draws does not exist: report the median, and half the central half as its spread."""
    low, median, high = np.quantile([getattr(outcome, target) for outcome in group], [0.25, 0.5, 0.75])
    return Row(
        panel="D",
        kind="simulation",
        target=target,
        **point.ratios(),
        value=float(median),
        error=1.858 * float(high - low) / 2 / math.sqrt(len(group)),  # sqrt(pi/2)/0.6745: that of a normal median
        spread=float(high - low) / 2,
        d=point.d,
        n_sequences=point.n_sequences,
        seeds=len(group),
    )


def _theory_rows(parameters: DoubleDescent) -> list[Row]:
    # the curve is dense near tau = 1, and skips it: the ridgeless error is infinite there
    near = np.geomspace(1e-3, 0.9, 120)
    tau = np.concatenate([1 - near[::-1], 1 + near, np.linspace(1.95, 2.4, 20)])
    tau = tau[tau > 0.1]
    lines: list[Row] = []

    def add(panel: str, target: Target, taus: np.ndarray, alpha: float, kappa: float, ridge: float) -> None:
        law = linear_attention(tau=taus, alpha=alpha, kappa=kappa, rho=RHO, ridge=ridge)
        lines.extend(
            Row(
                panel=panel,
                kind="theory",
                target=target,
                tau=float(t),
                alpha=alpha,
                kappa=kappa,
                rho=RHO,
                ridge=ridge,
                value=float(value),
            )
            for t, value in zip(taus, getattr(law, target), strict=True)
        )

    for alpha in ALPHAS:
        point = Point.of(d=parameters.d, tau=1, alpha=alpha, kappa=KAPPA, rho=RHO)
        add("A", "icl", tau, point.alpha, point.kappa, 0.0)
        add("B", "idg", tau, point.alpha, point.kappa, 0.0)
    for ridge in RIDGES:
        add("C", "icl", np.sort(np.append(tau, 1.0)), RIDGE_ALPHA, math.inf, ridge)
    d = parameters.peak_d
    point = Point.of(d=d, tau=1, alpha=PEAK_ALPHA, kappa=KAPPA, rho=RHO)
    window = 1 + np.linspace(-4.5 / d, 5.5 / d, 200)
    add("D", "icl", window[window != 1], point.alpha, point.kappa, 0.0)
    add("D", "idg", window[window != 1], point.alpha, point.kappa, 0.0)
    return lines


def _published_rows() -> list[Row]:
    return [
        Row(
            panel="A" if target == "icl" else "B",
            kind="published",
            target=target,  # type: ignore[arg-type]
            tau=tau,
            alpha=alpha,
            kappa=KAPPA,
            rho=RHO,
            ridge=VANISHING,
            value=value,
            d=LU2025_FIG1_D,
            seeds=LU2025_FIG1_RUNS,
        )
        for (target, alpha), values in LU2025_FIG1.items()
        for tau, value in zip(LU2025_FIG1_TAU, values, strict=True)
    ]
