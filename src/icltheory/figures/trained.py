"""Rows and averages of figures with trained models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from icltheory.train.config import Training

COLOURS = {
    "theory": "0.3",
    "reduced": "#7a7a7a",
    "linear": "#0b6e99",
    "softmax": "#d1622b",
    "softmax+MLP": "#5b8c2a",
    "softmax+4MLP": "#8a4f9e",
}


@dataclass(frozen=True, kw_only=True)
class TrainedRow:
    """One plotted number of a trained model: a line of the CSV file.

    `x` is what the panel is drawn against; `error` is the standard error over `seeds` trainings of one model, 0 for
    theory; nan where there is one training alone.
    """

    panel: str
    kind: Literal["theory", "training"]
    model: str
    measured: str
    x: float
    value: float
    error: float = 0.0
    seeds: int | None = None
    d: int | None = None
    context_length: int | None = None
    n_sequences: int | None = None
    n_tasks: float | None = None
    rho: float | None = None
    steps: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over repetitions and its standard error."""
    array = np.asarray(values, dtype=float)
    error = float(array.std(ddof=1)) / math.sqrt(len(array)) if len(array) > 1 else math.nan
    return float(array.mean()), error


def trained_row(
    panel: str, model: str, measured: str, x: float, values: Sequence[float], training: Training
) -> TrainedRow:
    """Return the mean of one number of a model over repetitions of a training."""
    value, error = mean_and_error(values)
    data, settings = training.data, training.optimization
    return TrainedRow(
        panel=panel,
        kind="training",
        model=model,
        measured=measured,
        x=x,
        value=value,
        error=error,
        seeds=len(values),
        d=data.d,
        context_length=data.context_length,
        n_sequences=data.n_sequences,
        n_tasks=data.n_tasks,
        rho=data.rho,
        steps=settings.steps,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
    )


def theory_rows(panel: str, measured: str, xs: Sequence[float], values: Sequence[float]) -> list[TrainedRow]:
    """Return a curve of the theory."""
    return [
        TrainedRow(panel=panel, kind="theory", model="theory", measured=measured, x=float(x), value=float(value))
        for x, value in zip(xs, values, strict=True)
    ]


def pick(rows: Sequence[TrainedRow], panel: str, **fields: Any) -> list[TrainedRow]:
    """Return the rows of a panel with the given fields, in order of x."""
    chosen = [row for row in rows if row.panel == panel and all(getattr(row, k) == v for k, v in fields.items())]
    return sorted(chosen, key=lambda row: row.x)
