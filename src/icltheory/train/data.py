"""The data of a training as tensors: a fixed set or fresh sequences, in an order that a step alone determines."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icltheory import conventions
from icltheory.points import Floats
from icltheory.prompts.pretraining import pretraining_tasks
from icltheory.prompts.tokens import Prompts, Split, stream_prompts
from icltheory.resources import require_memory
from icltheory.train.config import Data, Training

_CHUNK_STEPS = 64  # batches of fresh sequences that are drawn at once
_CHUNK_BYTES = 2**25
_ORDER, _FRESH = 1, 2  # names of the random streams


@dataclass(frozen=True)
class Batch:
    """Prompts as a model is given them, and what it is to predict: all in the convention of the data.

    Attributes
    ----------
    x, y, query : tensors of shapes (b, l, d), (b, l), (b, d)
    label : tensor of shape (b,) or (b, l + 1)
        The query's label, or those of all tokens.
    """

    x: Tensor
    y: Tensor
    query: Tensor
    label: Tensor

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: Any) -> "Batch":
        return Batch(self.x[index], self.y[index], self.query[index], self.label[index])

    def take(self, order: Tensor) -> "Batch":
        """Return the prompts of these numbers: three times faster than by indexing."""
        x, y, query, label = (each.index_select(0, order) for each in (self.x, self.y, self.query, self.label))
        return Batch(x, y, query, label)


class Batches:
    """The training batches, one for every step.

    A step's batch follows from the seed and the step alone, so that a training which goes on after an interruption
    needs no state of the data. Fixed sets are gone through in random order, again and again, in batches of one size;
    a batch as large as the set is the set itself.
    """

    def __init__(self, training: Training, device: torch.device) -> None:
        self._training, self._device = training, device
        data, size = training.data, training.optimization.batch_size
        self._known = _known_tasks(training)
        self.fixed: Batch | None = None
        self._held: dict[int, Any] = {}
        if data.n_sequences is not None:
            each = bytes_per_prompt(data, training.dtype)
            require_memory(
                3.0 * each * data.n_sequences,
                f"a data set of {data.n_sequences} sequences",
                "reduce n_sequences or context_length, or leave n_sequences out for fresh sequences",
            )
            self.fixed = held_out(training, "train", data.n_sequences, device)
            self.size = min(size, data.n_sequences)
        else:
            self.size = size
            each = bytes_per_prompt(data, training.dtype)
            self._steps = int(np.clip(_CHUNK_BYTES // (each * size), 1, _CHUNK_STEPS))

    def at(self, step: int) -> Batch:
        """Return the batch of a step."""
        if self.fixed is None:
            chunk, place = divmod(step, self._steps)
            if chunk not in self._held:
                self._held = {chunk: self._draw(chunk)}
            batch: Batch = self._held[chunk][place * self.size : (place + 1) * self.size]
            return batch
        n = len(self.fixed)
        if self.size == n:
            return self.fixed
        epoch, start = divmod(step * self.size, n)
        order = self._order(epoch)[start : start + self.size]
        if len(order) < self.size:
            order = torch.cat([order, self._order(epoch + 1)[: self.size - len(order)]])
        return self.fixed.take(order)

    def _order(self, epoch: int) -> Tensor:
        if epoch not in self._held:
            self._held = {e: order for e, order in self._held.items() if e >= epoch - 1}
            rng = np.random.default_rng([_root(self._training), _ORDER, epoch])
            assert self.fixed is not None
            self._held[epoch] = torch.from_numpy(rng.permutation(len(self.fixed))).to(self._device)
        order: Tensor = self._held[epoch]
        return order

    def _draw(self, chunk: int) -> Batch:
        n = self._steps * self.size
        seed = np.random.SeedSequence([self._training.seed, _FRESH, chunk])
        return _tensors(self._training, _prompts(self._training, "train", n, seed, self._known), self._device)


def held_out(training: Training, split: Split, n: int, device: torch.device) -> Batch:
    """Return n prompts of a split; those that are not for training have the query's signal as their label."""
    prompts = _prompts(training, split, n, training.seed, None)
    signal = None if split == "train" else np.sum(prompts.query * prompts.task, axis=1)
    return _tensors(training, prompts, device, signal)


def bytes_per_prompt(data: Data, dtype: str) -> int:
    """Return the memory of one prompt."""
    return np.dtype(dtype).itemsize * ((data.length + 1) * (data.d + 1) + data.length + 1)


def _root(training: Training) -> int:
    return training.seed if training.init_seed is None else training.init_seed


def _known_tasks(training: Training) -> Floats | None:
    """Return the pretraining tasks of fresh sequences, which each chunk would otherwise draw anew."""
    data = training.data
    if data.n_sequences is not None or data.n_tasks is None or np.isinf(data.n_tasks):
        return None
    return pretraining_tasks(d=data.d, n_tasks=int(data.n_tasks), tasks=data.tasks, rng=training.seed)


def _prompts(training: Training, split: Split, n: int, rng: Any, known: Floats | None) -> Prompts:
    data = training.data
    (prompts,) = stream_prompts(
        d=data.d,
        context_length=data.length,
        n_sequences=n,
        n_tasks=data.n_tasks if known is None else None,
        pretraining_tasks=known,
        rho=data.rho,
        tasks=data.tasks,
        assignment=data.assignment if split == "train" and data.n_sequences is not None else "random",
        kernel=data.kernel,
        query=data.query,
        rng=rng,
        batch_size=n,
        split=split,
        dtype="float64",
    )
    return prompts


def _tensors(training: Training, prompts: Prompts, device: torch.device, label: Floats | None = None) -> Batch:
    """Return prompts in the data's convention and the training's precision, on the device."""
    data = training.data
    scale = float(conventions.convention(data.convention).scale(data.d))
    dtype = getattr(torch, training.dtype)

    def tensor(array: Floats) -> Tensor:
        return torch.from_numpy(array if scale == 1.0 else scale * array).to(device=device, dtype=dtype)

    if label is None:
        every = data.loss == "all"
        label = np.concatenate([prompts.y, prompts.target[:, None]], axis=1) if every else prompts.target
    return Batch(tensor(prompts.x), tensor(prompts.y), tensor(prompts.query), tensor(label))
