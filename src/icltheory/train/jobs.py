"""Trainings as work for `icltheory.simulate.batch.run_all`: in other processes, and kept in a store."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icltheory.simulate.batch import stream
from icltheory.train.config import RECIPE, Training, digest

if TYPE_CHECKING:
    from torch import nn

    from icltheory.probing.result import Probe


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Mean squared distances of a model from ridge regression and dMMSE on fresh tasks, after so many steps."""

    step: int
    to_ridge: float
    to_ridge_se: float
    to_dmmse: float
    to_dmmse_se: float
    position: float
    position_se: float
    ridge_to_dmmse: float


@dataclass(frozen=True, kw_only=True)
class TrainingOutcome:
    """What is kept of a training; the errors are those of `Trained`, the distances those along training."""

    train: float
    icl: float
    icl_se: float
    idg: float
    idg_se: float
    step: int
    seconds: float
    tokens_per_second: float
    distances: tuple[Distance, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A training, one of its repetitions, and perhaps a probe of it.

    Attributes
    ----------
    training : Training
        Its own seed is not used: all trainings of one seed and repetition share theirs, so that models that differ see
        the same tasks and prompts.
    probe : int
        Prompts of a probe at every evaluation of the training; 0: none.
    seed, repetition : int
    folder : Path or None
        Where checkpoints are kept until the training is done; it does not bear on the result.
    """

    training: Training
    probe: int = 0
    seed: int = 0
    repetition: int = 0
    folder: Path | None = None

    def key(self) -> str:
        """Return what names the result in a store."""
        return digest({"recipe": RECIPE, **asdict(replace(self, folder=None))})

    def kept_in(self, folder: Path) -> "TrainingJob":
        """Return the job with a place for its checkpoints."""
        return replace(self, folder=folder)

    def decode(self, plain: dict[str, Any]) -> TrainingOutcome:
        """Return the outcome of which `plain` is ``asdict``."""
        distances = tuple(Distance(**each) for each in plain["distances"])
        return TrainingOutcome(**{**plain, "distances": distances})

    def price(self) -> float:
        """Guess the relative cost."""
        data, settings, model = self.training.data, self.training.optimization, self.training.model
        width = model.width or data.d
        tokens = settings.batch_size * data.length * model.layers * (width if model.name == "gpt2" else 1)
        return float(settings.steps) * (3000.0 + tokens)

    def run(self) -> TrainingOutcome:
        """Train, on one thread."""
        import torch

        from icltheory.train.loop import train

        torch.set_num_threads(1)
        training = replace(self.training, seed=paired_seed(self.seed, self.repetition))
        distances: list[Distance] = []

        def watch(step: int, model: "nn.Module") -> None:
            distances.append(distance(step, probe_trained(model, training, n_prompts=self.probe)))

        trained = train(training, folder=self.folder, watch=watch if self.probe else None)
        return TrainingOutcome(
            train=trained.train,
            icl=float(trained.icl.value),
            icl_se=float(trained.icl.se),
            idg=float(trained.idg.value),
            idg_se=float(trained.idg.se),
            step=trained.step,
            seconds=trained.seconds,
            tokens_per_second=trained.tokens_per_second,
            distances=tuple(distances),
        )


@dataclass(frozen=True, kw_only=True)
class ThresholdOutcome:
    """An interpolation threshold; see `icltheory.train.threshold.Threshold`."""

    n: float
    low: int
    high: int
    trainings: int


@dataclass(frozen=True, kw_only=True)
class ThresholdJob:
    """The search of an interpolation threshold, from ``training.data.n_sequences``."""

    training: Training
    level: float
    resolution: float
    seed: int = 0
    repetition: int = 0

    def key(self) -> str:
        """Return what names the result in a store."""
        return digest({"recipe": RECIPE, "search": 1, **asdict(self)})

    def kept_in(self, folder: Path) -> "ThresholdJob":  # noqa: ARG002
        """Return the job: it is done anew if it was interrupted."""
        return self

    def decode(self, plain: dict[str, Any]) -> ThresholdOutcome:
        """Return the outcome of which `plain` is ``asdict``."""
        return ThresholdOutcome(**plain)

    def price(self) -> float:
        """Guess the relative cost: that of six trainings."""
        return 6.0 * TrainingJob(training=self.training).price()

    def run(self) -> ThresholdOutcome:
        """Search, on one thread."""
        import torch

        from icltheory.train.threshold import interpolation_threshold

        torch.set_num_threads(1)
        training = replace(self.training, seed=paired_seed(self.seed, self.repetition))
        found = interpolation_threshold(training, level=self.level, resolution=self.resolution)
        return ThresholdOutcome(n=found.n, low=found.low, high=found.high, trainings=len(found.trainings))


def paired_seed(seed: int, repetition: int) -> int:
    """Return the seed that all trainings of a repetition share."""
    return int(stream(seed, repetition, "training").generate_state(1)[0])


def probe_trained(model: "nn.Module", training: Training, *, n_prompts: int = 2000) -> "Probe":
    """Probe a model on the prompts and against the tasks that it was trained on; see `icltheory.probe`."""
    from icltheory.probing.measure import probe

    data = training.data
    if data.kernel is not None:
        raise ValueError("a probe has independent tokens, but the training had correlated ones")
    return probe(
        model,
        d=data.d,
        context_length=data.length,
        n_tasks=data.n_tasks,
        rho=data.rho,
        tasks=data.tasks,
        n_prompts=n_prompts,
        convention=data.convention,
        rng=training.seed,
    )


def distance(step: int, probe: "Probe") -> Distance:
    """Return the distances of the query's prediction on fresh tasks."""
    at = probe.icl
    (ridge, ridge_se), (dmmse, dmmse_se), (position, position_se) = (
        each.query for each in (at.to_ridge, at.to_dmmse, at.position)
    )
    return Distance(
        step=step,
        to_ridge=ridge,
        to_ridge_se=ridge_se,
        to_dmmse=dmmse,
        to_dmmse_se=dmmse_se,
        position=position,
        position_se=position_se,
        ridge_to_dmmse=at.ridge_to_dmmse.query[0],
    )
