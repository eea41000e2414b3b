"""Tokens/s of `icltheory.train.train` beside a plain PyTorch loop without its data pipeline, checks and records."""

import argparse
import statistics
import time

import torch
from torch import nn

from icltheory.train import Data, Model, Optimization, Training, build, train
from icltheory.train.data import held_out


def plain(training: Training) -> float:
    """Return the CPU seconds of a loop over one batch that is there already."""
    torch.manual_seed(0)
    model, settings = build(training.model, training.data), training.optimization
    batch = held_out(training, "train", settings.batch_size, torch.device("cpu"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.0, fused=True)
    started = time.process_time()
    for _ in range(settings.steps):
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
    print("model                        tokens/s   overhead (CPU seconds, median of paired runs)")
    for name, (data, model, steps) in cases.items():
        settings = Optimization(steps=steps, schedule="constant", validation=0, evaluate_every=steps)
        training = Training(data=data, model=model, optimization=settings, test=2)
        pairs = [(ours(training), plain(training)) for _ in range(repeats)]
        ratio = statistics.median(a / b for a, b in pairs)
        tokens = data.length + 1 if data.layout == "pairs" else 2 * data.length + 1
        speed = tokens * settings.batch_size * steps / statistics.median(a for a, _ in pairs)
        print(f"{name:28s} {speed:9.3g}   {100.0 * (ratio - 1.0):+.1f} %")


if __name__ == "__main__":
    main()
