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
        _nearer(parameters, dmmse[0], ridge[0], "dMMSE", "ridge", "With the fewest tasks"),
        _nearer(parameters, ridge[-1], dmmse[-1], "ridge", "dMMSE", "With the most tasks"),
        _crossing(parameters, ridge, dmmse),
    ]


def _nearer(parameters: Transition, near: TrainedRow, far: TrainedRow, one: str, other: str, when: str) -> Claim:
    tested = parameters.steps >= _TRAINED
    margin = 2.0 * math.hypot(near.error, far.error)
    return Claim(
        statement=f"{when} the model is nearer {one} than {other} on fresh tasks",
        source=RAVENTOS2023,
        expected=f"the smaller distance from {one}, by two standard errors",
        measured=f"k = {near.x:g}: {near.value:.4f} ± {near.error:.4f} from {one}, "
        f"{far.value:.4f} ± {far.error:.4f} from {other}" + ("" if tested else f"; {_TRAINED} steps would tell"),
        holds=far.value - near.value > margin if tested else None,
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
