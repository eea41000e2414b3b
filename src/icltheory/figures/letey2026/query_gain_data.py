"""Query gain (Letey et al. 2026): the simulations to run, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icltheory.figures.letey2026.rows import CorrelatedRow, law, other, predicted, quoted, simulated
from icltheory.figures.letey2026.trials import QUERIES, Fit, Prompts, QueryName, Trial, collect, repeat
from icltheory.figures.published import (
    LETEY2026_ALPHA,
    LETEY2026_D,
    LETEY2026_ICL,
    LETEY2026_KAPPA,
    LETEY2026_LIMIT_ALPHA,
    LETEY2026_LIMIT_D,
    LETEY2026_LIMIT_ICL,
    LETEY2026_LIMIT_KAPPA,
    LETEY2026_LIMIT_TAU,
    LETEY2026_LIMIT_XI,
    LETEY2026_RHO,
    LETEY2026_TAU,
    LETEY2026_XI,
)
from icltheory.points import Point
from icltheory.prompts.kernels import Kernel
from icltheory.prompts.regimes import Statistics
from icltheory.theory import query_gain

CURVE = "correlated"
SHORTEST = 12  # correlation lengths up to l/12, as in the paper
LONG_ALPHA = 20.0
EXPONENTIAL, POWER_LAW = "exponential", "power law"


@dataclass(frozen=True, kw_only=True)
class QueryGain:
    """Parameters: dimensions and seeds of the main curves, of few tasks and of long contexts.

    Besides, the exponents of the long contexts, and the random points for each family of kernels.
    """

    d: int
    seeds: int
    few_d: int
    few_seeds: int
    long_d: int
    long_seeds: int
    gammas: tuple[float, ...]
    grid: int


def main_point(d: int) -> Point:
    """Return the paper's experiment."""
    return Point.of(d=d, tau=LETEY2026_TAU, alpha=LETEY2026_ALPHA, kappa=LETEY2026_KAPPA, rho=LETEY2026_RHO)


def few_point(d: int) -> Point:
    """Return the same with few tasks and sequences."""
    return Point.of(
        d=d, tau=LETEY2026_LIMIT_TAU, alpha=LETEY2026_LIMIT_ALPHA, kappa=LETEY2026_LIMIT_KAPPA, rho=LETEY2026_RHO
    )


def long_point(d: int) -> Point:
    """Return the same with a long context."""
    return Point.of(d=d, tau=LETEY2026_TAU, alpha=LONG_ALPHA, kappa=LETEY2026_KAPPA, rho=LETEY2026_RHO)


def curves(parameters: QueryGain) -> dict[str, tuple[Point, dict[float, Kernel], int]]:
    """Return panel -> (point, kernels by what they are plotted against, seeds); gains are drawn in the panel after."""
    main, few, long = main_point(parameters.d), few_point(parameters.few_d), long_point(parameters.long_d)

    def chains(point: Point, xis: Sequence[float]) -> dict[float, Kernel]:
        return {xi: Kernel.exponential(xi, point.context_length) for xi in xis if xi <= point.context_length / SHORTEST}

    return {
        "A": (main, chains(main, LETEY2026_XI), parameters.seeds),
        "D": (few, chains(few, LETEY2026_LIMIT_XI), parameters.few_seeds),
        "F": (long, {g: Kernel.power_law(g, long.context_length) for g in parameters.gammas}, parameters.long_seeds),
    }


def jobs(parameters: QueryGain) -> list[Trial]:
    """Return all simulations."""
    wanted: list[Trial] = []
    for point, kernels, seeds in curves(parameters).values():
        for kernel in kernels.values():
            pair = [Trial(point=point, prompts=Prompts(kernel=kernel, query=query)) for query in QUERIES]
            wanted += repeat(pair, seeds)
    return wanted


def rows(parameters: QueryGain, done: Sequence[Trial], outcomes: Sequence[Fit]) -> list[CorrelatedRow]:
    """Return every plotted number; gains are of pairs of simulations that share their random numbers."""
    groups = collect(done, outcomes)
    found: list[CorrelatedRow] = []
    for panel, (point, kernels, _) in curves(parameters).items():
        for x, kernel in kernels.items():
            errors = {}
            for query in QUERIES:
                trial = Trial(point=point, prompts=Prompts(kernel=kernel, query=query))
                errors[query] = np.array([fit.icl for fit in groups[trial]])
                found.append(simulated(panel, trial, errors[query], curve=CURVE, x=x))
            gain = errors["independent"] - errors["next"]
            found.append(simulated(panel, trial, gain, curve=CURVE, x=x, measured="gain"))
    return found + _lines(parameters) + _grid(parameters) + _published()


def _lines(parameters: QueryGain) -> list[CorrelatedRow]:
    found = []
    for panel, (point, kernels, _) in curves(parameters).items():
        low, high = min(kernels), max(kernels)
        for x in np.linspace(low, high, 81).tolist():
            family = Kernel.power_law if panel == "F" else Kernel.exponential
            kernel = family(x, point.context_length)
            for query in QUERIES:
                found.append(predicted(panel, point, Prompts(kernel=kernel, query=query), curve=CURVE, x=x))
            prompts = Prompts(kernel=kernel, query="next")
            gain = gain_of(point, prompts.statistics)
            found.append(other(panel, point, prompts, curve=CURVE, x=x, value=gain, measured="gain", query="next"))
    return found


def gain_of(point: Point, statistics: Statistics) -> float:
    """Return the gain of theory."""
    return float(query_gain(**point.ratios(), k0=statistics.k0, k1=statistics.k1, k2=statistics.k2))


def _grid(parameters: QueryGain) -> list[CorrelatedRow]:
    r"""Return relative gains at random points against :math:`k_1/[(2 k_2 + \rho) k_0]`, for two families of kernels."""
    rng = np.random.default_rng(2026)
    found = []
    for curve in (EXPONENTIAL, POWER_LAW):
        for _ in range(parameters.grid):
            length = round(10 ** rng.uniform(1.0, 3.5))
            # theory needs the ratios alone, for which d = 100 is fine enough
            point = replace(
                main_point(100),
                n_sequences=round(10 ** rng.uniform(3.0, 5.0)),
                n_tasks=round(10 ** rng.uniform(1.0, 3.5)),
                context_length=round(10 ** rng.uniform(1.0, 4.5)),
                rho=float(10 ** rng.uniform(-3.0, 0.5)),
            )
            if curve == EXPONENTIAL:
                kernel = Kernel.exponential(float(10 ** rng.uniform(-1.0, 0.0)) * length / 8, length)
            else:
                kernel = Kernel.power_law(float(rng.uniform(0.5, 2.0)), length)
            prompts = Prompts(kernel=kernel, query="next")
            s = prompts.statistics
            plain = float(law(point, Prompts(kernel=kernel, query="independent")))
            found.append(
                other(
                    "C",
                    point,
                    prompts,
                    curve=curve,
                    x=s.k1 / ((2 * s.k2 + point.rho) * s.k0),
                    value=gain_of(point, s) / plain,
                    measured="gain",
                    query="next",
                )
            )
    return found


def _published() -> list[CorrelatedRow]:
    found = []
    for panel, point, xis, table in (
        ("A", main_point(LETEY2026_D), LETEY2026_XI, LETEY2026_ICL),
        ("D", few_point(LETEY2026_LIMIT_D), LETEY2026_LIMIT_XI, LETEY2026_LIMIT_ICL),
    ):
        queries: tuple[QueryName, ...] = QUERIES
        for query in queries:
            found += [
                quoted(panel, point, curve=CURVE, x=xi, value=value, query=query)
                for xi, value in zip(xis, table[query], strict=True)
            ]
        pairs = zip(xis, table["independent"], table["next"], strict=True)
        found += [
            quoted(panel, point, curve=CURVE, x=xi, value=a - b, measured="gain", query="next") for xi, a, b in pairs
        ]
    return found
