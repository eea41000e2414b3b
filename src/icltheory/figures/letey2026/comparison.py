"""Correlated prompts (Letey et al. 2026): published values against our simulation."""

import math
from collections.abc import Sequence

from icltheory.figures.figure import Claim
from icltheory.figures.letey2026.rows import CorrelatedRow
from icltheory.figures.published import LETEY2026, LETEY2026_D

LARGEST = 3.0  # standard errors


def published_claim(points: Sequence[CorrelatedRow], crosses: Sequence[CorrelatedRow]) -> Claim:
    """Compare simulations with published ones of the same curve, query and x, if they are of the same dimension."""
    statement = f"The published simulations at d = {LETEY2026_D} are reproduced"
    expected = (
        f"every difference below {LARGEST:g} standard errors; theirs is taken to be our standard deviation over "
        "seeds, that of a single run, as their number of runs is not printed"
    )
    values = {(row.curve, row.query, row.x): row.value for row in crosses}
    found = [
        (row, values[row.curve, row.query, row.x])
        for row in points
        if row.d == LETEY2026_D and (row.curve, row.query, row.x) in values
    ]
    if not found:
        words = f"no simulation at d = {LETEY2026_D} at this scale"
        return Claim(statement=statement, source=LETEY2026, expected=expected, measured=words, holds=None)
    scores = [(row.value - value) / (row.spread * math.sqrt(1 + 1 / (row.seeds or 1))) for row, value in found]
    worst = max(range(len(found)), key=lambda i: abs(scores[i]))
    row, value = found[worst]
    mean = sum(row.value / value - 1 for row, value in found) / len(found)
    return Claim(
        statement=statement,
        source=LETEY2026,
        expected=expected,
        measured=f"{len(found)} values; largest difference {scores[worst]:+.1f} standard errors ({row.curve}, "
        f"{row.query} query, xi = {row.x:g}: {row.value:.4f} against {value:.4f}); mean difference {mean:+.1%}",
        holds=abs(scores[worst]) < LARGEST,
    )
