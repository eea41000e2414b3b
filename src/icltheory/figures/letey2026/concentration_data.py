"""Concentration (Letey et al. 2026): the simulations to run, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.figures.letey2026.fluctuating_scale import error_without_signal
from icltheory.figures.letey2026.rows import CorrelatedRow, other, predicted, simulated
from icltheory.figures.letey2026.trials import QUERIES, Fit, Prompts, QueryName, Trial, collect, repeat
from icltheory.points import Point
from icltheory.prompts.kernels import Kernel

TAU, ALPHA, KAPPA, RHO = 4.0, 1.0, 0.5, 0.01
Family = Literal["exponential", "power law"]
FAMILIES: tuple[Family, ...] = ("exponential", "power law")
GRID: dict[Family, tuple[float, ...]] = {
    "exponential": (0.01, 0.05, 0.2, 1.0, 3.0, 10.0, 50.0),  # xi/l
    "power law": (0.1, 0.3, 0.5, 1.0, 2.0),  # gamma
}
EDGE: dict[Family, float] = {"exponential": 1.0, "power law": 0.5}
FIXED_RATIO = "limit at fixed xi/l"


@dataclass(frozen=True, kw_only=True)
class Concentration:
    """Parameters: the dimensions, each twice the one before, and the seeds of each."""

    sizes: tuple[int, ...]
    seeds: tuple[int, ...]


def point_of(d: int) -> Point:
    """Return the experiment at a dimension."""
    return Point.of(d=d, tau=TAU, alpha=ALPHA, kappa=KAPPA, rho=RHO)


def kernel_of(family: Family, x: float, context_length: int) -> Kernel:
    """Return the kernel at a place on the axis: xi/l, or the exponent of a power law."""
    if family == "exponential":
        return Kernel.exponential(x * context_length, context_length)
    return Kernel.power_law(x, context_length)


def trial_of(family: Family, x: float, d: int, query: QueryName) -> Trial:
    """Return the simulation at a place on the axis."""
    point = point_of(d)
    return Trial(point=point, prompts=Prompts(kernel=kernel_of(family, x, point.context_length), query=query))


def jobs(parameters: Concentration) -> list[Trial]:
    """Return all simulations."""
    return [
        job
        for d, seeds in zip(parameters.sizes, parameters.seeds, strict=True)
        for family, places in GRID.items()
        for job in repeat([trial_of(family, x, d, query) for x in places for query in QUERIES], seeds)
    ]


def rows(parameters: Concentration, done: Sequence[Trial], outcomes: Sequence[Fit]) -> list[CorrelatedRow]:
    """Return every plotted number; a row's panel is the family of the kernel."""
    groups = collect(done, outcomes)
    found: list[CorrelatedRow] = []
    for d in parameters.sizes:
        for family, places in GRID.items():
            for x in places:
                for query in QUERIES:
                    trial = trial_of(family, x, d, query)
                    found += _measured(family, trial, groups[trial], x)
    return found + _lines(parameters)


def _measured(family: Family, trial: Trial, fits: Sequence[Fit], x: float) -> list[CorrelatedRow]:
    curve = trial.prompts.kernel.regime(trial.prompts.query).name
    means = np.array([fit.mean_gamma for fit in fits])
    count = len(means)
    # jackknife values, whose mean and standard error are those of the relative spread
    whole = _relative_spread(means)
    left_out = np.array([_relative_spread(np.delete(means, i)) for i in range(count)])
    spreads = count * whole - (count - 1) * left_out
    return [
        simulated(family, trial, [fit.icl for fit in fits], curve=curve, x=x),
        simulated(family, trial, spreads, curve=curve, x=x, measured="spread"),
        simulated(family, trial, [fit.weak for fit in fits], curve=curve, x=x, measured="weak"),
        simulated(family, trial, [fit.strong for fit in fits], curve=curve, x=x, measured="strong"),
    ]


def _relative_spread(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / abs(values.mean()))


def _lines(parameters: Concentration) -> list[CorrelatedRow]:
    found = []
    axes: dict[Family, list[float]] = {
        "exponential": np.geomspace(0.01, 50.0, 60).tolist(),
        "power law": np.linspace(0.1, 2.0, 39).tolist(),
    }
    for d in parameters.sizes:
        for family, places in axes.items():
            for x in sorted({*places, *GRID[family]}):
                for query in QUERIES:
                    trial = trial_of(family, x, d, query)
                    found.append(predicted(family, trial.point, trial.prompts, curve=f"d = {d}", x=x))
    point = point_of(256)  # long enough for the continuum of a chain
    for x in sorted({*np.geomspace(0.01, 50.0, 20).tolist(), *GRID["exponential"]}):
        kernel = kernel_of("exponential", x, point.context_length)
        value = error_without_signal(np.linalg.eigvalsh(kernel.matrix()), tau=TAU, rho=RHO)
        found.append(other("exponential", point, curve=FIXED_RATIO, x=x, value=value, measured="icl"))
    return found
