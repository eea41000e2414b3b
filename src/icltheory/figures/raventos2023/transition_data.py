"""The transition of a small decoder: the trainings, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass

from icltheory.conventions import UNSCALED
from icltheory.figures.trained import TrainedRow, mean_and_error
from icltheory.train.config import Data, Model, Optimization, Training
from icltheory.train.jobs import TrainingJob, TrainingOutcome

PROBE = 4000  # prompts
RIDGE, DMMSE, BETWEEN = "to ridge", "to dMMSE", "ridge to dMMSE"


@dataclass(frozen=True, kw_only=True)
class Transition:
    """Parameters: the problem (noise: its variance, with tokens of N(0, I)), the numbers of tasks, and the training."""

    d: int
    context_length: int
    noise: float
    ks: tuple[int, ...]
    seeds: int
    width: int
    layers: int
    steps: int
    batch_size: int

    @property
    def rho(self) -> float:
        """Label-noise variance in units of the signal variance."""
        return float(UNSCALED.rho(self.noise**0.5, self.d))


def training(parameters: Transition, k: int) -> Training:
    """Return the training on k tasks."""
    return Training(
        data=Data(
            d=parameters.d,
            context_length=parameters.context_length,
            n_tasks=k,
            rho=parameters.rho,
            tasks="gaussian",
            layout="interleaved",
            loss="all",
            convention="unscaled",
        ),
        model=Model(name="gpt2", width=parameters.width, layers=parameters.layers, heads=2),
        optimization=Optimization(
            steps=parameters.steps, batch_size=parameters.batch_size, learning_rate=1e-3, validation=0
        ),
    )


def jobs(parameters: Transition) -> list[TrainingJob]:
    """Return all trainings."""
    return [
        TrainingJob(training=training(parameters, k), probe=PROBE, repetition=i)
        for k in parameters.ks
        for i in range(parameters.seeds)
    ]


def rows(parameters: Transition, done: Sequence[TrainingJob], outcomes: Sequence[TrainingOutcome]) -> list[TrainedRow]:
    """Return every plotted number."""
    groups: dict[float, list[TrainingOutcome]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        groups.setdefault(float(job.training.data.n_tasks or 0), []).append(outcome)
    found = []
    for k, group in groups.items():
        last = [outcome.distances[-1] for outcome in group]
        values = {
            ("A", RIDGE): [(at.to_ridge, at.to_ridge_se) for at in last],
            ("A", DMMSE): [(at.to_dmmse, at.to_dmmse_se) for at in last],
            ("A", BETWEEN): [(at.ridge_to_dmmse, 0.0) for at in last],
            ("B", "icl"): [(outcome.icl, outcome.icl_se) for outcome in group],
            ("B", "idg"): [(outcome.idg, outcome.idg_se) for outcome in group],
        }
        found += [_row(parameters, panel, name, k, k, each) for (panel, name), each in values.items()]
        for places in zip(*(outcome.distances for outcome in group), strict=True):
            positions = [(at.position, at.position_se) for at in places]
            found.append(_row(parameters, "C", "position", k, float(places[0].step), positions))
    return found


def _row(
    parameters: Transition, panel: str, measured: str, k: float, x: float, values: Sequence[tuple[float, float]]
) -> TrainedRow:
    value, error = mean_and_error([value for value, _ in values])
    settings = training(parameters, int(k)).optimization
    return TrainedRow(
        panel=panel,
        kind="training",
        model="gpt2",
        measured=measured,
        x=x,
        value=value,
        error=values[0][1] if len(values) == 1 else error,
        seeds=len(values),
        d=parameters.d,
        context_length=parameters.context_length,
        n_tasks=k,
        rho=parameters.rho,
        steps=parameters.steps,
        batch_size=parameters.batch_size,
        learning_rate=settings.learning_rate,
    )
