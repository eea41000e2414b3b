"""Task diversity of trained transformers (Fig. 6 of Lu et al. 2025): the claims."""

import itertools
import math
from collections.abc import Sequence

from icltheory.figures.figure import Claim
from icltheory.figures.lu2025.transformer_diversity_data import GAP, TransformerDiversity
from icltheory.figures.published import LU2025
from icltheory.figures.trained import TrainedRow, pick

_ORDER_ONE = (0.3, 3.0)
_ENOUGH = 3  # seeds


def claims(parameters: TransformerDiversity, rows: Sequence[TrainedRow]) -> list[Claim]:
    """Measure all claims."""
    return [claim for d in parameters.ds for claim in (_falls(parameters, rows, d), _where(parameters, rows, d))]


def _falls(parameters: TransformerDiversity, rows: Sequence[TrainedRow], d: int) -> Claim:
    curve = pick(rows, GAP, kind="training", d=d)
    first, last = curve[0], curve[-1]
    enough = parameters.seeds >= _ENOUGH
    fall = first.value - last.value
    return Claim(
        statement="A transformer of two blocks does better on its pretraining tasks than on fresh ones where these are "
        f"few, and hardly where they are many (d = {d})",
        source=f"{LU2025}, Fig. 6",
        expected="g falls from the smallest kappa to the largest by three standard errors, and to less than a tenth",
        measured=f"g = {first.value:.3f} ± {first.error:.3f} at kappa = {first.x:g}, {last.value:.3f} ± "
        f"{last.error:.3f} at {last.x:g}" + ("" if enough else f"; {_ENOUGH} seeds would give errors"),
        holds=fall > 3.0 * math.hypot(first.error, last.error) and last.value < first.value / 10.0 if enough else None,
    )


def _where(parameters: TransformerDiversity, rows: Sequence[TrainedRow], d: int) -> Claim:
    curve = pick(rows, GAP, kind="training", d=d)
    kappa = halved(curve)
    enough = parameters.seeds >= _ENOUGH
    found = f"halved at kappa = {kappa:.2f}; g = " + ", ".join(f"{row.value:.2f} ({row.x:g})" for row in curve)
    return Claim(
        statement=f"The gap closes at a number of tasks in proportion to the dimension, kappa of order one (d = {d})",
        source=f"{LU2025}, Fig. 6",
        expected=f"g halved at a kappa from {_ORDER_ONE[0]:g} to {_ORDER_ONE[1]:g}",
        measured=found + ("" if enough else f"; {_ENOUGH} seeds are wanted"),
        holds=_ORDER_ONE[0] <= kappa <= _ORDER_ONE[1] if enough else None,
    )


def halved(curve: Sequence[TrainedRow]) -> float:
    """Return where a curve first falls below half its first value, between points in log x; nan if it never does."""
    half = curve[0].value / 2.0
    for one, other in itertools.pairwise(curve):
        if one.value >= half > other.value:
            share = (one.value - half) / (one.value - other.value)
            return float(one.x * (other.x / one.x) ** share)
    return math.nan
