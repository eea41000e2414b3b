"""Trained linear attention beside the closed form of its reduced model on the very same data."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icltheory.points import Floats
from icltheory.probing.result import Estimate
from icltheory.simulate.solve import ridge_regression
from icltheory.train.config import Training
from icltheory.train.data import Batch, held_out
from icltheory.train.evaluate import query_error, scale_squared, training_error
from icltheory.train.models.reduced import ReducedAttention
from icltheory.train.result import Trained


@dataclass(frozen=True, kw_only=True)
class Comparison:
    r"""A trained model against :math:`\langle\Gamma^*, H\rangle` of its own training set, on the same test prompts.

    Attributes
    ----------
    closed : ReducedAttention
        The reduced model at :math:`\Gamma^*`.
    train, icl, idg : Estimate or float
        Errors of the closed form: on the training set, on fresh tasks, and on the pretraining tasks.
    gap_train : float
        Error of the trained model less that of the closed form, on the training set.
    gap_icl, gap_idg : Estimate
        The same on test prompts, with the standard error over these (both models answer the same ones).
    distance : Estimate
        Mean squared difference of their answers on fresh tasks, in units of the signal variance.
    """

    closed: ReducedAttention
    train: float
    icl: Estimate
    idg: Estimate
    gap_train: float
    gap_icl: Estimate
    gap_idg: Estimate
    distance: Estimate


def closed_form(training: Training, *, ridge: float = 0.0) -> ReducedAttention:
    r"""Fit the reduced model to a training's own fixed data set, without any descent.

    .. math:: \Gamma^* = \arg\min_\Gamma \sum_{\mu \le n} (y^\mu - \langle\Gamma, H^\mu\rangle)^2
              + \frac{n}{d} \lambda \|\Gamma\|_F^2

    Parameters
    ----------
    training : Training
        Its data must be a fixed set; model and optimisation do not matter.
    ridge : float
        lambda >= 0; at 0, the solution of least norm.

    Returns
    -------
    ReducedAttention
        ``model(x, y, query)`` takes prompts in the convention of the data.

    Raises
    ------
    ValueError
        If the data are fresh sequences, whose loss is not of one query each, or ridge is negative.

    References
    ----------
    Lu et al., PNAS 2025, eqs. (8) to (10).
    """
    data = training.data
    if data.n_sequences is None:
        raise ValueError("a closed form needs a fixed data set: give n_sequences or tau")
    if data.loss != "query":
        raise ValueError('a closed form is that of loss="query": with loss="all" a prompt has more than one label')
    prompts = held_out(training, "train", data.n_sequences, torch.device("cpu"))
    scale = scale_squared(data) ** 0.5
    x, y, query, label = (_array(part) / scale for part in (prompts.x, prompts.y, prompts.query, prompts.label))
    correlations = np.einsum("bl,bld->bd", y, x) * (data.d / data.length)  # (n, d)
    rows = np.concatenate([correlations, np.square(y).mean(1, keepdims=True)], axis=1)  # (n, d+1)
    gamma, _ = ridge_regression(query, rows, label, ridge * data.n_sequences / data.d)
    model = ReducedAttention(data.d).to(dtype=torch.float64)
    with torch.no_grad():
        # in a convention that multiplies x and y by c, the features grow by c^3 and the label by c
        model.gamma.copy_(torch.from_numpy(np.asarray(gamma)) / scale**2)
    return model.to(dtype=getattr(torch, training.dtype)).eval()


def compare_closed_form(trained: Trained, *, ridge: float = 0.0) -> Comparison:
    """Compare a trained model, linear attention say, with the reduced model's closed form on the same data.

    Full linear attention has d^2 + 2d effective parameters where the reduced model has d^2 + d, and descent from small
    weights need not end at the solution of least norm: with far more sequences than parameters both gaps close.

    Parameters
    ----------
    trained : Trained
        From `icltheory.train.train` on a fixed data set; trained to convergence, unless you want to see how far it is.
    ridge : float
        Of the closed form; see `closed_form`.

    Examples
    --------
    >>> from icltheory.train import Data, Optimization, Training, compare_closed_form, train
    >>> training = Training(
    ...     data=Data(d=4, alpha=4.0, tau=40.0, rho=0.1),
    ...     optimization=Optimization(steps=1500, learning_rate=0.01),
    ... )
    >>> found = compare_closed_form(train(training))
    >>> bool(abs(found.gap_icl.value) < 0.03)
    True
    """
    training, data = trained.training, trained.training.data
    closed = closed_form(training, ridge=ridge)
    device = next(iter(trained.model.parameters())).device
    closed.to(device)
    assert data.n_sequences is not None
    seen = held_out(training, "train", data.n_sequences, device)
    fresh, known = (held_out(training, split, training.test, device) for split in ("icl", "idg"))
    unit = scale_squared(data)
    gaps, answers = [], []
    for prompts in (fresh, known):
        ours, theirs = (_answers(model, prompts) for model in (trained.model, closed))
        label = _array(prompts.label)
        gaps.append(_mean((np.square(ours - label) - np.square(theirs - label)) / unit))
        answers.append(np.square(ours - theirs) / unit)
    train = training_error(closed, seen, data)
    return Comparison(
        closed=closed,
        train=train,
        icl=query_error(closed, fresh, data),
        idg=query_error(closed, known, data),
        gap_train=training_error(trained.model, seen, data) - train,
        gap_icl=gaps[0],
        gap_idg=gaps[1],
        distance=_mean(answers[0]),
    )


def _answers(model: torch.nn.Module, prompts: Batch) -> Floats:
    with torch.inference_mode():
        answers = model(prompts.x, prompts.y, prompts.query)
    return _array(answers if answers.ndim == 1 else answers[:, -1])


def _array(values: Tensor) -> Floats:
    array: Floats = values.double().cpu().numpy()
    return array


def _mean(values: Floats) -> Estimate:
    return Estimate(value=float(values.mean()), se=float(values.std(ddof=1) / np.sqrt(len(values))))
