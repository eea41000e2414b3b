"""Trained models against the context length: the trainings, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icltheory.figures.trained import TrainedRow, theory_rows, trained_row
from icltheory.theory import linear_attention
from icltheory.train.config import Data, Model, Optimization, Training
from icltheory.train.jobs import TrainingJob, TrainingOutcome

TAU, KAPPA, RHO = 4.0, 0.5, 0.5
INIT = 0.3  # from larger initial weights softmax attention memorises before it learns
MODELS = {
    "linear": Model(name="linear", init_scale=INIT),
    "softmax": Model(name="softmax", init_scale=INIT),
    "softmax+MLP": Model(name="softmax-mlp", mlp_ratio=1.0, init_scale=INIT),
}
END, STOPPED = "end", "stopped"  # all steps, or stopped by the validation error
PANELS = {END: "A", STOPPED: "B", "rise": "C"}
LOOKS, PATIENCE = 40, 4  # evaluations, and after how many without a new least error to stop


@dataclass(frozen=True, kw_only=True)
class TrainedContextLength:
    """Parameters: the dimension, lengths in units of it, trainings of each point, and how they go."""

    d: int
    alphas: tuple[float, ...]
    seeds: int
    steps: int
    learning_rate: float


def training(parameters: TrainedContextLength, model: str, alpha: float, when: str) -> Training:
    """Return the training of one point, to the end or as long as the validation error falls."""
    settings = Optimization(steps=parameters.steps, learning_rate=parameters.learning_rate, validation=0)
    if when == STOPPED:
        every = max(1, parameters.steps // LOOKS)
        settings = replace(settings, validation=1000, evaluate_every=every, patience=PATIENCE, select="best")
    return Training(
        data=Data(d=parameters.d, tau=TAU, alpha=alpha, kappa=KAPPA, rho=RHO),
        model=MODELS[model],
        optimization=settings,
    )


def jobs(parameters: TrainedContextLength) -> list[TrainingJob]:
    """Return all trainings."""
    return [
        TrainingJob(training=training(parameters, model, alpha, when), repetition=i)
        for model in MODELS
        for when in (END, STOPPED)
        for alpha in parameters.alphas
        for i in range(parameters.seeds)
    ]


def rows(
    parameters: TrainedContextLength, done: Sequence[TrainingJob], outcomes: Sequence[TrainingOutcome]
) -> list[TrainedRow]:
    """Return every plotted number; a rise is the mean of differences between trainings with the same tasks."""
    groups: dict[Training, list[TrainingOutcome]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        groups.setdefault(job.training, []).append(outcome)
    found = _theory(parameters)
    for model in MODELS:
        for when in (END, STOPPED):
            longest = groups[training(parameters, model, max(parameters.alphas), when)]
            for alpha in parameters.alphas:
                wanted = training(parameters, model, alpha, when)
                group = groups[wanted]
                for measured in ("icl", "idg", "train"):
                    values = [getattr(outcome, measured) for outcome in group]
                    found.append(trained_row(PANELS[when], model, measured, alpha, values, wanted))
                rise = [last.icl - here.icl for last, here in zip(longest, group, strict=True)]
                found.append(trained_row(PANELS["rise"], model, when, alpha, rise, wanted))
    return found


def _theory(parameters: TrainedContextLength) -> list[TrainedRow]:
    alphas = np.geomspace(min(parameters.alphas), max(parameters.alphas), 100)
    errors = np.asarray(linear_attention(tau=TAU, alpha=alphas, kappa=KAPPA, rho=RHO, ridge=0.0).icl)
    return [
        *theory_rows(PANELS[END], "icl", alphas.tolist(), errors.tolist()),
        *theory_rows(PANELS["rise"], END, alphas.tolist(), (errors[-1] - errors).tolist()),
    ]
