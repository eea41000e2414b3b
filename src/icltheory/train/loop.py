"""The training loop."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from icltheory.probing.result import Estimate
from icltheory.train import checkpoint
from icltheory.train.config import Optimization, Training, from_plain
from icltheory.train.data import Batches, held_out
from icltheory.train.evaluate import query_error, residual, scale_squared, training_error
from icltheory.train.models import build
from icltheory.train.result import DivergenceError, Record, Trained
from icltheory.train.schedule import learning_rate

_LOOK = 50  # steps between looks at whether the loss is finite: each waits for the device
_DIVERGED = 1e4  # times the error of answering 0
Watch = Callable[[int, nn.Module], object]


@dataclass
class _State:
    """All that a training needs to go on, besides its weights."""

    step: int = 0
    history: list[Record] = field(default_factory=list)
    best: float = math.inf
    best_step: int = 0
    best_weights: dict[str, Tensor] | None = None
    waited: int = 0
    stopped: str = ""
    seconds: float = 0.0


def train(
    training: Training,
    *,
    model: nn.Module | None = None,
    folder: Path | str | None = None,
    device: str | None = None,
    watch: Watch | None = None,
    report: Callable[[Record], object] | None = None,
) -> Trained:
    r"""Train a model to learn linear regression in context.

    Each step descends the mean of :math:`(y - \hat y)^2` over a batch of prompts, in units of the signal variance. On a
    CPU the result is the same to the last bit for the same arguments, whether or not it was interrupted on the way.

    Parameters
    ----------
    training : Training
        Data, model and optimisation.
    model : torch.nn.Module, optional
        A model of your own, where ``training.model`` is ``Model(name="own")``, with ``model(x, y, query)`` as for
        `icltheory.probe`; it is trained in place. For a module that takes ``inputs_embeds`` see `Embedded`.
    folder : path, optional
        Where checkpoints are kept. If it holds one of this very training, that is gone on with; if it holds all of it,
        nothing is trained.
    device : str, optional
        Default "cuda" where there is one, else "cpu".
    watch : function (step, model)
        Called at the start and at every evaluation, to measure what you like; the model is then in evaluation mode, and
        without gradients.
    report : function (Record)
        Called with every record, to show progress.

    Returns
    -------
    Trained

    Raises
    ------
    DivergenceError
        If the loss became infinite, not a number or 10,000 times that of answering 0; the last checkpoint is kept.
    ValueError
        If the folder holds another training, or the model returns something of another shape.

    Examples
    --------
    >>> from icltheory.train import Data, Model, Optimization, Training, train
    >>> data = Data(d=5, alpha=4.0, tau=20.0, rho=0.1)
    >>> optimization = Optimization(steps=500, learning_rate=0.01)
    >>> trained = train(Training(data=data, optimization=optimization))     # the model: linear attention
    >>> bool(trained.icl.value < 0.8), trained.stopped      # answering 0 has an error of 1.1
    (True, 'steps')
    """
    place = _place(device or ("cuda" if torch.cuda.is_available() else "cpu"), training.dtype)
    path = None if folder is None else Path(folder)
    with torch.random.fork_rng():
        torch.manual_seed(training.seed if training.init_seed is None else training.init_seed)
        if model is not None and training.model.name != "own":
            raise ValueError(
                f'with a module of your own, training.model must be Model(name="own"), got {training.model}'
            )
        module = build(training.model, training.data) if model is None else model
        module.to(device=place, dtype=getattr(torch, training.dtype))
        optimizer = _optimizer(training.optimization, module)
        state, found = _State(), None if path is None else checkpoint.read(path, place)
        if path is not None and found is not None:
            _restore(found, path, training, module, optimizer, state)
        if found is not None and found["result"] is not None:
            module.load_state_dict(found["weights"])
            return _finished(training, module, state, found["result"])
        _Run(training, module, optimizer, state, path, place, watch, report, scale_squared(training.data)).go()
        return _finish(training, module, optimizer, state, path, place)


def load(folder: Path | str, *, device: str = "cpu") -> Trained:
    """Return the finished training of a folder, its model one of ours, on any device.

    Raises
    ------
    ValueError
        If there is none, if it is not finished, or if the model is not one of ours.
    """
    path, place = Path(folder), _place(device, "float32")
    found = checkpoint.read(path, place)
    if found is None:
        raise ValueError(f"{path} holds no training: there is no {checkpoint.NAME}")
    training = from_plain(found["training"])
    if found["result"] is None:
        raise ValueError(
            f"the training of {path} stopped after {found['state']['step']} of {training.optimization.steps} steps; "
            "train with this folder again to go on"
        )
    with torch.random.fork_rng():
        model = build(training.model, training.data).to(device=place, dtype=getattr(torch, training.dtype))
        if found["model"] != type(model).__qualname__:
            raise ValueError(f"{path} holds weights of a {found['model']}, which is not a model of icltheory")
        state = _State()
        _restore(found, path, training, model, None, state)
    return _finished(training, model, state, found["result"])


@dataclass
class _Run:
    """A training on its way."""

    training: Training
    model: nn.Module
    optimizer: torch.optim.Optimizer
    state: _State
    path: Path | None
    device: torch.device
    watch: Watch | None
    report: Callable[[Record], object] | None
    scale: float  # what squared errors are divided by

    def go(self) -> None:
        training, state = self.training, self.state
        settings = training.optimization
        batches = Batches(training, self.device)
        validation = held_out(training, "validation", settings.validation, self.device) if settings.validation else None
        if state.step == 0:
            self._show()
        total, since = torch.zeros((), device=self.device), 0
        started = time.perf_counter()
        while state.step < settings.steps and not state.stopped:
            total += self._step(batches.at(state.step))
            state.step, since = state.step + 1, since + 1
            due = state.step % settings.evaluations == 0 or state.step == settings.steps
            save = self.path is not None and (due or state.step % settings.checkpoints == 0)
            if due or save or state.step % _LOOK == 0:
                self._require_finite(float(total) / since)
            if due:
                state.seconds += time.perf_counter() - started
                self._evaluate(float(total) / since, batches, validation)
                total, since = torch.zeros((), device=self.device), 0
                started = time.perf_counter()
            if save:
                state.seconds += time.perf_counter() - started
                _save(self.path, training, self.model, self.optimizer, state)
                started = time.perf_counter()

    def _step(self, batch: Any) -> Tensor:
        """Take one gradient step and return the batch's loss."""
        settings = self.training.optimization
        (group,) = self.optimizer.param_groups
        group["lr"] = learning_rate(settings, self.state.step)
        parameters = group["params"]
        loss = residual(self.model(batch.x, batch.y, batch.query), batch.label).square().mean()
        if self.scale != 1.0:
            loss = loss / self.scale
        for parameter in parameters:
            parameter.grad = None
        torch.autograd.backward(loss)
        if settings.clip is not None:
            nn.utils.clip_grad_norm_(parameters, settings.clip)
        self.optimizer.step()
        return loss.detach()

    def _evaluate(self, loss: float, batches: Batches, validation: Any) -> None:
        """Append a record, remember the best weights, and decide whether to stop."""
        state, settings, data = self.state, self.training.optimization, self.training.data
        train, valid = math.nan, Estimate(value=math.nan, se=math.nan)
        if settings.stop_at is not None and batches.fixed is not None:
            train = training_error(self.model, batches.fixed, data)
            if train < settings.stop_at:
                state.stopped = "stop_at"
        if validation is not None:
            valid = query_error(self.model, validation, data)
            if valid.value < state.best:
                state.best, state.best_step, state.waited = valid.value, state.step, 0
                if settings.select == "best":
                    state.best_weights = {name: w.detach().clone() for name, w in self.model.state_dict().items()}
            else:
                state.waited += 1
            if settings.patience is not None and state.waited >= settings.patience:
                state.stopped = "patience"
        rate = learning_rate(settings, state.step - 1)
        record = Record(
            step=state.step,
            learning_rate=rate,
            loss=loss,
            train=train,
            validation=valid.value,
            validation_se=valid.se,
            seconds=state.seconds,
        )
        state.history.append(record)
        if self.report is not None:
            self.report(record)
        self._show()

    def _show(self) -> None:
        if self.watch is None:
            return
        self.model.eval()
        with torch.no_grad():
            self.watch(self.state.step, self.model)
        self.model.train()

    def _require_finite(self, loss: float) -> None:
        """Raise an error if the mean loss or a weight is not finite, before either is kept."""
        bound = _DIVERGED * (1.0 + self.training.data.rho)
        sound = math.isfinite(loss) and loss < bound
        sound = sound and all(bool(torch.isfinite(p).all()) for p in self.model.parameters())
        if not sound:
            kept = "nothing was kept"
            if self.path is not None and (self.path / checkpoint.NAME).exists():
                kept = f"the last good checkpoint is {self.path / checkpoint.NAME}"
            raise DivergenceError(
                f"the loss is {loss:g} after {self.state.step} steps, or weights are not finite (always answering 0 "
                f"has {1.0 + self.training.data.rho:g}): lower the learning rate, "
                f"{self.training.optimization.learning_rate:g}, or clip gradients; {kept}"
            )


def _place(device: str, dtype: str) -> torch.device:
    """Return a device on which PyTorch computes in that precision, or raise an error that says why not."""
    try:
        torch.ones(2, dtype=getattr(torch, dtype), device=device).sum().item()
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).split(". ")[0]
        raise ValueError(
            f'device must be one on which PyTorch computes in {dtype}, such as "cpu", got {device!r}: {reason}'
        ) from error
    return torch.device(device)


def _optimizer(settings: Optimization, model: nn.Module) -> torch.optim.Optimizer:
    parameters = [p for p in model.parameters() if p.requires_grad]
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, lr=settings.learning_rate, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
    return torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)


def _save(
    path: Path | None,
    training: Training,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: _State,
    result: dict[str, float] | None = None,
) -> None:
    if path is None:
        return
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    plain = {name: value for name, value in vars(state).items() if name not in ("history", "best_weights")}
    checkpoint.save(
        path,
        {
            "training": asdict(training),
            "model": type(model).__qualname__,
            "weights": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "random_cuda": cuda,
            "state": plain,
            "history": [asdict(record) for record in state.history],
            "best_weights": state.best_weights,
            "result": result,
        },
    )


def _restore(
    found: dict[str, Any],
    path: Path,
    training: Training,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    state: _State,
) -> None:
    """Put everything back to where the checkpoint was written."""
    there = from_plain(found["training"])
    if there != training or found["model"] != type(model).__qualname__:
        raise ValueError(
            f"{path} holds another training ({_difference(there, training)}); choose another folder, or delete it"
        )
    model.load_state_dict(found["weights"])
    if optimizer is not None:
        optimizer.load_state_dict(found["optimizer"])
    torch.set_rng_state(found["random"].cpu())
    if torch.cuda.is_available() and found["random_cuda"]:
        torch.cuda.set_rng_state_all([each.cpu() for each in found["random_cuda"]])
    for name, value in found["state"].items():
        setattr(state, name, value)
    state.history = [Record(**record) for record in found["history"]]
    state.best_weights = found["best_weights"]


def _difference(one: Training, other: Training) -> str:
    parts = []
    for name, value in asdict(one).items():
        wanted = asdict(other)[name]
        if isinstance(value, dict):
            parts += [f"{key} = {v!r} there, {wanted[key]!r} here" for key, v in value.items() if v != wanted[key]]
        elif value != wanted:
            parts.append(f"{name} = {value!r} there, {wanted!r} here")
    return ", ".join(parts) or "of another class of model"


def _finish(
    training: Training,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: _State,
    path: Path | None,
    device: torch.device,
) -> Trained:
    """Select the weights, measure all errors, and keep them with the last checkpoint."""
    state.stopped = state.stopped or "steps"
    selected = state.step
    if training.optimization.select == "best" and state.best_weights is not None:
        model.load_state_dict(state.best_weights)
        selected = state.best_step
    data = training.data
    train = state.history[-1].loss
    if data.n_sequences is not None:
        train = training_error(model, held_out(training, "train", data.n_sequences, device), data)
    icl, idg = (query_error(model, held_out(training, split, training.test, device), data) for split in ("icl", "idg"))
    result = {
        "train": train,
        "icl": icl.value,
        "icl_se": icl.se,
        "idg": idg.value,
        "idg_se": idg.se,
        "selected": selected,
    }
    _save(path, training, model, optimizer, state, result)
    return _finished(training, model, state, result)


def _finished(training: Training, model: nn.Module, state: _State, result: dict[str, float]) -> Trained:
    data = training.data
    tokens = (1 + data.length) if data.layout == "pairs" else 2 * data.length + 1
    size = min(training.optimization.batch_size, data.n_sequences or training.optimization.batch_size)
    model.eval()
    return Trained(
        training=training,
        model=model,
        train=result["train"],
        icl=Estimate(value=result["icl"], se=result["icl_se"]),
        idg=Estimate(value=result["idg"], se=result["idg_se"]),
        history=tuple(state.history),
        step=state.step,
        selected=int(result["selected"]),
        stopped=state.stopped,
        seconds=state.seconds,
        tokens_per_second=tokens * size * state.step / max(state.seconds, 1e-9),
    )
