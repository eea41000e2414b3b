"""The transition of a small decoder: the claims."""

import math
from collections.abc import Sequence

from icltheory.figures.figure import Claim
from icltheory.figures.published import RAVENTOS2023
from icltheory.figures.raventos2023.transition_data import DMMSE, RIDGE, Transition
from icltheory.figures.trained import TrainedRow, pick

_TRAINED = 5000  # steps from which a claim is tested


def claims(parameters: Transition, rows: Sequence[TrainedRow]) -> list[Claim]:
    """Measure all claims."""
    ridge, dmmse = pick(rows, "A", measured=RIDGE), pick(rows, "A", measured=DMMSE)
    return [
        _nearer(parameters, rows, dmmse[0], ridge[0], "With the fewest tasks the model is nearer dMMSE than ridge"),
        _nearer(parameters, rows, ridge[-1], dmmse[-1], "With the most tasks the model is nearer ridge than dMMSE"),
        _crossing(parameters, ridge, dmmse),
    ]


def _nearer(
    parameters: Transition, rows: Sequence[TrainedRow], near: TrainedRow, far: TrainedRow, statement: str
) -> Claim:
    """Test with the position, which is on the side of 1/2 of the nearer one: both distances are of the same prompts."""
    tested = parameters.steps >= _TRAINED
    at = pick(rows, "C", n_tasks=near.x)[-1]
    beyond = (at.value - 0.5) * (1.0 if near.measured == RIDGE else -1.0)
    return Claim(
        statement=f"{statement} on fresh tasks",
        source=RAVENTOS2023,
        expected=f"position {'above' if near.measured == RIDGE else 'below'} 1/2 by two errors (dMMSE 0, ridge 1)",
        measured=f"k = {near.x:g}: position {at.value:.3f} ± {at.error:.3f}; {near.value:.4f} ± {near.error:.4f} "
        f"{near.measured}, {far.value:.4f} ± {far.error:.4f} {far.measured}"
        + ("" if tested else f"; {_TRAINED} steps would tell"),
        holds=beyond > 2.0 * at.error if tested else None,
    )


def _crossing(parameters: Transition, ridge: Sequence[TrainedRow], dmmse: Sequence[TrainedRow]) -> Claim:
    gaps = [math.log(one.value / other.value) for one, other in zip(ridge, dmmse, strict=True)]
    signs = [gap > 0 for gap in gaps]
    changes = [i for i in range(len(signs) - 1) if signs[i] != signs[i + 1]]
    found = f"{len(changes)} crossings"
    if len(changes) == 1:
        i = changes[0]
        share = gaps[i] / (gaps[i] - gaps[i + 1])
        where = ridge[i].x * (ridge[i + 1].x / ridge[i].x) ** share
        found = f"at k = {where:.0f}, between {ridge[i].x:g} and {ridge[i + 1].x:g}"
    tested = parameters.steps >= _TRAINED
    return Claim(
        statement="The distances from ridge and from dMMSE cross once",
        source=RAVENTOS2023,
        expected="one crossing (of the log distances, interpolated in log k)",
        measured=found + ("" if tested else f"; {_TRAINED} steps would tell"),
        holds=len(changes) == 1 if tested else None,
    )
