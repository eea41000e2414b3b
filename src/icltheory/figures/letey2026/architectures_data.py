"""Trained architectures on correlated tokens (Letey et al. 2026): the trainings, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icltheory.figures.letey2026.query_gain_data import SHORTEST
from icltheory.figures.trained import TrainedRow, mean_and_error
from icltheory.points import Point
from icltheory.prompts.kernels import Kernel
from icltheory.theory import linear_attention
from icltheory.train.config import Data, Model, Optimization, QueryLaw, Training
from icltheory.train.jobs import TrainingJob, TrainingOutcome

TAU, ALPHA, KAPPA, RHO = 4.0, 4.0, 10.0, 0.01
MODELS = {
    "reduced": Model(name="reduced"),
    "linear": Model(name="linear"),
    "softmax": Model(name="softmax"),
    "softmax+MLP": Model(name="softmax-mlp", mlp_ratio=1.0),
    "softmax+4MLP": Model(name="softmax-mlp", mlp_ratio=4.0),
}
QUERIES: tuple[QueryLaw, ...] = ("independent", "next")
PANELS = {"independent": "A", "next": "B", "gain": "C"}


@dataclass(frozen=True, kw_only=True)
class Architectures:
    """Parameters: the dimension, correlation lengths (0: none), trainings of each point, and how they go."""

    d: int
    xis: tuple[float, ...]
    seeds: int
    steps: int
    learning_rate: float


def training(parameters: Architectures, model: str, xi: float, query: QueryLaw) -> Training:
    """Return the training of one point; without correlations both queries are the same."""
    data = Data(d=parameters.d, tau=TAU, alpha=ALPHA, kappa=KAPPA, rho=RHO, tasks="gaussian")
    return Training(
        data=replace(data, xi=xi, query=query) if xi > 0 else data,
        model=MODELS[model],
        optimization=Optimization(steps=parameters.steps, learning_rate=parameters.learning_rate, select="best"),
    )


def jobs(parameters: Architectures) -> list[TrainingJob]:
    """Return all trainings."""
    points = {
        training(parameters, model, xi, query): None for model in MODELS for xi in parameters.xis for query in QUERIES
    }
    return [TrainingJob(training=point, repetition=i) for point in points for i in range(parameters.seeds)]


def rows(
    parameters: Architectures, done: Sequence[TrainingJob], outcomes: Sequence[TrainingOutcome]
) -> list[TrainedRow]:
    """Return every plotted number; gains are of pairs of trainings with the same tasks."""
    groups: dict[Training, list[float]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        groups.setdefault(job.training, []).append(outcome.icl)
    found = _theory(parameters)
    for model in MODELS:
        for xi in parameters.xis:
            apart, continued = (np.array(groups[training(parameters, model, xi, query)]) for query in QUERIES)
            measured = {"independent": apart, "next": continued, "gain": apart - continued}
            for name, values in measured.items():
                value, error = mean_and_error(values.tolist())
                settings = training(parameters, model, xi, "independent")
                found.append(
                    TrainedRow(
                        panel=PANELS[name],
                        kind="training",
                        model=model,
                        measured="gain" if name == "gain" else "icl",
                        x=xi,
                        value=value,
                        error=error,
                        seeds=len(values),
                        d=parameters.d,
                        context_length=settings.data.context_length,
                        n_sequences=settings.data.n_sequences,
                        n_tasks=settings.data.n_tasks,
                        rho=RHO,
                        steps=parameters.steps,
                        batch_size=settings.optimization.batch_size,
                        learning_rate=parameters.learning_rate,
                    )
                )
    return found


def _theory(parameters: Architectures) -> list[TrainedRow]:
    point = Point.of(d=parameters.d, tau=TAU, alpha=ALPHA, kappa=KAPPA, rho=RHO, ridge=0.0)
    found = []
    for xi in np.linspace(0.05, min(max(parameters.xis), point.context_length / SHORTEST), 40).tolist():
        kernel = Kernel.exponential(xi, point.context_length)
        apart, continued = (
            float(linear_attention(**point.ratios(), kernel=kernel, query=query).icl) for query in QUERIES
        )
        errors = {"independent": apart, "next": continued, "gain": apart - continued}
        found += [
            TrainedRow(
                panel=PANELS[name],
                kind="theory",
                model="theory",
                measured="gain" if name == "gain" else "icl",
                x=xi,
                value=value,
            )
            for name, value in errors.items()
        ]
    return found
