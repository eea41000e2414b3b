"""The error of a model on held-out prompts, and on its training set."""

import numpy as np
import torch
from torch import Tensor, nn

from icltheory import conventions
from icltheory.points import Floats
from icltheory.probing.result import Estimate
from icltheory.train.config import Data
from icltheory.train.data import Batch

_AT_ONCE = 2**21  # numbers of a batch of prompts


def scale_squared(data: Data) -> float:
    """Return what squared errors in the model's convention must be divided by."""
    return float(conventions.convention(data.convention).scale(data.d)) ** 2


def query_error(model: nn.Module, prompts: Batch, data: Data) -> Estimate:
    r"""Return :math:`\rho + E(\hat y - \langle w, x\rangle)^2` for the query, with its standard error over prompts.

    Label noise does not enter by a draw but by its variance, which makes the estimate as much more precise.
    """
    squares = _squares(model, prompts, last=True) / scale_squared(data)
    return Estimate(value=float(squares.mean() + data.rho), se=float(squares.std(ddof=1) / np.sqrt(len(squares))))


def training_error(model: nn.Module, prompts: Batch, data: Data) -> float:
    """Return the mean squared error on the labels that the model is trained on."""
    return float(_squares(model, prompts, last=False).mean() / scale_squared(data))


def residual(prediction: Tensor, label: Tensor) -> Tensor:
    """Return prediction - label, of the query alone where the labels are, or raise an error with both shapes."""
    if prediction.ndim == 2 and label.ndim == 1:
        prediction = prediction[:, -1]
    if prediction.shape != label.shape:
        raise ValueError(
            f"the model returned shape {tuple(prediction.shape)} where the labels have {tuple(label.shape)}; expected "
            "(b,), the queries' labels, or (b, l + 1), the next label after each number of examples"
        )
    return prediction - label


def _squares(model: nn.Module, prompts: Batch, *, last: bool) -> Floats:
    size = max(1, _AT_ONCE // max(1, prompts.x[0].numel()))
    training = model.training
    model.eval()
    with torch.inference_mode():
        parts = [
            residual(model(part.x, part.y, part.query), part.label).double().square()
            for part in (prompts[start : start + size] for start in range(0, len(prompts), size))
        ]
    model.train(training)
    squares: Floats = torch.cat(parts).cpu().numpy()
    if last and squares.ndim == 2:
        squares = squares[:, -1]
    return squares
