"""Tokens/s of `icltheory.train.train` beside a plain PyTorch loop without its data pipeline, checks and records."""

import argparse
import statistics
import time

import torch
from torch import nn

from icltheory.train import Data, Model, Optimization, Training, build, train
from icltheory.train.data import held_out


def plain(training: Training, *, shuffle: bool) -> float:
    """Return the CPU seconds of a loop over a data set that is there already, shuffled by indexing or not at all."""
    torch.manual_seed(0)
    model, settings, order = build(training.model, training.data), training.optimization, torch.empty(0)
    size = settings.batch_size
    there = held_out(training, "train", training.data.n_sequences or 8 * size, torch.device("cpu"))
    starts = range(0, len(there) - size + 1, size)
    batches = [there[start : start + size] for start in starts]
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.0, fused=True)
    started = time.process_time()
    for step in range(settings.steps):
        place = step % len(starts)
        if shuffle:
            order = torch.randperm(len(there)) if place == 0 else order
            batch = there[order[starts[place] : starts[place] + size]]
        else:
            batch = batches[place]
        loss = (model(batch.x, batch.y, batch.query) - batch.label).square().mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return time.process_time() - started


def ours(training: Training) -> float:
    """Return the CPU seconds of our loop, from the first step to the last."""
    seen: list[float] = []

    def watch(_step: int, _model: nn.Module) -> None:
        seen.append(time.process_time())

    train(training, watch=watch)
    return seen[-1] - seen[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    cases = {
        "linear attention, d = 20": (Data(d=20, alpha=1.0, tau=4.0, rho=0.01), Model(), 1000),
        "2 blocks, d = 20": (Data(d=20, alpha=1.0, tau=4.0, rho=0.01), Model(name="blocks", layers=2), 150),
        "gpt2, fresh sequences": (
            Data(d=8, context_length=16, n_tasks=64, rho=0.1, layout="interleaved"),
            Model(name="gpt2", width=64, layers=2, heads=2),
            64,
        ),
    }
    print("                                        overhead in CPU seconds, median of paired runs, over a loop whose")
    print("model                        tokens/s   batches are shuffled by indexing    batches lie ready")
    for name, (data, model, steps) in cases.items():
        settings = Optimization(steps=steps, schedule="constant", validation=0, evaluate_every=steps)
        training = Training(data=data, model=model, optimization=settings, test=2)
        runs = [(ours(training), plain(training, shuffle=True), plain(training, shuffle=False)) for _ in range(repeats)]
        shuffled, ready = (statistics.median(run[0] / run[i] for run in runs) for i in (1, 2))
        tokens = data.length + 1 if data.layout == "pairs" else 2 * data.length + 1
        speed = tokens * settings.batch_size * steps / statistics.median(run[0] for run in runs)
        print(f"{name:28s} {speed:9.3g}   {shuffled - 1.0:+25.1%} {ready - 1.0:+25.1%}")


if __name__ == "__main__":
    main()
