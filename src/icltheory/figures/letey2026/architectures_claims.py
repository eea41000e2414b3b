"""Trained architectures on correlated tokens (Letey et al. 2026): the claims."""

from collections.abc import Sequence

from icltheory.figures.figure import Claim
from icltheory.figures.letey2026.architectures_data import PANELS, Architectures
from icltheory.figures.published import LETEY2026
from icltheory.figures.trained import TrainedRow, pick

_LONG = 4.0  # the longer correlation lengths
_ENOUGH = 3  # seeds


def claims(parameters: Architectures, rows: Sequence[TrainedRow]) -> list[Claim]:
    """Measure all claims."""
    return [_gains_more(parameters, rows, model) for model in ("softmax", "softmax+MLP", "softmax+4MLP")]


def _gains_more(parameters: Architectures, rows: Sequence[TrainedRow], model: str) -> Claim:
    ours = [row for row in pick(rows, PANELS["gain"], kind="training", model=model) if row.x >= _LONG]
    theirs = [row for row in pick(rows, PANELS["gain"], kind="training", model="linear") if row.x >= _LONG]
    more = [
        mine.value - other.value > 2.0 * (mine.error**2 + other.error**2) ** 0.5
        for mine, other in zip(ours, theirs, strict=True)
    ]
    found = "; ".join(
        f"xi = {mine.x:g}: {mine.value:.3f} ± {mine.error:.3f} against {other.value:.3f} ± {other.error:.3f}"
        for mine, other in zip(ours, theirs, strict=True)
    )
    enough = parameters.seeds >= _ENOUGH
    return Claim(
        statement=f"At long correlation lengths {model} gains more from a query that continues its context than full "
        "linear attention",
        source=LETEY2026,
        expected=f"more at every xi >= {_LONG:g}, by two standard errors",
        measured=found + ("" if enough else f"; {_ENOUGH} seeds would give errors"),
        holds=all(more) if enough else None,
    )
