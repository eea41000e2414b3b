"""From the outcomes of repeated simulations to plotted means with their errors, and to the rows of a curve."""

import math
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from icltheory.figures.figure import Row
from icltheory.points import Point
from icltheory.simulate.batch import Outcome


class _HasPoint(Protocol):
    @property
    def point(self) -> Point: ...


def by_point(jobs: Sequence[_HasPoint], outcomes: Sequence[Outcome]) -> dict[Point, list[Outcome]]:
    """Collect the repetitions of every point."""
    groups: dict[Point, list[Outcome]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        groups.setdefault(job.point, []).append(outcome)
    return groups


def mean_row(panel: str, point: Point, group: Sequence[Outcome], target: Literal["icl", "idg"]) -> Row:
    """Return the mean over repetitions, its standard error, and their standard deviation."""
    values = np.array([getattr(outcome, target) for outcome in group])
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Row(
        panel=panel,
        kind="simulation",
        target=target,
        **point.ratios(),
        value=float(values.mean()),
        error=spread / math.sqrt(len(values)),
        spread=spread,
        d=point.d,
        n_sequences=point.n_sequences,
        seeds=len(values),
    )


def pick(rows: Sequence[Row], panel: str, kind: str, *, across: str = "tau", **fields: object) -> list[Row]:
    """Return the rows of one panel and kind with the given fields, in order of the parameter `across`."""
    chosen = [
        row
        for row in rows
        if row.panel == panel and row.kind == kind and all(getattr(row, k) == v for k, v in fields.items())
    ]
    return sorted(chosen, key=lambda row: getattr(row, across))
