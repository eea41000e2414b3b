"""The training loop: the same to the last bit, killed or not; when it stops; and what it says of errors."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from icltheory.prompts import stream_prompts  # noqa: E402
from icltheory.simulate.batch import run_all  # noqa: E402
from icltheory.store import Store  # noqa: E402
from icltheory.train import (  # noqa: E402
    Data,
    DivergenceError,
    Model,
    Optimization,
    Training,
    interpolation_threshold,
    load,
    train,
)
from icltheory.train.config import from_plain  # noqa: E402
from icltheory.train.data import Batches, held_out  # noqa: E402
from icltheory.train.jobs import TrainingJob  # noqa: E402

DATA = Data(d=3, alpha=2.0, n_sequences=50, kappa=4.0, rho=0.1)
FAST = Optimization(steps=60, batch_size=16, learning_rate=0.01, evaluate_every=10, validation=50)
TRAINING = Training(data=DATA, optimization=FAST, test=50)


def same(one, other):
    pairs = zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs) and one.icl == other.icl and one.idg == other.idg


def test_one_seed_gives_the_same_weights_and_another_gives_others():
    assert same(train(TRAINING), train(TRAINING))
    assert not same(train(TRAINING), train(replace(TRAINING, init_seed=1)))


@pytest.mark.parametrize("data", [DATA, Data(d=3, alpha=2.0, kappa=4.0, rho=0.1)])
def test_stopped_anywhere_and_gone_on_with_it_ends_with_the_same_weights(tmp_path, data):
    training = replace(TRAINING, data=data, model=Model(name="blocks"))
    whole = train(training)

    def leave(step, model):
        if step == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(training, folder=tmp_path, watch=leave)
    with pytest.raises(ValueError, match="stopped after 20 of 60 steps"):
        load(tmp_path)
    torch.rand(7)  # the state of the caller's random numbers must not matter
    assert same(train(training, folder=tmp_path), whole)
    assert same(load(tmp_path), whole)


def test_killed_without_a_warning_and_gone_on_with_it_ends_with_the_same_weights(tmp_path):
    training = replace(TRAINING, optimization=replace(FAST, steps=4000, checkpoint_every=20))
    program = (
        "import sys, torch, json; torch.set_num_threads(1)\n"
        "from icltheory.train import train\n"
        "from icltheory.train.config import from_plain\n"
        "train(from_plain(json.loads(sys.argv[1])), folder=sys.argv[2])\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, json.dumps(asdict(training)), str(tmp_path)])
    while not (tmp_path / "checkpoint.pt").exists():
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    with pytest.raises(ValueError, match="stopped after"):
        load(tmp_path)
    assert same(train(training, folder=tmp_path), train(training))


def test_a_finished_training_is_not_done_again(tmp_path):
    first = train(TRAINING, folder=tmp_path)
    seen = []
    again = train(TRAINING, folder=tmp_path, watch=lambda step, model: seen.append(step))
    assert same(first, again)
    assert not seen
    assert [(r.step, r.loss, r.validation) for r in again.history] == [
        (r.step, r.loss, r.validation) for r in first.history
    ]


def test_a_folder_of_another_training_is_refused(tmp_path):
    train(TRAINING, folder=tmp_path)
    with pytest.raises(ValueError, match=r"holds another training \(steps = 60 there, 61 here\)"):
        train(replace(TRAINING, optimization=replace(FAST, steps=61)), folder=tmp_path)


def test_divergence_stops_with_the_last_good_checkpoint_kept(tmp_path):
    wild = replace(FAST, optimizer="sgd", learning_rate=1e3, clip=None, schedule="constant", checkpoint_every=1)
    with pytest.raises(DivergenceError, match="lower the learning rate, 1000"):
        train(replace(TRAINING, optimization=wild), folder=tmp_path)
    if (tmp_path / "checkpoint.pt").exists():
        kept = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
        assert all(torch.isfinite(w).all() for w in kept["weights"].values())


def test_patience_looks_at_the_validation_set_alone_and_the_best_weights_are_kept():
    few = Data(d=3, alpha=2.0, n_sequences=8, kappa=4.0, rho=0.5)
    settings = replace(FAST, steps=3000, patience=4, select="best", schedule="constant", learning_rate=0.02)
    trained = train(replace(TRAINING, data=few, optimization=settings))
    errors = [record.validation for record in trained.history]
    assert trained.stopped == "patience"
    assert len(errors) - 1 - int(np.argmin(errors)) == 4
    assert trained.selected == trained.history[int(np.argmin(errors))].step


def test_the_training_error_that_stops_is_that_of_the_whole_set():
    trained = train(
        replace(TRAINING, data=replace(DATA, n_sequences=8), optimization=replace(FAST, steps=3000, stop_at=0.05))
    )
    assert trained.stopped == "stop_at"
    assert trained.train < 0.05


def test_the_loss_of_the_reduced_model_reaches_that_of_least_squares():
    data = Data(d=2, alpha=3.0, n_sequences=40, rho=0.1)
    settings = Optimization(steps=3000, batch_size=40, learning_rate=0.05, validation=0)
    trained = train(Training(data=data, model=Model(name="reduced"), optimization=settings, dtype="float64", test=10))
    (p,) = stream_prompts(d=2, context_length=6, n_sequences=40, n_tasks=math.inf, rho=0.1, rng=0, batch_size=40)
    rows = np.concatenate([np.einsum("bl,bld->bd", p.y, p.x) * 2 / 6, (p.y**2).mean(1)[:, None]], axis=1)
    features = np.einsum("bi,bj->bij", p.query, rows).reshape(40, 6)
    solution = np.linalg.lstsq(features, p.target, rcond=None)[0]
    assert trained.train == pytest.approx(np.mean((features @ solution - p.target) ** 2), rel=1e-4)


def test_a_batch_follows_from_its_step_alone_and_an_epoch_visits_everything_once():
    for data, size in ((DATA, 16), (Data(d=3, alpha=2.0, kappa=4.0, rho=0.1), 16)):
        training = replace(TRAINING, data=data, optimization=replace(FAST, batch_size=size))
        one, other = (Batches(training, torch.device("cpu")) for _ in range(2))
        forwards = [one.at(step).label for step in range(130)]
        backwards = [other.at(step).label for step in reversed(range(130))][::-1]
        assert all(torch.equal(a, b) for a, b in zip(forwards, backwards, strict=True))
        assert len(torch.unique(torch.cat(forwards))) == (50 if data is DATA else 130 * 16)
    labels = torch.cat(forwards := [Batches(TRAINING, torch.device("cpu")).at(step).label for step in range(25)])
    assert sorted(torch.unique(labels, return_counts=True)[1].tolist()) == [8] * 50  # 25 batches of 16 are 8 epochs
    assert forwards[0].shape == (16,)


def test_validation_shares_no_prompt_with_training_or_tests():
    sets = [held_out(TRAINING, split, 30, torch.device("cpu")).x for split in ("train", "validation", "idg", "icl")]
    assert len(torch.unique(torch.cat(sets).flatten())) == 4 * sets[0].numel()


def test_a_store_keeps_what_is_done(tmp_path):
    jobs = [TrainingJob(training=TRAINING, repetition=i) for i in range(2)]
    first = run_all(jobs, store=Store(tmp_path))
    assert first[0].icl != first[1].icl
    assert run_all(jobs, store=Store(tmp_path)) == first
    lines = [line for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) == 2
    assert not list((tmp_path / "unfinished").glob("*"))
    cut = tmp_path / "cut.jsonl"
    cut.write_text('{"key": "a", "result": 1}\n{"key": "b", "res')
    assert Store(tmp_path).get("a") == 1
    assert Store(tmp_path).get("b") is None


def test_the_key_changes_with_what_bears_on_the_numbers():
    others = [
        replace(TRAINING, seed=1),
        replace(TRAINING, data=replace(DATA, rho=0.2)),
        replace(TRAINING, model=Model(name="softmax")),
        replace(TRAINING, optimization=replace(FAST, weight_decay=0.1)),
    ]
    assert len({training.key() for training in [TRAINING, *others]}) == 5
    assert from_plain(asdict(TRAINING)) == TRAINING


def test_the_threshold_of_linear_attention_is_near_its_number_of_parameters():
    data = Data(d=4, alpha=1.0, n_sequences=20, rho=0.01)
    settings = Optimization(steps=2000, learning_rate=0.01, validation=0)
    found = interpolation_threshold(Training(data=data, optimization=settings, test=10), resolution=1.3)
    assert found.low < found.n < found.high <= 1.3 * found.low
    assert 16 < found.n < 48  # d^2 + 2d = 24
    with pytest.raises(ValueError, match="needs a fixed data set"):
        interpolation_threshold(replace(TRAINING, data=replace(DATA, n_sequences=None), optimization=FAST))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "all"}, 'loss="all" needs layout="interleaved"'),
        ({"xi": 1.0, "gamma": 1.0}, "give xi or gamma, not both"),
        ({"query": "next"}, "needs correlated tokens"),
        ({"layout": "rows"}, r"layout must be one of .*, got 'rows'"),
    ],
)
def test_data_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(DATA, **change)


@pytest.mark.parametrize("device", ["foo", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_named(device):
    with pytest.raises(ValueError, match="device must be one on which PyTorch computes in float32.*'" + device):
        train(Training(data=DATA), device=device)
