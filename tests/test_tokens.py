"""Streams of full prompts: the right law, whatever the batch size; splits that share their tasks and nothing else."""

import dataclasses
import math
import sys
import tracemalloc

import numpy as np
import pytest
from scipy.stats import ks_2samp

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts import Prompts, sample_summaries, stream_prompts, summarise
from icltheory.prompts.pretraining import pretraining_tasks

from . import reference

NAMES = [field.name for field in dataclasses.fields(Prompts)]
SMALL = {"d": 3, "context_length": 5, "n_sequences": 101, "n_tasks": 7, "rho": 0.3, "rng": 0}
N = 40_000


def whole(**arguments):
    """Join a stream into one batch."""
    batches = list(stream_prompts(**arguments))
    return Prompts(**{name: np.concatenate([getattr(b, name) for b in batches]) for name in NAMES})


def noise(prompts):
    """Recover all labels' noise, the targets' in the last column."""
    y = prompts.y - np.einsum("nld,nd->nl", prompts.x, prompts.task)
    return np.column_stack([y, prompts.target - np.einsum("nd,nd->n", prompts.query, prompts.task)])


def standard_normals(prompts, rho):
    """Undo the model: independent N(0, 1) columns if the prompts are right (with Gaussian tasks, all fresh)."""
    n, length, d = prompts.x.shape
    tokens = np.column_stack([prompts.x.reshape(n, length * d), prompts.query]) * math.sqrt(d)
    return np.column_stack([tokens, noise(prompts) / math.sqrt(rho), prompts.task])


@pytest.mark.parametrize("assignment", ["random", "balanced"])
@pytest.mark.parametrize("law", ["sphere", "gaussian"])
@pytest.mark.parametrize("split", ["train", "idg", "icl"])
@pytest.mark.parametrize("k", [7, math.inf])
def test_numbers_do_not_depend_on_the_batch_size(k, split, law, assignment):
    arguments = {**SMALL, "n_tasks": k, "split": split, "tasks": law, "assignment": assignment}
    first = whole(**arguments)
    for size in (1, 2, 17, 50, 100, 101, 1000):
        second = whole(**arguments, batch_size=size)
        for name in NAMES:
            np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=0, atol=4e-15, err_msg=name)


@pytest.mark.parametrize("size", [1, 7, 100, 101, 102, None])
def test_shapes_and_total(size):
    batches = list(stream_prompts(**SMALL, batch_size=size))
    sizes = [len(b.x) for b in batches]
    assert sum(sizes) == 101
    assert set(sizes[:-1]) <= {size}
    for b, n in zip(batches, sizes, strict=True):
        shapes = {name: getattr(b, name).shape for name in NAMES}
        assert shapes == {
            "x": (n, 5, 3), "y": (n, 5), "query": (n, 3), "target": (n,), "task": (n, 3), "task_index": (n,)
        }  # fmt: skip


def test_ratios_are_rounded_as_everywhere():
    batch = whole(d=10, tau=0.52, alpha=1.26, kappa=0.31, rho=0.1, rng=0)
    assert batch.x.shape == (52, 13, 10)
    assert set(batch.task_index) == {0, 1, 2}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sizes", [(30, 40, math.inf, "random"), (1, 300, 2, "random"), (300, 1, 5, "balanced")])
def test_drawing_a_batch_stays_within_the_bound(sizes, dtype):
    d, length, k, assignment = sizes
    limit, overhead = 1_000_000, 20_000  # overhead: generators and bookkeeping, which no size enters
    arguments = {"d": d, "context_length": length, "n_tasks": k, "n_sequences": 3000, "rho": 0.1, "rng": 0}
    stream = stream_prompts(**arguments, assignment=assignment, max_bytes=limit, dtype=dtype)
    order = 2 * 8 * 3000 if assignment == "balanced" else 0
    count, peaks = 0, []
    tracemalloc.start()
    try:
        while (n := len(next(stream, Prompts(**dict.fromkeys(NAMES, ()))).x)) > 0:
            count += n
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert count == 3000
    assert len(peaks) > 5
    assert 0.6 * limit < max(peaks) < limit + overhead + order


def test_one_prompt_beyond_the_bound_names_the_figure():
    arguments = {**SMALL, "n_sequences": 3}
    with pytest.raises(ValueError, match=r"max_bytes must be at least \d+, .*d = 3 and context_length = 5") as caught:
        stream_prompts(**arguments, max_bytes=100)
    figure = int(str(caught.value).split("at least ")[1].split(",")[0])
    assert len(list(stream_prompts(**arguments, max_bytes=figure))) == 3
    assert len(list(stream_prompts(**arguments, max_bytes=2 * figure))) == 2
    with pytest.raises(ValueError, match=f"got {figure - 1}"):
        stream_prompts(**arguments, max_bytes=figure - 1)


def test_too_much_for_the_machine_is_refused_before_it_is_allocated():
    with pytest.raises(MemoryError, match=r"streaming prompts .* needs about"):
        stream_prompts(d=1000, n_sequences=10**9, context_length=1000, n_tasks=4, rho=0.1, rng=0, batch_size=10**8)
    with pytest.raises(MemoryError, match="reduce kappa"):
        stream_prompts(d=1000, n_sequences=10, context_length=10, n_tasks=10**10, rho=0.1, rng=0)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
def test_splits_share_their_tasks(law):
    arguments = {**SMALL, "tasks": law, "n_sequences": 300}
    train, idg, fresh = (whole(**arguments, split=split) for split in ("train", "idg", "icl"))
    table = {int(i): tuple(w) for i, w in zip(train.task_index, train.task, strict=True)}
    assert set(table) == set(range(7))
    for i, w in zip(idg.task_index, idg.task, strict=True):
        assert table[int(i)] == tuple(w)
    assert np.any(idg.task_index != train.task_index)
    assert set(fresh.task_index) == {-1}
    assert len(np.unique(fresh.task, axis=0)) == 300
    assert not {tuple(w) for w in fresh.task} & set(table.values())
    # a test set may be of another size, and the tasks are those of the simulation at the same seed
    other = whole(**{**arguments, "n_sequences": 20, "context_length": 2}, split="idg")
    assert {tuple(w) for w in other.task} <= set(table.values())
    point = Point.of(d=3, n_sequences=1, context_length=1, n_tasks=7, rho=0.0)
    simulated = sample_summaries(point, law, np.random.default_rng(0)).tasks
    np.testing.assert_array_equal(simulated, [table[i] for i in range(7)])


@pytest.mark.parametrize("k", [7, math.inf])
def test_splits_share_nothing_else(k):
    arguments = {**SMALL, "n_tasks": k, "n_sequences": 4000, "tasks": "gaussian"}
    splits = [whole(**arguments, split=split) for split in ("train", "idg", "icl")]
    drawn = [a for s in splits for a in (s.x.ravel(), s.query.ravel())]
    drawn += [s.task.ravel() / math.sqrt(3) for s in splits if s.task_index[0] == -1]
    assert len(drawn) == (7 if k == 7 else 9)
    pool = np.concatenate(drawn)
    assert len(np.unique(pool)) == len(pool)
    # noise is seen only through rounded labels: that it is not shared shows in its correlations
    columns = np.column_stack([noise(s) for s in splits])
    correlation = np.corrcoef(columns, rowvar=False)[np.triu_indices(columns.shape[1], 1)]
    assert np.abs(correlation).max() < 4.5 / math.sqrt(4000)


@pytest.mark.parametrize("n", [60, 64])
@pytest.mark.parametrize("split", ["train", "idg"])
def test_assignment_of_tasks(n, split):
    arguments = {**SMALL, "n_tasks": 6, "n_sequences": n, "split": split, "batch_size": 7}
    balanced, random = (whole(**arguments, assignment=a).task_index for a in ("balanced", "random"))
    for regular in (np.arange(n) % 6, np.sort(balanced)):  # in random order, that is
        assert np.mean(balanced == regular) < 0.5
    assert np.ptp(np.bincount(balanced, minlength=6)) == (n % 6 > 0)
    assert np.ptp(np.bincount(random, minlength=6)) > 1


def test_random_assignment_is_uniform():
    counts = np.bincount(whole(**{**SMALL, "n_sequences": N}).task_index, minlength=7)
    np.testing.assert_allclose(counts, N / 7, atol=4 * math.sqrt(N / 7))


def test_law_of_tokens_noise_and_tasks():
    """Moments of all variates and their products, within a prompt and from one to the next, to 4.5 standard errors."""
    prompts = whole(**{**SMALL, "n_sequences": N, "n_tasks": math.inf, "tasks": "gaussian"})
    z = standard_normals(prompts, 0.3)
    identity = np.eye(z.shape[1])
    assert np.abs(z.mean(axis=0)).max() < 4.5 / math.sqrt(N)
    assert (np.abs(z.T @ z / N - identity) / np.sqrt(1 + identity)).max() < 4.5 / math.sqrt(N)
    assert np.abs(z[1:].T @ z[:-1] / N).max() < 4.5 / math.sqrt(N)
    # tokens of equal law and Gaussian fourth moment: kurtosis 3, with variance 96/N
    assert np.abs((z**4).mean(axis=0) - 3).max() < 4.5 * math.sqrt(96 / N)


def test_moments_at_their_own_scale():
    """E x x^T = I/d, the noise has variance rho, and a label variance 1 + rho: each to 4 standard errors below 5 %."""
    d, length, rho = 3, 5, 0.3
    prompts = whole(**{**SMALL, "n_sequences": N, "n_tasks": 50})
    tokens = prompts.x.reshape(-1, d)
    error = 4 * math.sqrt(2 / len(tokens))
    np.testing.assert_allclose(d * tokens.T @ tokens / len(tokens), np.eye(d), atol=error)
    np.testing.assert_allclose(d * prompts.query.T @ prompts.query / N, np.eye(d), atol=4 * math.sqrt(2 / N))
    residual = noise(prompts)
    assert abs((residual[:, :length] ** 2).mean() / rho - 1) < error < 0.05
    assert abs((residual[:, length] ** 2).mean() / rho - 1) < 4 * math.sqrt(2 / N) < 0.05
    assert abs((prompts.target**2).mean() / (1 + rho) - 1) < 4 * math.sqrt(2 / N)
    np.testing.assert_allclose((prompts.task**2).sum(axis=1), d, rtol=1e-14)


def given_covariance(form):
    """Return a covariance of signal variance 1.5, and the same as a matrix."""
    values = np.array([3.0, 1.0, 0.5])
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
    matrix = np.diag(values) if form == "eigenvalues" else (rotation * values) @ rotation.T
    return (values if form == "eigenvalues" else matrix), matrix


@pytest.mark.parametrize("form", ["eigenvalues", "matrix"])
@pytest.mark.parametrize("split", ["train", "idg", "icl"])
def test_covariance_of_fresh_tasks(split, form):
    """Every entry of the second moment to 4.5 standard errors; that of training if the test's is not given."""
    given, c = given_covariance(form)
    arguments = {**SMALL, "tasks": "gaussian", "n_sequences": N, "n_tasks": math.inf, "split": split}
    error = 4.5 * np.sqrt((np.outer(np.diag(c), np.diag(c)) + c**2) / N)
    w = whole(**arguments, task_covariance=given).task
    assert np.all(np.abs(w.T @ w / N - c) < error)
    w = whole(**arguments, task_covariance=np.ones(3), test_task_covariance=given).task
    expected = c if split == "icl" else np.eye(3)
    assert np.all(np.abs(w.T @ w / N - expected) < 4.5 * np.sqrt((1 + expected.max()) * expected.max() / N))
    assert np.all(np.abs(w.T @ w / N - expected) < np.maximum(error, 4.5 * math.sqrt(2 / N)))
    # labels follow: E y^2 = trd C + rho
    y = whole(**arguments, task_covariance=given).target
    assert abs(np.mean(y**2) - 1.5 - 0.3) < 4.5 * np.std(y**2) / math.sqrt(N)


@pytest.mark.parametrize("form", ["eigenvalues", "matrix"])
def test_structured_pretraining_tasks_are_those_of_the_simulation(form):
    given, _ = given_covariance(form)
    arguments = {**SMALL, "tasks": "gaussian", "task_covariance": given, "test_task_covariance": np.ones(3)}
    train, idg, fresh = (whole(**arguments, split=split) for split in ("train", "idg", "icl"))
    table = {int(i): tuple(w) for i, w in zip(train.task_index, train.task, strict=True)}
    assert all(table[int(i)] == tuple(w) for i, w in zip(idg.task_index, idg.task, strict=True))
    assert not {tuple(w) for w in fresh.task} & set(table.values())
    point = Point.of(d=3, n_sequences=1, context_length=1, n_tasks=7, rho=0.0)
    simulated = sample_summaries(point, "gaussian", np.random.default_rng(0), covariance=given).tasks
    np.testing.assert_array_equal(simulated, [table[i] for i in range(7)])
    # without a covariance of its own the test is that of the pretraining
    default = whole(**{**arguments, "test_task_covariance": None}, split="icl")
    same = whole(**{**arguments, "test_task_covariance": given}, split="icl")
    np.testing.assert_array_equal(default.task, same.task)
    # the identity is no covariance at all
    plain = whole(**{**SMALL, "tasks": "gaussian"})
    np.testing.assert_array_equal(whole(**{**SMALL, "tasks": "gaussian", "task_covariance": np.ones(3)}).x, plain.x)


def test_given_tasks_take_the_place_of_drawn_ones():
    """Prompts of a seed with its own tasks given are its prompts; with other tasks only the labels differ."""
    arguments = {name: value for name, value in SMALL.items() if name != "n_tasks"}
    own = pretraining_tasks(d=3, n_tasks=7, rng=0)
    others = np.arange(21.0).reshape(7, 3)
    for split in ("train", "idg", "icl"):
        drawn = whole(**SMALL, split=split)
        given = whole(**arguments, split=split, pretraining_tasks=own)
        other = whole(**arguments, split=split, pretraining_tasks=others.astype(int))
        for name in NAMES:
            np.testing.assert_array_equal(getattr(given, name), getattr(drawn, name), err_msg=name)
        for name in ("x", "query", "task_index"):
            np.testing.assert_array_equal(getattr(other, name), getattr(drawn, name), err_msg=name)
        if split == "icl":
            np.testing.assert_array_equal(other.task, drawn.task)
        else:
            np.testing.assert_array_equal(other.task, others[drawn.task_index])
        np.testing.assert_allclose(noise(other), noise(drawn), atol=1e-13)
    # known tasks need no seed
    assert set(map(tuple, whole(**{**arguments, "rng": None}, split="idg", pretraining_tasks=own).task)) <= set(
        map(tuple, own)
    )


def test_given_tasks_are_a_copy():
    tasks = np.ones((2, 3))
    arguments = {name: value for name, value in SMALL.items() if name != "n_tasks"}
    stream = stream_prompts(**arguments, pretraining_tasks=tasks)
    tasks[:] = 5
    assert np.all(next(stream).task == 1)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
def test_the_tasks_of_a_seed(law):
    """They are those of the stream, of the summaries, and of a fresh generator of that seed."""
    tasks = pretraining_tasks(d=3, kappa=7 / 3, tasks=law, rng=5)
    batch = whole(**{**SMALL, "tasks": law, "rng": 5})
    np.testing.assert_array_equal(batch.task, tasks[batch.task_index])
    point = Point.of(d=3, n_sequences=1, context_length=1, n_tasks=7, rho=0.0)
    np.testing.assert_array_equal(sample_summaries(point, law, np.random.default_rng(5)).tasks, tasks)
    np.testing.assert_array_equal(pretraining_tasks(d=3, n_tasks=7, tasks=law, rng=np.random.default_rng(5)), tasks)
    coloured = {"task_covariance": [2.0, 0.5, 0.5], "tasks": "gaussian"}
    batch = whole(**{**SMALL, **coloured})
    np.testing.assert_array_equal(batch.task, pretraining_tasks(d=3, n_tasks=7, **coloured, rng=0)[batch.task_index])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rng": None}, ValueError, r"rng must be the pretraining's seed, an integer, got None"),
        ({"kappa": math.inf}, ValueError, r"kappa must be finite, got inf"),
        ({"n_tasks": math.inf}, ValueError, r"n_tasks must be finite, got inf"),
        ({"n_tasks": 0}, ValueError, r"n_tasks must be an integer >= 1 .*, got 0"),
        ({}, TypeError, r"missing kappa"),
        ({"kappa": 1.0, "tasks": "cube"}, ValueError, r"tasks must be one of"),
        ({"kappa": 1.0, "task_covariance": np.ones(3)}, ValueError, r"task_covariance must be None with"),
    ],
)
def test_unknown_tasks_of_a_seed(change, error, message):
    with pytest.raises(error, match=message):
        pretraining_tasks(**{"d": 3, "rng": 0, **change})


def test_no_noise():
    assert np.abs(noise(whole(**{**SMALL, "rho": 0.0}))).max() < 1e-14


CASES = [
    (4, 9, 1.0, 8, "gaussian"),
    (3, 4, 0.3, 2, "sphere"),
    (3, 1, 0.5, math.inf, "sphere"),
    (2, 2, 0.0, 3, "gaussian"),
]


def both_summaries(d, length, rho, k, law):
    """Summarise tokens, and draw summaries, of the very tasks that this seed gives to both."""
    sizes = {"d": d, "n_sequences": N, "context_length": length, "n_tasks": k, "rho": rho}
    fast = sample_summaries(Point.of(**sizes), law, np.random.default_rng(1))
    return summarise(whole(**sizes, tasks=law, rng=1)), (fast.query, fast.context, fast.target)


@pytest.mark.parametrize("case", CASES)
def test_summaries_agree_in_law_with_the_fast_sampler(case):
    d = case[0]
    statistics = {
        "a context coordinate": lambda q, r, y: r[:, 0],
        "label energy": lambda q, r, y: r[:, d],
        "target": lambda q, r, y: y,
        "target times fit": lambda q, r, y: y * np.einsum("ij,ij->i", q, r[:, :d]),
    }
    slow, fast = both_summaries(*case)
    for name, statistic in statistics.items():
        assert ks_2samp(statistic(*slow), statistic(*fast)).pvalue > 1e-3, name


def test_the_comparison_would_notice_five_percent():
    (_, slow, _), (_, fast, _) = both_summaries(*CASES[0])
    assert ks_2samp(1.05 * slow[:, -1], fast[:, -1]).pvalue < 1e-6


def test_summaries_are_those_of_the_definition():
    prompts = whole(**SMALL)
    tokens = np.concatenate([prompts.x, prompts.query[:, None]], axis=1)
    expected = reference.summarise(tokens, np.column_stack([prompts.y, prompts.target]))
    for ours, theirs in zip(summarise(prompts), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)


def test_single_precision_is_the_rounding_of_double():
    double, single = (whole(**SMALL, dtype=dtype, batch_size=40) for dtype in ("float64", "float32"))
    for name in NAMES:
        array = getattr(double, name)
        assert getattr(single, name).dtype == (np.int64 if name == "task_index" else np.float32)
        rounded = array if name == "task_index" else array.astype(np.float32)
        np.testing.assert_array_equal(getattr(single, name), rounded)
    assert summarise(single)[1].dtype == np.float32


@pytest.mark.parametrize("assignment", ["random", "balanced"])
def test_a_batch_belongs_to_its_reader(assignment):
    arguments = {**SMALL, "assignment": assignment, "batch_size": 20}
    untouched = list(stream_prompts(**arguments))
    for batch, expected in zip(stream_prompts(**arguments), untouched, strict=True):
        for name in NAMES:
            np.testing.assert_array_equal(getattr(batch, name), getattr(expected, name))
            getattr(batch, name)[:] = 0


def test_seeds():
    first = whole(**SMALL)
    for rng in (np.random.default_rng(0), np.random.SeedSequence(0)):
        np.testing.assert_array_equal(whole(**{**SMALL, "rng": rng}).y, first.y)
    assert not np.any(whole(**{**SMALL, "rng": 1}).y == first.y)
    assert not np.any(whole(**{**SMALL, "rng": None}).y == first.y)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_tensors_equal_numpy_arrays(dtype):
    torch = pytest.importorskip("torch")
    arrays, tensors = (
        next(stream_prompts(**SMALL, dtype=dtype, backend=backend)) for backend in ("numpy", "torch")
    )  # fmt: skip
    for name in NAMES:
        tensor = getattr(tensors, name)
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), getattr(arrays, name))
        assert tensor.numpy().dtype == getattr(arrays, name).dtype
    for tensor, array in zip(summarise(tensors), summarise(arrays), strict=True):
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_allclose(tensor.numpy(), array, rtol=0, atol=1e-14 if dtype == "float64" else 1e-5)


def test_torch_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        stream_prompts(**SMALL, backend="torch")
    next(stream_prompts(**SMALL))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, r"batch_size must be an integer >= 1, got 0 \(prompts in a batch\)"),
        ({"batch_size": 2.5}, ValueError, r"batch_size must be an integer >= 1, got 2.5"),
        ({"batch_size": [3, 4]}, TypeError, r"batch_size must be one integer, got an array of shape \(2,\)"),
        ({"batch_size": "many"}, TypeError, r"batch_size must be a number .*, got 'many'"),
        ({"batch_size": True}, TypeError, r"batch_size must be a number .*, got True"),
        ({"max_bytes": -1}, ValueError, r"max_bytes must be an integer >= 1, got -1"),
        ({"split": "test"}, ValueError, r"split must be one of \('train', 'idg', 'icl', 'validation'\), got 'test'"),
        ({"backend": "jax"}, ValueError, r"backend must be one of \('numpy', 'torch'\), got 'jax'"),
        ({"dtype": "float16"}, ValueError, r"dtype must be one of \('float64', 'float32'\), got 'float16'"),
        ({"assignment": "fair"}, ValueError, r"assignment must be one of \('random', 'balanced'\), got 'fair'"),
        ({"tasks": "cube"}, ValueError, r"tasks must be one of \['gaussian', 'sphere'\], got 'cube'"),
        ({"task_covariance": np.ones(3)}, ValueError, r'task_covariance must be None with tasks="sphere"'),
        ({"tasks": "gaussian", "task_covariance": np.ones(4)}, ValueError, r"task_covariance must have shape \(d,\)"),
        (
            {"tasks": "gaussian", "test_task_covariance": [1.0, 1.0, -1.0]},
            ValueError,
            r"test_task_covariance must be positive semidefinite, got the eigenvalue -1",
        ),
        ({"split": "idg", "rng": None}, ValueError, r"rng must be the pretraining set's integer seed .*, got None"),
        (
            {"pretraining_tasks": np.ones((7, 3))},
            ValueError,
            "give pretraining_tasks or n_tasks, not both: given tasks are not drawn",
        ),
        (
            {"pretraining_tasks": np.ones((7, 3)), "n_tasks": None, "kappa": 2.0},
            ValueError,
            "give pretraining_tasks or kappa, not both",
        ),
        (
            {"pretraining_tasks": np.ones((7, 3)), "n_tasks": None, "tasks": "gaussian", "task_covariance": np.ones(3)},
            ValueError,
            "give pretraining_tasks or task_covariance, not both",
        ),
        (
            {"pretraining_tasks": np.ones((7, 4)), "n_tasks": None},
            ValueError,
            r"pretraining_tasks must have shape \(k, d\) with k >= 1 and d = 3, got \(7, 4\)",
        ),
        ({"pretraining_tasks": np.ones(3), "n_tasks": None}, ValueError, r"and d = 3, got \(3,\)"),
        ({"pretraining_tasks": np.ones((0, 3)), "n_tasks": None}, ValueError, r"k >= 1 and d = 3, got \(0, 3\)"),
        (
            {"pretraining_tasks": [[1.0, 2.0, 3.0], [0.0, math.nan, 1.0]], "n_tasks": None},
            ValueError,
            r"pretraining_tasks must be finite, got \[ 0. nan  1.\] in row 1",
        ),
        (
            {"pretraining_tasks": "all", "n_tasks": None},
            TypeError,
            "pretraining_tasks must be an array of real numbers",
        ),
        ({"rho": -0.1}, ValueError, r"rho must be >= 0 and finite, got -0.1"),
        ({"tau": 1.0}, ValueError, r"give tau or n_sequences, not both"),
        ({"context_length": None}, TypeError, r"missing alpha"),
        ({"n_sequences": None, "tau": math.inf}, ValueError, r"tau must be finite"),
    ],
)
def test_errors_come_at_the_call(change, error, message):
    with pytest.raises(error, match=message):
        stream_prompts(**{**SMALL, **change})


def test_public_names():
    assert {"Prompts", "stream_prompts", "summarise"} <= set(icl.prompts.__all__)
