"""Correlations that differ between training and test (after Letey et al. 2026): simulations and plotted numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icltheory.figures.letey2026.rows import CorrelatedRow, predicted, simulated
from icltheory.figures.letey2026.trials import QUERIES, Fit, Prompts, QueryName, Trial, collect, repeat
from icltheory.figures.published import (
    LETEY2026_ALPHA,
    LETEY2026_KAPPA,
    LETEY2026_RHO,
    LETEY2026_TAU,
    LETEY2026_XI,
)
from icltheory.points import Point
from icltheory.prompts.kernels import Kernel

TRAIN_XI = (0.0, 2.0, 5.0, 10.0)
SHORTEST = 12  # correlation lengths up to l/12 are shown
MATCHED = "trained as tested"


@dataclass(frozen=True, kw_only=True)
class OtherCorrelation:
    """Parameters: dimension and seeds."""

    d: int
    seeds: int


def point_of(parameters: OtherCorrelation) -> Point:
    """Return the experiment."""
    return Point.of(d=parameters.d, tau=LETEY2026_TAU, alpha=LETEY2026_ALPHA, kappa=LETEY2026_KAPPA, rho=LETEY2026_RHO)


def lengths(parameters: OtherCorrelation) -> tuple[list[float], list[float]]:
    """Return the correlation lengths of training and of the tests."""
    longest = point_of(parameters).context_length / SHORTEST
    return [xi for xi in TRAIN_XI if xi <= longest], [xi for xi in LETEY2026_XI if xi <= longest]


def prompts_of(parameters: OtherCorrelation, xi: float, query: QueryName) -> Prompts:
    """Return prompts with exponential correlations."""
    return Prompts(kernel=Kernel.exponential(xi, point_of(parameters).context_length), query=query)


def panel_of(train: QueryName, test: QueryName) -> str:
    """Return the letter of the panel: A and B for training on independent queries, C and D for the next token."""
    return "ABCD"[2 * QUERIES.index(train) + QUERIES.index(test)]


def jobs(parameters: OtherCorrelation) -> list[Trial]:
    """Return all pretraining sets, each of whose models is tested on all kinds of prompts."""
    return repeat(list(_trials(parameters).values()), parameters.seeds)


def _trials(parameters: OtherCorrelation) -> dict[tuple[float, QueryName], Trial]:
    train, test = lengths(parameters)
    tests = tuple(prompts_of(parameters, xi, query) for query in QUERIES for xi in test)
    return {
        (xi, query): Trial(point=point_of(parameters), prompts=prompts_of(parameters, xi, query), tests=tests)
        for xi in train
        for query in QUERIES
    }


def rows(parameters: OtherCorrelation, done: Sequence[Trial], outcomes: Sequence[Fit]) -> list[CorrelatedRow]:
    """Return every plotted number; the curve is that of a correlation length of training."""
    groups = collect(done, outcomes)
    tested = lengths(parameters)[1]
    found: list[CorrelatedRow] = []
    for (xi, query), trial in _trials(parameters).items():
        errors = np.array([fit.others for fit in groups[trial]])
        places = [(test, x) for test in QUERIES for x in tested]
        for column, (test, x) in zip(errors.T, places, strict=True):
            panel = panel_of(query, test)
            found.append(simulated(panel, trial, column, curve=curve_of(xi), x=x, query=test))
    return found + _lines(parameters)


def curve_of(xi: float) -> str:
    """Return the name of the curve of a correlation length of training."""
    return f"trained at xi = {xi:g}"


def _lines(parameters: OtherCorrelation) -> list[CorrelatedRow]:
    point, (trained, tested) = point_of(parameters), lengths(parameters)
    found = []
    for x in sorted({*np.linspace(0.0, max(tested), 41).tolist(), *tested}):
        for test in QUERIES:
            prompts = prompts_of(parameters, x, test)
            for query in QUERIES:
                panel = panel_of(query, test)
                for xi in trained:
                    train = prompts_of(parameters, xi, query)
                    found.append(predicted(panel, point, train, prompts, curve=curve_of(xi), x=x))
                if query == test:
                    found.append(predicted(panel, point, prompts, curve=MATCHED, x=x))
    return found
