"""Trained architectures on correlated tokens (Letey et al. 2026): the trainings, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icltheory.figures.letey2026.query_gain_data import SHORTEST
from icltheory.figures.trained import TrainedRow, theory_rows, trained_row
from icltheory.points import Point
from icltheory.prompts.kernels import Kernel
from icltheory.theory import linear_attention
from icltheory.train.config import Data, Model, Optimization, QueryLaw, Training
from icltheory.train.jobs import TrainingJob, TrainingOutcome

TAU, ALPHA, KAPPA, RHO = 4.0, 4.0, 10.0, 0.01
# by validation error at d = 16, without correlations and at xi = 4 and 8: from larger initial weights softmax attention
# now and then ends at the error of answering 0; weight decay 0.3 beats 0 and 1, for linear and softmax attention alike
INIT, WEIGHT_DECAY, LOOKS = 0.3, 0.3, 60
MODELS = {
    "reduced": Model(name="reduced"),
    "linear": Model(name="linear", init_scale=INIT),
    "softmax": Model(name="softmax", init_scale=INIT),
    "softmax+MLP": Model(name="softmax-mlp", mlp_ratio=1.0, init_scale=INIT),
    "softmax+4MLP": Model(name="softmax-mlp", mlp_ratio=4.0, init_scale=INIT),
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
        optimization=Optimization(
            steps=parameters.steps,
            learning_rate=parameters.learning_rate,
            weight_decay=WEIGHT_DECAY,
            evaluate_every=max(1, parameters.steps // LOOKS),
            select="best",
        ),
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
                settings = training(parameters, model, xi, "independent")
                kind = "gain" if name == "gain" else "icl"
                found.append(trained_row(PANELS[name], model, kind, xi, values.tolist(), settings))
    return found


def _theory(parameters: Architectures) -> list[TrainedRow]:
    point = Point.of(d=parameters.d, tau=TAU, alpha=ALPHA, kappa=KAPPA, rho=RHO, ridge=0.0)
    xis = np.linspace(0.05, min(max(parameters.xis), point.context_length / SHORTEST), 40).tolist()
    apart, continued = (
        [
            float(linear_attention(**point.ratios(), kernel=Kernel.exponential(xi, point.context_length), query=q).icl)
            for xi in xis
        ]
        for q in QUERIES
    )
    gains = [a - b for a, b in zip(apart, continued, strict=True)]
    return [
        *theory_rows(PANELS["independent"], "icl", xis, apart),
        *theory_rows(PANELS["next"], "icl", xis, continued),
        *theory_rows(PANELS["gain"], "gain", xis, gains),
    ]
