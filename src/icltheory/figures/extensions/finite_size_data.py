"""Finite-size theory: the simulations to run, and every plotted number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.figures.averages import by_point, mean_row
from icltheory.figures.figure import Row
from icltheory.points import Point, Ratios
from icltheory.simulate.batch import Job, Outcome
from icltheory.theory import finite_size as finite_size_law
from icltheory.theory import linear_attention

Target = Literal["icl", "idg"]

CURVE: Ratios = {"tau": 1.0, "alpha": 1.0, "kappa": 1.0, "rho": 0.01, "ridge": 1e-6}
TAU = (0.3, 0.6, 0.85, 1.25, 1.6, 2.5, 4.0)
CONTEXT: Ratios = {"tau": 0.5, "alpha": 1.0, "kappa": 0.5, "rho": 0.1, "ridge": 1e-6}
CONTEXT_ALPHA = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
RATE: Ratios = {"tau": 2.0, "alpha": 1.0, "kappa": 1.0, "rho": 0.1, "ridge": 0.01}


@dataclass(frozen=True, kw_only=True)
class FiniteSize:
    """Dimensions and seeds of panels A and B, of C, and the dimensions of D.

    The smaller a dimension, the more seeds it gets: what they say of a relative distance that falls like 1/d.
    """

    sizes: tuple[int, ...]
    seeds: int
    context_d: int
    context_seeds: int
    rate_sizes: tuple[int, ...]


def jobs(parameters: FiniteSize) -> list[Job]:
    """Return all simulations."""

    def repeat(seeds: int, points: Iterable[Point]) -> list[Job]:
        return [Job(point=point, assignment="balanced", repetition=i) for point in points for i in range(seeds)]

    largest = max(parameters.sizes)
    wanted: list[Job] = []
    for d in parameters.sizes:
        seeds = round(parameters.seeds * (largest / d) ** 1.5)
        wanted += repeat(seeds, [Point.of(d=d, **_at(CURVE, tau=t)) for t in TAU])
    wanted += repeat(parameters.context_seeds, _context_points(parameters))
    for point in _rate_points(parameters):
        wanted += repeat(round(parameters.seeds * (max(parameters.rate_sizes) / point.d)), [point])
    return wanted


def _at(ratios: Ratios, *, tau: float | None = None, alpha: float | None = None) -> Ratios:
    """Return the ratios with one of them changed."""
    changed = ratios.copy()
    changed["tau"] = ratios["tau"] if tau is None else tau
    changed["alpha"] = ratios["alpha"] if alpha is None else alpha
    return changed


def _context_points(parameters: FiniteSize) -> list[Point]:
    return [Point.of(d=parameters.context_d, **_at(CONTEXT, alpha=alpha)) for alpha in CONTEXT_ALPHA]


def _rate_points(parameters: FiniteSize) -> list[Point]:
    return [Point.of(d=d, **RATE) for d in parameters.rate_sizes]


def rows(parameters: FiniteSize, done: Sequence[Job], outcomes: Sequence[Outcome]) -> list[Row]:
    """Return every plotted number; theory rows with a dimension are those of the finite-size theory."""
    context, rate = set(_context_points(parameters)), set(_rate_points(parameters))
    found: list[Row] = []
    for point, group in by_point(done, outcomes).items():
        if point in context:
            found.append(mean_row("C", point, group, "icl"))
        elif point in rate:
            found += [mean_row("D", point, group, "icl"), mean_row("D", point, group, "idg")]
        else:
            found += [mean_row("A", point, group, "icl"), mean_row("B", point, group, "idg")]
    return found + _curves(parameters)


def _curves(parameters: FiniteSize) -> list[Row]:
    """Return the limit's and the finite-size theory's curves, the latter at points that the dimension can realise."""
    tau = np.unique(np.round(np.concatenate([np.geomspace(0.2, 4.5, 90), np.linspace(0.9, 1.15, 40)]), 6))
    lines = []
    for t in tau:
        lines += _line("AB", ("icl", "idg"), _at(CURVE, tau=float(t)), None)
    for d in parameters.sizes:
        for n in np.unique(np.round(tau * d * d)):
            lines += _line("AB", ("icl", "idg"), _at(CURVE, tau=float(n) / d**2), d)
    d = parameters.context_d
    for length in np.unique(np.round(np.geomspace(CONTEXT_ALPHA[0] * d, CONTEXT_ALPHA[-1] * d, 80))):
        for size in (None, d):
            lines += _line("C", ("icl",), _at(CONTEXT, alpha=float(length) / d), size)
    for size in np.unique(np.round(np.geomspace(min(parameters.rate_sizes), max(parameters.rate_sizes), 12))):
        lines += _line("DD", ("icl", "idg"), Point.of(d=int(size), **RATE).ratios(), int(size))
    return lines


def _line(panels: str, targets: Sequence[Target], at: Ratios, d: int | None) -> list[Row]:
    law = linear_attention(**at) if d is None else finite_size_law(d=d, **at)
    return [
        Row(panel=panel, kind="theory", target=target, **at, value=float(getattr(law, target)), d=d)
        for panel, target in zip(panels, targets, strict=True)
    ]
