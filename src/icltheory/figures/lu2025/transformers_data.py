"""Trained transformers (Fig. 5 of Lu et al. 2025): the trainings, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icltheory.figures.trained import TrainedRow, theory_rows, trained_row
from icltheory.theory import linear_attention
from icltheory.train.config import Data, Model, Optimization, Training
from icltheory.train.exponent import threshold_exponent
from icltheory.train.jobs import ThresholdJob, TrainingJob

ALPHA, RHO = 1.0, 0.01
LEVEL = 0.02
STEPS_PER_D2 = 100  # of the search for a threshold
LINEAR, SOFTMAX, DEEP = "linear", "softmax", "softmax+MLP"
MODELS = {
    LINEAR: Model(name="linear"),
    SOFTMAX: Model(name="blocks", layers=1, mlp_ratio=0.0),
    DEEP: Model(name="blocks", layers=2),
}
PANELS = {LINEAR: "A", SOFTMAX: "B", DEEP: "C"}
TITLES = {LINEAR: "linear attention", SOFTMAX: "1 block, softmax", DEEP: "2 blocks, softmax + MLP"}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Error against tau: dimensions, and how the model is trained."""

    ds: tuple[int, ...]
    taus: tuple[float, ...]
    seeds: int
    steps: int
    batch_size: int
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class Search:
    """Thresholds: dimensions, the factor that brackets n*, and where the search begins, in units of d^2."""

    ds: tuple[int, ...]
    seeds: int
    resolution: float
    start: float
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class Transformers:
    """Parameters of the figure."""

    linear: Curve
    softmax: Curve
    deep: Curve
    linear_search: Search
    softmax_search: Search

    def curves(self) -> dict[str, Curve]:
        """Return model -> its curve."""
        return {LINEAR: self.linear, SOFTMAX: self.softmax, DEEP: self.deep}

    def searches(self) -> dict[str, Search]:
        """Return model -> its search."""
        return {LINEAR: self.linear_search, SOFTMAX: self.softmax_search}


def curve_training(model: str, curve: Curve, d: int, tau: float) -> Training:
    """Return the training of one point."""
    return Training(
        data=Data(d=d, alpha=ALPHA, tau=tau, rho=RHO),
        model=MODELS[model],
        optimization=Optimization(
            steps=curve.steps, batch_size=curve.batch_size, learning_rate=curve.learning_rate, validation=0
        ),
    )


def search_training(model: str, search: Search, d: int) -> Training:
    """Return the training from which a threshold is searched."""
    return Training(
        data=Data(d=d, alpha=ALPHA, tau=search.start, rho=RHO),
        model=MODELS[model],
        optimization=Optimization(
            steps=STEPS_PER_D2 * d * d + 500, batch_size=64, learning_rate=search.learning_rate, validation=0
        ),
        test=2,
    )


def jobs(parameters: Transformers) -> list[Any]:
    """Return all trainings and searches."""
    wanted: list[Any] = [
        TrainingJob(training=curve_training(model, curve, d, tau), repetition=i)
        for model, curve in parameters.curves().items()
        for d in curve.ds
        for tau in curve.taus
        for i in range(curve.seeds)
    ]
    return wanted + [
        ThresholdJob(
            training=search_training(model, search, d), level=LEVEL, resolution=search.resolution, repetition=i
        )
        for model, search in parameters.searches().items()
        for d in search.ds
        for i in range(search.seeds)
    ]


def rows(parameters: Transformers, done: Sequence[Any], outcomes: Sequence[Any]) -> list[TrainedRow]:
    """Return every plotted number."""
    groups: dict[Training, list[Any]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        groups.setdefault(job.training, []).append(outcome)
    found = _theory(parameters)
    for model, curve in parameters.curves().items():
        for d in curve.ds:
            for tau in curve.taus:
                training = curve_training(model, curve, d, tau)
                for measured in ("icl", "train"):
                    values = [getattr(outcome, measured) for outcome in groups[training]]
                    x = training.data.point().tau
                    found.append(trained_row(PANELS[model], model, measured, x, values, training))
    for model, search in parameters.searches().items():
        entries: list[tuple[int, float]] = []
        for d in search.ds:
            training = search_training(model, search, d)
            values = [outcome.n for outcome in groups[training]]
            entries += [(d, n) for n in values]
            row = trained_row("D", model, "threshold", float(d), values, training)
            found.append(replace(row, n_sequences=None))
        fit = threshold_exponent([d for d, _ in entries], [n for _, n in entries])
        for measured, value, error in (("exponent", fit.value, fit.se), ("prefactor", fit.prefactor, 0.0)):
            found.append(
                TrainedRow(
                    panel="D",
                    kind="training",
                    model=model,
                    measured=measured,
                    x=0.0,
                    value=value,
                    error=error,
                    seeds=search.seeds,
                )
            )
    return found


def _theory(parameters: Transformers) -> list[TrainedRow]:
    low, high = min(parameters.linear.taus), max(parameters.linear.taus)
    taus = np.geomspace(low, high, 200)
    law = linear_attention(tau=taus, alpha=ALPHA, kappa=np.inf, rho=RHO, ridge=0.0)
    return theory_rows("A", "icl", taus.tolist(), np.asarray(law.icl).tolist())
