"""What a training has brought: the model, its errors, and how it went."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from icltheory.points import Risk
from icltheory.probing.result import Estimate
from icltheory.tables import Table
from icltheory.train.config import Training

if TYPE_CHECKING:
    from torch import nn


class DivergenceError(RuntimeError):
    """A loss that became infinite, not a number, or far larger than that of always answering 0."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The state of a training after so many steps.

    Attributes
    ----------
    step : int
    learning_rate : float
    loss : float
        Mean loss of the batches since the record before.
    train : float
        Error on the whole fixed data set; nan where it was not asked for.
    validation, validation_se : float
        Error of the query's label on the validation set, label noise included, and its standard error; nan without one.
    seconds : float
        Of training, without evaluations, since the first step.
    """

    step: int
    learning_rate: float
    loss: float
    train: float
    validation: float
    validation_se: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model, its errors, and its history; ``trained.model(x, y, query)`` predicts.

    Attributes
    ----------
    training : Training
        What was asked for.
    model : torch.nn.Module
        In evaluation mode, with the weights that were selected.
    train : float
        Mean squared error on the fixed data set, whose labels are noisy; for fresh sequences, the last record's loss.
    icl, idg : Estimate
        Error of the query's label on fresh tasks, and on the pretraining tasks with fresh tokens; label noise included.
    history : tuple of Record
        One for every evaluation.
    step : int
        Steps taken.
    selected : int
        After which step the model had these weights.
    stopped : {"steps", "patience", "stop_at"}
        Why no more.
    seconds : float
        Of training, without evaluations.
    tokens_per_second : float
        Of training, a token being a vector that the model is given.
    """

    training: Training
    model: "nn.Module"
    train: float
    icl: Estimate
    idg: Estimate
    history: tuple[Record, ...]
    step: int
    selected: int
    stopped: str
    seconds: float
    tokens_per_second: float

    @property
    def risk(self) -> Risk[float]:
        """The errors as theory and simulation return them."""
        icl, idg = float(self.icl.value), float(self.idg.value)
        return Risk(icl=icl, idg=idg, train=self.train, gap=icl - idg)

    def table(self) -> Table:
        """Return the history, a row for every record."""
        names = list(Record.__dataclass_fields__)
        return Table({name: np.array([getattr(record, name) for record in self.history]) for name in names})
