"""Task diversity of trained transformers (Fig. 6 of Lu et al. 2025): the trainings, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icltheory.figures.trained import TrainedRow, theory_rows, trained_row
from icltheory.theory import linear_attention
from icltheory.train.config import Data, Model, Optimization, Training
from icltheory.train.jobs import TrainingJob, TrainingOutcome

ALPHA, TAU, RHO = 1.0, 10.0, 0.01
MODEL = "softmax+MLP"
GAP, ERRORS = "A", "B"  # panels


@dataclass(frozen=True, kw_only=True)
class TransformerDiversity:
    """Parameters: dimensions, ratios of tasks to dimensions, trainings of each point, and how they go."""

    ds: tuple[int, ...]
    kappas: tuple[float, ...]
    seeds: int
    steps: int
    batch_size: int
    learning_rate: float


def training(parameters: TransformerDiversity, d: int, kappa: float) -> Training:
    """Return the training of one point."""
    return Training(
        data=Data(d=d, alpha=ALPHA, tau=TAU, kappa=kappa, rho=RHO),
        model=Model(name="blocks", layers=2),
        optimization=Optimization(
            steps=parameters.steps,
            batch_size=parameters.batch_size,
            learning_rate=parameters.learning_rate,
            validation=0,
        ),
    )


def jobs(parameters: TransformerDiversity) -> list[TrainingJob]:
    """Return all trainings."""
    return [
        TrainingJob(training=training(parameters, d, kappa), repetition=i)
        for d in parameters.ds
        for kappa in parameters.kappas
        for i in range(parameters.seeds)
    ]


def rows(
    parameters: TransformerDiversity, done: Sequence[TrainingJob], outcomes: Sequence[TrainingOutcome]
) -> list[TrainedRow]:
    """Return every plotted number."""
    groups: dict[Training, list[TrainingOutcome]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        groups.setdefault(job.training, []).append(outcome)
    found = _theory(parameters)
    for wanted, group in groups.items():
        values = {
            "gap": [outcome.icl - outcome.idg for outcome in group],
            "icl": [outcome.icl for outcome in group],
            "idg": [outcome.idg for outcome in group],
        }
        kappa = wanted.data.point().kappa
        for measured, each in values.items():
            panel = GAP if measured == "gap" else ERRORS
            found.append(trained_row(panel, MODEL, measured, kappa, each, wanted))
    return found


def _theory(parameters: TransformerDiversity) -> list[TrainedRow]:
    kappas = np.geomspace(min(parameters.kappas), max(parameters.kappas), 100)
    law = linear_attention(tau=TAU, alpha=ALPHA, kappa=kappas, rho=RHO, ridge=0.0)
    return theory_rows(GAP, "gap", kappas.tolist(), np.asarray(law.gap).tolist())
