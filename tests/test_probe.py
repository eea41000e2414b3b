"""Probing: estimates against a loop over prompts, verdicts of predictors that are known, and whatever users return."""

import math
import sys

import numpy as np
import pytest

import icltheory as icl
from icltheory.probing import linear_attention, load_predictor, probe
from icltheory.probing.picture import draw
from icltheory.probing.predictors import dmmse, ridge
from icltheory.probing.verdict import Position, plus_minus, verdict
from icltheory.prompts.pretraining import pretraining_tasks

RHO = 0.05
AT = {"d": 4, "context_length": 6, "n_tasks": 5, "rho": RHO, "rng": 0}
TASKS = pretraining_tasks(d=4, n_tasks=5, rng=0)
RIDGE, DMMSE = ridge(RHO), dmmse(TASKS, RHO)
FIELDS = ("error", "ridge_error", "dmmse_error", "to_ridge", "to_dmmse", "ridge_to_dmmse", "position", "off_line")


def at_query(predictor):
    return lambda x, y, query: predictor(x, y, query)[:, -1]


def mixture(t):
    return lambda *prompt: t * RIDGE(*prompt) + (1 - t) * DMMSE(*prompt)


def shrunk(x, y, query):
    """Be somewhere off the line, at every prefix."""
    return (
        0.7 * RIDGE(x, y, query) + 0.1 * DMMSE(x, y, query) + 0.1 * np.tanh(np.column_stack([x[:, :, 0], query[:, 0]]))
    )


# --- the estimates


def by_hand(predictor, split, n, m):
    """Return f, ridge, dMMSE, signal and noisy target after m examples, prompt by prompt, from their definitions."""
    sizes = {name: value for name, value in AT.items() if name != "rng"}
    (batch,) = icl.prompts.stream_prompts(**sizes, n_sequences=n, split=split, rng=0)
    rows = []
    for i in range(n):
        x, y = batch.x[i, :m], batch.y[i, :m]
        token = batch.x[i, m] if m < batch.x.shape[1] else batch.query[i]
        label = batch.y[i, m] if m < batch.x.shape[1] else batch.target[i]
        fitted = np.linalg.solve(x.T @ x + RHO * np.eye(4), x.T @ y)
        weights = np.exp([-np.sum((y - x @ w) ** 2) / (2 * RHO) for w in TASKS])
        posterior = weights @ TASKS / weights.sum()
        answer = predictor(batch.x[i : i + 1], batch.y[i : i + 1], batch.query[i : i + 1])[0, m]
        rows.append([answer, fitted @ token, posterior @ token, batch.task[i] @ token, label])
    return np.array(rows).T


def statistics(weights, f, r, d, signal):
    """Return the eight estimates in the order of FIELDS, for prompts of given weights."""
    b2 = weights @ (r - d) ** 2
    s = weights @ ((f - d) * (r - d)) / b2
    errors = [weights @ (p - signal) ** 2 + RHO for p in (f, r, d)]
    distances = [weights @ (f - r) ** 2, weights @ (f - d) ** 2, b2]
    return np.array([*errors, *distances, s, weights @ (f - d - s * (r - d)) ** 2 / b2])


@pytest.mark.parametrize("split", ["icl", "idg"])
@pytest.mark.parametrize("m", [1, 3, 6])
def test_estimates_and_errors_against_a_loop(split, m):
    """Standard errors are those of the linearised estimates: each prompt in turn is given a little more weight."""
    n, little = 300, 1e-7
    found = getattr(probe(shrunk, **AT, n_prompts=n), split)
    *data, target = by_hand(shrunk, split, n, m)
    equal = np.full(n, 1 / n)
    expected = statistics(equal, *data)
    slopes = np.array([statistics((1 - little) * equal + little * e, *data) - expected for e in np.eye(n)]) / little
    errors = slopes.std(axis=0, ddof=1) / math.sqrt(n)
    for name, value, se in zip(FIELDS, expected, errors, strict=True):
        estimate = getattr(found, name)
        assert estimate.value[m] == pytest.approx(value, rel=1e-10, abs=1e-13), name
        assert estimate.se[m] == pytest.approx(se, rel=1e-4), name
    f, r = data[:2]
    assert found.ridge_power.value[m] == pytest.approx(np.mean(r**2))
    # the same mean as with the noisy label, at less variance
    noisy = (f - target) ** 2
    assert abs(noisy.mean() - expected[0]) < 4 * noisy.std() / math.sqrt(n)
    assert found.error.se[m] < noisy.std() / math.sqrt(n)


def test_errors_are_those_of_repetition():
    """Spread of position and distance off the line over independent probes."""
    tasks = {name: value for name, value in AT.items() if name not in ("rng", "n_tasks")}
    some = [probe(at_query(shrunk), **tasks, pretraining_tasks=TASKS, n_prompts=300, rng=s).icl for s in range(150)]
    for name in ("position", "off_line", "error", "ridge_to_dmmse"):
        values = np.array([getattr(each, name).query for each in some])
        ratio = values[:, 0].std(ddof=1) / np.sqrt(np.mean(values[:, 1] ** 2))
        assert abs(ratio - 1) < 4 / math.sqrt(2 * 150), name


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
@pytest.mark.parametrize("length", [12, 30])
def test_linear_attention_has_the_errors_that_simulation_computes_exactly(law, length):
    at = {"d": 6, "kappa": 1.5, "rho": 0.1, "tasks": law, "rng": 3}
    sim = icl.simulate.linear_attention(**at, alpha=2.0, tau=3.0, ridge=0.01, test_context_length=length)
    found = probe(linear_attention(sim.gamma), **at, context_length=length, n_prompts=40_000, batch_size=5000)
    for split in ("icl", "idg"):
        estimate = getattr(found, split).error
        assert abs(estimate.value - getattr(sim, split)) < 4 * estimate.se
        assert estimate.se < 0.0125 * estimate.value  # so that 5 % would be seen


def test_a_saved_model_is_probed_on_the_tasks_of_its_seed(tmp_path):
    """With another seed the pretraining tasks are not its own, and the IDG error is another."""
    at = {"d": 8, "alpha": 4.0, "kappa": 0.5, "rho": 0.01}
    sim = icl.simulate.linear_attention(**at, tau=20.0, ridge=1e-3, rng=5)
    np.save(tmp_path / "gamma.npy", sim.gamma)
    predictor = load_predictor(str(tmp_path / "gamma.npy"))
    own, other = (probe(predictor, **at, rng=seed).idg.error for seed in (5, 6))
    assert abs(own.value - sim.idg) < 4 * own.se
    assert other.value > 2 * sim.idg


def test_distances_of_the_references_to_themselves_are_zero():
    for predictor, position in ((RIDGE, 1.0), (DMMSE, 0.0)):
        for asked in (predictor, at_query(predictor)):
            found = probe(asked, **AT, n_prompts=200)
            for law in (found.icl, found.idg):
                itself, other = (law.to_ridge, law.to_dmmse) if position else (law.to_dmmse, law.to_ridge)
                assert np.max(itself.value) < 1e-25
                np.testing.assert_allclose(other.value, law.ridge_to_dmmse.value, rtol=1e-10)
                np.testing.assert_allclose(law.position.value, position, atol=1e-10)
                assert np.max(law.off_line.value) < 1e-20
            assert found.verdict.startswith("generalises: 1 ± 0" if position else "memorises: 0 ± 0")


@pytest.mark.parametrize(
    ("t", "word"), [(0.1, "memorises"), (0.5, "between"), (0.9, "generalises"), (1.5, "neither"), (-0.4, "neither")]
)
def test_a_mixture_is_where_it_was_put(t, word):
    found = probe(mixture(t), **AT, n_prompts=300)
    np.testing.assert_allclose(found.icl.position.value, t, atol=1e-10)
    assert found.verdict.startswith(f"{word}: {t:g} ± 0 of the way")


def test_bayes_estimators_are_best_on_their_own_law():
    found = probe(mixture(0.5), **{**AT, "tasks": "gaussian"}, n_prompts=4000)
    for best, other, law in (("ridge_error", "dmmse_error", found.icl), ("dmmse_error", "ridge_error", found.idg)):
        assert np.all(getattr(law, best).value[1:] < getattr(law, other).value[1:])


def test_the_query_is_the_last_prefix():
    every, query = probe(shrunk, **AT), probe(at_query(shrunk), **AT)
    for law in ("icl", "idg"):
        for name in FIELDS:
            first, second = (getattr(getattr(each, law), name) for each in (every, query))
            assert first.query == pytest.approx(second.query, rel=1e-9)
            assert isinstance(second.value, float)
            assert isinstance(second.se, float)
            assert first.value.shape == first.se.shape == (7,)
    assert every.examples.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert query.examples.tolist() == [6]


@pytest.mark.parametrize("predictor", [shrunk, at_query(shrunk)])
def test_batches_make_no_difference(predictor):
    first = probe(predictor, **AT, n_prompts=101).table().columns
    for size in (1, 7, 100, 1000):
        second = probe(predictor, **AT, n_prompts=101, batch_size=size).table().columns
        for name, values in first.items():
            if name != "law":
                np.testing.assert_allclose(values, second[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_seeds_and_tasks():
    first = probe(shrunk, **AT, n_prompts=50)
    assert str(first) == str(probe(shrunk, **AT, n_prompts=50))
    assert first.icl.error.query != probe(shrunk, **{**AT, "rng": 1}, n_prompts=50).icl.error.query
    given = {name: value for name, value in AT.items() if name != "n_tasks"}
    assert str(first) == str(probe(shrunk, **given, pretraining_tasks=TASKS, n_prompts=50))
    # a fresh generator of a seed has the tasks of that seed
    generator = np.random.default_rng(0)
    assert np.max(probe(DMMSE, **{**AT, "rng": generator}, n_prompts=50).idg.to_dmmse.value) < 1e-25
    # known tasks need no seed
    assert math.isfinite(
        probe(shrunk, **{**given, "rng": None}, pretraining_tasks=TASKS, n_prompts=50).icl.error.query[0]
    )


def test_no_list_of_tasks():
    found = probe(shrunk, **{**AT, "n_tasks": math.inf}, n_prompts=200)
    assert found.idg is found.icl
    for name in ("dmmse_error", "to_dmmse", "ridge_to_dmmse", "position", "off_line"):
        assert np.isnan(getattr(found.icl, name).value).all()
    for name in ("error", "ridge_error", "to_ridge"):
        assert np.isfinite(getattr(found.icl, name).value).all()
    assert found.verdict.startswith("cannot tell: a fresh task for every prompt (kappa = inf) leaves no list")
    assert plus_minus(*found.icl.to_ridge.query) in found.verdict


@pytest.mark.parametrize("rho", [0.0, 3.0])
def test_noise_of_all_sizes(rho):
    at = {**AT, "rho": rho}
    for predictor, word in ((ridge(rho), "generalises"), (dmmse(TASKS, rho), "memorises")):
        assert probe(predictor, **at).verdict.startswith(word)


# --- how a predictor is asked


@pytest.mark.parametrize("predictor", [RIDGE, at_query(DMMSE)])
def test_the_other_convention(predictor):
    """A predictor made for unscaled prompts, of noise variance rho d, is found where its scaled twin is."""
    noise = 4 * RHO
    theirs = ridge(noise) if predictor is RIDGE else at_query(dmmse(TASKS, noise))
    found = probe(theirs, **AT, convention="unscaled", n_prompts=200)
    expected = probe(predictor, **AT, n_prompts=200)
    for name, values in expected.table().columns.items():
        if name != "law":
            np.testing.assert_allclose(found.table().columns[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
    assert found.verdict == expected.verdict
    assert "the predictor was asked in: x ~ N(0, I)" in str(found)
    assert "asked in" not in str(expected)
    seen = []
    probe(lambda x, y, query: (seen.append((x, y, query)), query[:, 0])[1], **AT, convention="unscaled", n_prompts=5000)
    x, y, query = (np.concatenate([each[i] for each in seen]) for i in range(3))
    assert (x.var(), query.var()) == pytest.approx((1, 1), rel=0.03)
    assert y.var() == pytest.approx(4 * (1 + RHO), rel=0.03)


def test_a_predictor_may_do_what_it_likes_to_its_arguments():
    def vandal(x, y, query):
        answer = shrunk(x, y, query)
        x[:], y[:], query[:] = 0, 0, 0
        return answer

    assert str(probe(vandal, **AT, n_prompts=50)) == str(probe(shrunk, **AT, n_prompts=50))


def test_arrays_that_a_predictor_gets(torch):
    seen = []

    def watch(x, y, query):
        seen.append([x, y, query])
        return 0 * y[:, 0]

    probe(watch, **AT, n_prompts=5)
    probe(watch, **AT, n_prompts=5, dtype="float32")
    probe(watch, **AT, n_prompts=5, backend="torch")
    probe(watch, **AT, n_prompts=5, backend="torch", dtype="float64", device="cpu")
    kinds = [(type(arrays[0]).__module__, str(arrays[0].dtype)) for arrays in seen[::2]]
    assert kinds == [("numpy", "float64"), ("numpy", "float32"), ("torch", "torch.float32"), ("torch", "torch.float64")]
    assert [tuple(array.shape) for array in seen[0]] == [(5, 6, 4), (5, 6), (5, 4)]
    np.testing.assert_array_equal(seen[0][0], seen[-2][0].numpy())


class Reduced:
    """Linear attention with fixed parameters, in torch."""

    @staticmethod
    def module(torch, gamma, dtype=None):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.gamma = torch.nn.Parameter(torch.as_tensor(gamma, dtype=dtype))
                self.dropout = torch.nn.Dropout(0.5)
                self.inner = torch.nn.Sequential(torch.nn.Identity()).eval()

            def forward(self, x, y, query):
                prompts = icl.prompts.Prompts(x=x, y=y, query=query, target=None, task=None, task_index=None)
                _, r, _ = icl.prompts.summarise(prompts)
                return self.dropout(((query @ self.gamma) * r).sum(-1))

        return Module()


@pytest.mark.parametrize(("dtype", "agreement"), [("float64", 1e-12), ("float32", 1e-4), ("bfloat16", 0.1)])
def test_a_torch_module(dtype, agreement, torch):
    """It is asked in its own type, without dropout, and left as it was; numbers are those of numpy to its precision."""
    gamma = np.hstack([0.5 * np.eye(4), np.zeros((4, 1))])
    module = Reduced.module(torch, gamma, getattr(torch, dtype))
    module.train()
    module.inner.eval()
    expected = probe(linear_attention(gamma), **AT, n_prompts=200).table().columns
    found = probe(module, **AT, n_prompts=200).table().columns
    for name, values in expected.items():
        if name != "law":
            np.testing.assert_allclose(found[name], values, rtol=agreement, err_msg=name)
    assert (module.training, module.dropout.training, module.inner.training) == (True, True, False)
    assert module.gamma.grad is None


def test_a_torch_module_that_fails_is_left_as_it_was(torch):
    module = Reduced.module(torch, np.zeros((3, 4)))
    with pytest.raises(RuntimeError, match=r"the predictor failed on x \(10, 6, 4\), .*: RuntimeError: "):
        probe(module, **AT, n_prompts=10)
    assert module.training


def test_torch_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        probe(shrunk, **AT, backend="torch")
    probe(shrunk, **AT, n_prompts=5)


def leaky(x, y, query):
    """Have every entry see one label too many."""
    return np.column_stack([RIDGE(x, y, query)[:, 1:], query[:, 0]])


def late(x, y, query):
    """Have every entry see the last label, a little."""
    return RIDGE(x, y, query) + 0.01 * y[:, -1:]


def once(m):
    """Have one entry see its label."""

    def predict(x, y, query):
        answer = RIDGE(x, y, query)
        answer[:, m] += 0.1 * y[:, m]
        return answer

    return predict


def noisy(x, y, query):
    return RIDGE(x, y, query) + np.random.default_rng().standard_normal((len(y), 1))


@pytest.mark.parametrize("predictor", [leaky, late, noisy, once(0), once(5)])
def test_predictions_that_look_ahead_are_found(predictor):
    for prompts in (100, 3):
        with pytest.raises(ValueError, match=r"entry \d changed when only labels of examples after the first \d did"):
            probe(predictor, **AT, n_prompts=prompts)
    # the query's label is not in y, so that there is nothing to look at
    probe(at_query(predictor), **AT, n_prompts=100)


def nan_somewhere(x, y, query):
    answer = RIDGE(x, y, query)
    answer[3, 2] = math.nan
    return answer


class NotCalled:
    def __call__(self, x, y, query):
        return RIDGE(x, y, query)


B = r"on x \(10, 6, 4\), y \(10, 6\), query \(10, 4\); expected .*\(10,\), the queries' labels, or \(10, 7\), the next"


@pytest.mark.parametrize(
    ("predictor", "error", "message"),
    [
        (lambda x, y, query: y, ValueError, r"the predictor returned shape \(10, 6\) " + B),
        (lambda x, y, query: y[:, :1], ValueError, r"returned shape \(10, 1\) " + B),
        (lambda x, y, query: y[:5, 0], ValueError, r"returned shape \(5,\) " + B),
        (lambda x, y, query: 0.0, ValueError, r"returned shape \(\) " + B),
        (lambda x, y, query: None, TypeError, "the predictor returned a NoneType " + B),
        (lambda x, y, query: {"logits": y}, TypeError, "returned a dict " + B),
        (lambda x, y, query: [[1.0], [1.0, 2.0]], TypeError, "returned a list " + B),
        (lambda x, y, query: 1j * y[:, 0], TypeError, "returned a ndarray of dtype complex128 " + B),
        (lambda x, y, query: y[:, 0] > 0, TypeError, "returned a ndarray of dtype bool " + B),
        (lambda x, y, query: np.log(-1 + 0 * y[:, 0]), RuntimeError, "failed on x .*: RuntimeWarning: invalid value"),
        (
            lambda x, y, query: y[:, 0] * math.inf,
            ValueError,
            r"nan or inf on x .*: 10 of 10 predictions, first -?inf for",
        ),
        (nan_somewhere, ValueError, r"1 of 70 predictions, first nan for prompt 3 after 2 examples of the batch"),
        (lambda x, y: y, RuntimeError, r"the predictor failed on x .*: TypeError: .* takes 2 positional arguments"),
        (3, TypeError, r"predictor must be a function of \(x, y, query\) or a torch.nn.Module, got 3"),
        ("ridge", TypeError, r"predictor must be a function .*, got 'ridge'"),
        (NotCalled, TypeError, r"predictor must be a function .*NotCalled.*, a class; give an instance of it"),
    ],
)
def test_what_a_predictor_may_not_do(predictor, error, message):
    with pytest.raises(error, match=message):
        probe(predictor, **AT, n_prompts=10)


def test_a_predictor_answers_for_all_batches_alike():
    with pytest.raises(ValueError, match="for the query alone on some prompts, for every prefix on others"):
        probe(lambda *p: RIDGE(*p) if len(p[0]) > 4 else RIDGE(*p)[:, -1], **AT, n_prompts=18, batch_size=16)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rng": None}, ValueError, "give pretraining_tasks, or as rng the integer seed of the pretraining"),
        ({"n_tasks": None}, TypeError, "missing kappa"),
        (
            {"pretraining_tasks": TASKS},
            ValueError,
            r"give pretraining_tasks or their number \(kappa, n_tasks\), not both",
        ),
        ({"pretraining_tasks": TASKS[:, :3], "n_tasks": None}, ValueError, r"d = 4, got \(5, 3\)"),
        ({"n_prompts": 1}, ValueError, "n_prompts must be at least 2, got 1"),
        ({"n_prompts": 2.5}, ValueError, "n_prompts must be an integer >= 1, got 2.5"),
        ({"batch_size": 0}, ValueError, "batch_size must be an integer >= 1, got 0"),
        ({"max_bytes": 0}, ValueError, "max_bytes must be an integer >= 1, got 0"),
        ({"convention": "raw"}, ValueError, "convention must be one of"),
        ({"backend": "jax"}, ValueError, r"backend must be None or one of \('numpy', 'torch'\), got 'jax'"),
        ({"dtype": "float16"}, ValueError, r"dtype must be None or one of \('float64', 'float32'\), got 'float16'"),
        ({"device": "cuda"}, ValueError, "device must be None for numpy arrays, got 'cuda'; give backend=\"torch\""),
        ({"tasks": "cube"}, ValueError, "tasks must be one of"),
        ({"rho": -1}, ValueError, "rho must be >= 0 and finite, got -1"),
        ({"alpha": 1.0}, ValueError, "give alpha or context_length, not both"),
    ],
)
def test_arguments(change, error, message):
    with pytest.raises(error, match=message):
        probe(RIDGE, **{**AT, **change})


def test_arguments_of_torch(torch):
    module = torch.nn.Identity()
    with pytest.raises(ValueError, match=r'backend must be None or "torch" for a torch.nn.Module, got "numpy"'):
        probe(module, **AT, backend="numpy")
    with pytest.raises(ValueError, match=r"device must be one that PyTorch can use, .* got 'gpu'"):
        probe(RIDGE, **AT, backend="torch", device="gpu")
    with pytest.raises(
        ValueError, match=r"dtype must be None or one of \('float64', 'float32', 'bfloat16', 'float16'\)"
    ):
        probe(RIDGE, **AT, backend="torch", dtype="int32")


# --- the verdict

KNOWN = {
    "n_prompts": 2000,
    "has_list": True,
    "position": (0.95, 0.01),
    "off_line": (0.03, 0.002),
    "ridge_to_dmmse": (0.5, 0.01),
    "to_ridge": (0.02, 0.001),
    "ridge_power": (0.9, 0.02),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "generalises: 0.950 ± 0.010 of the way from dMMSE to ridge on fresh tasks, off the line by 3 ± 0.2 % of"),
        ({"position": (0.05, 0.01)}, "memorises: 0.050"),
        ({"position": (0.5, 0.01)}, "between: 0.500"),
        ({"position": (0.781, 0.01)}, "generalises: 0.781"),
        ({"position": (0.779, 0.01)}, "between or generalises: 0.779"),
        ({"position": (0.721, 0.01)}, "between or generalises: 0.721"),
        ({"position": (0.719, 0.01)}, "between: 0.719"),
        ({"position": (0.219, 0.01)}, "memorises: 0.219"),
        ({"position": (0.221, 0.01)}, "memorises or between: 0.221"),
        ({"position": (1.219, 0.01)}, "generalises: 1.219"),
        ({"position": (1.221, 0.01)}, "generalises or neither: 1.221"),
        (
            {"position": (1.3, 0.01)},
            "neither: 1.300 ± 0.010 of the way from dMMSE to ridge on fresh tasks (beyond ridge)",
        ),
        ({"position": (-0.3, 0.01)}, "neither: -0.300 ± 0.010 of the way from dMMSE to ridge"),
        ({"position": (-0.3, 0.01)}, "(beyond dMMSE)"),
        ({"position": (-0.219, 0.01)}, "memorises: -0.219"),
        # three zones: 3 x 0.1 must come to 1/4
        (
            {"position": (0.5, 0.1)},
            "cannot tell: 0.50 ± 0.10 of the way from dMMSE to ridge on fresh tasks; about 2900",
        ),
        # the mark of q, 1/4, is within three errors: 3 x .02 must come to .05
        ({"off_line": (0.20, 0.02)}, "cannot tell: off the line from dMMSE to ridge by 20 ± 2 % of their squared"),
        ({"off_line": (0.20, 0.02)}, "about 2900 prompts would tell"),
        ({"off_line": (0.189, 0.02)}, "generalises"),
        ({"off_line": (0.25, 0.02)}, "more prompts would not tell"),
        ({"off_line": (0.309, 0.02)}, "cannot tell: off the line"),
        ({"off_line": (0.311, 0.02), "ridge_to_dmmse": (0.9, 0.01)}, "neither: off the line from dMMSE to ridge by 31"),
        # 0.45 x 0.5 is just a quarter of 0.9
        (
            {"off_line": (0.449, 0.02)},
            "cannot tell: ridge and dMMSE are only 0.5 apart here (mean square on fresh tasks)",
        ),
        (
            {"off_line": (0.451, 0.02)},
            "neither: off the line from dMMSE to ridge by 45 ± 2 % of their squared distance",
        ),
        ({"off_line": (12.0, 2.0)}, "neither: off the line from dMMSE to ridge by 1200 ± 200 %"),
        ({"ridge_to_dmmse": (0.0299, 0.01)}, "cannot tell: ridge and dMMSE are not known to differ here, by 0.030 ± "),
        ({"ridge_to_dmmse": (0.0301, 0.01)}, "generalises"),
        ({"ridge_to_dmmse": (0.0, 0.0), "position": (math.nan, math.nan)}, "cannot tell: ridge and dMMSE are not"),
        ({"has_list": False}, "cannot tell: a fresh task for every prompt"),
    ],
)
def test_verdicts(change, words):
    text = verdict(Position(**{**KNOWN, **change}))
    assert words in text
    assert "\n" not in text
    assert text.split(":")[0].split(" or ")[0] in {"memorises", "generalises", "between", "neither", "cannot tell"}


def test_verdicts_of_predictors():
    assert probe(lambda x, y, query: 0 * query[:, 0], **AT).verdict.startswith("neither: off the line")
    assert probe(lambda x, y, query: 1 + 0 * query[:, 0], **AT).verdict.startswith("neither: off the line")
    noise = np.random.default_rng(0)
    blurred = probe(lambda *p: at_query(RIDGE)(*p) + 0.2 * noise.standard_normal(len(p[0])), **AT)
    assert blurred.verdict.startswith("generalises")
    # with very many tasks the two ends are nearer to each other than the predictor is to them
    many = {"d": 2, "context_length": 4, "n_tasks": 3000, "rho": 0.3, "rng": 0, "tasks": "gaussian"}
    noise = np.random.default_rng(0)
    near = probe(lambda *p: icl.bayes.ridge(*p, 0.3) + 0.2 * noise.standard_normal(len(p[0])), **many)
    assert near.verdict.startswith("cannot tell: ridge and dMMSE are only")
    assert probe(lambda x, y, query: 0 * query[:, 0], **many).verdict.startswith("neither")
    # one prompt of each kind tells nothing
    assert probe(shrunk, **AT, n_prompts=2).verdict.startswith("cannot tell")


@pytest.mark.parametrize(
    ("value", "se", "text"),
    [
        (0.97, 0.0081, "0.9700 ± 0.0081"),
        (0.5, 0.0, "0.5 ± 0"),
        (1e-30, 1e-31, "0 ± 0"),
        (0.6, 1e-17, "0.6 ± 0"),
        (2.345678e-9, 1.21e-10, "2.346e-09 ± 1e-10"),
        (-1e-17, 0.01, "0.000 ± 0.010"),
        (1234.5, 56.7, "1234 ± 57"),
        (math.nan, 0.1, "-"),
        (0.25, math.nan, "0.25 ± ?"),
    ],
)
def test_plus_minus(value, se, text):
    assert plus_minus(value, se) == text


# --- results on paper


def test_a_probe_is_readable():
    text = str(probe(shrunk, **AT, n_prompts=100))
    assert (
        "# d = 4, 6 examples (alpha = 1.5), 5 pretraining tasks (kappa = 1.25), rho = 0.05, sphere tasks; 100" in text
    )
    assert "# convention: x ~ N(0, I/d)" in text
    assert "fresh tasks (ICL)  pretraining tasks (IDG)" in text
    assert "predicting the next label after m examples" in text
    assert max(map(len, text.splitlines()[2:-2])) <= 120
    assert "after m examples" not in str(probe(at_query(shrunk), **AT, n_prompts=100))


def test_the_table_has_all_numbers():
    found = probe(shrunk, **AT, n_prompts=100)
    rows = found.table().rows()
    assert [(row["law"], row["examples"]) for row in rows] == [(law, m) for law in ("icl", "idg") for m in range(7)]
    assert rows[9]["position"] == found.idg.position.value[2]
    assert rows[3]["to_ridge_se"] == found.icl.to_ridge.se[3]
    assert len(probe(at_query(shrunk), **AT, n_prompts=100).table().rows()) == 2


@pytest.mark.parametrize("k", [5, math.inf])
@pytest.mark.parametrize("predictor", [shrunk, RIDGE, at_query(shrunk), at_query(DMMSE)])
def test_pictures(predictor, k, tmp_path):
    picture = draw(probe(predictor, **{**AT, "n_tasks": k}, n_prompts=30), "mine")
    picture.savefig(tmp_path / "p.png", dpi=40)
    assert "Convention: x ~ N(0, I/d)" in picture.get_supxlabel()
    every = predictor in (shrunk, RIDGE)
    assert len(picture.axes) == (2 if k == math.inf else 6 if every else 3)


# --- predictors by name


def test_predictors_by_name(tmp_path, monkeypatch):
    (batch,) = icl.prompts.stream_prompts(**AT, n_sequences=20)
    prompt = batch.x, batch.y, batch.query
    np.testing.assert_array_equal(load_predictor("ridge", noise=RHO)(*prompt), RIDGE(*prompt))
    np.testing.assert_array_equal(load_predictor("dmmse", noise=RHO, tasks=TASKS)(*prompt), DMMSE(*prompt))
    gamma = np.random.default_rng(0).standard_normal((4, 5))
    np.save(tmp_path / "gamma.npy", gamma)
    np.savez(tmp_path / "model.npz", gamma=gamma, other=np.ones(3))
    expected = [
        q @ gamma @ np.append(4 / 6 * sum(b * a for a, b in zip(x, y, strict=True)), np.sum(y**2) / 6)
        for x, y, q in zip(*prompt, strict=True)
    ]
    for name in ("gamma.npy", "model.npz"):
        np.testing.assert_allclose(load_predictor(str(tmp_path / name))(*prompt), expected, rtol=1e-12)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "neighbour_of_mine.py").write_text("FACTOR = 2.0\n")
    (tmp_path / "mine.py").write_text(
        "class Model:\n    def predict(self, x, y, query):\n        from neighbour_of_mine import FACTOR\n"
        "        return FACTOR * query[:, 0]\n\nmodel = Model()\n\ndef f(x, y, query):\n    return query[:, 1]\n"
    )
    np.testing.assert_array_equal(load_predictor(f"{tmp_path}/mine.py:f")(*prompt), batch.query[:, 1])
    np.testing.assert_array_equal(load_predictor(f"{tmp_path}/mine.py:model.predict")(*prompt), 2 * batch.query[:, 0])
    assert load_predictor("icltheory.bayes:ridge") is icl.bayes.ridge


def test_predictors_that_are_refused(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "some.py").write_text("value = 3\ndef f(x, y, query): return 0\n")
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "empty.npy").write_text("")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 and no more")
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    np.save(tmp_path / "square.npy", np.ones((3, 3)))
    np.save(tmp_path / "nan.npy", np.full((3, 4), math.nan))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    runs = r"may contain a pickle, which runs whatever program .* give file.py:function"
    for name, error, message in (
        ("text.npy", ValueError, r"text.npy: not an array of numbers \(pickles are refused"),
        ("objects.npy", ValueError, r"objects.npy: not an array of numbers \(pickles are refused"),
        ("empty.npy", ValueError, "empty.npy: No data left in file; save one with numpy.save"),
        ("cut.npz", ValueError, r"cut.npz: .*; save one with numpy.save"),
        ("other.npz", ValueError, r"other.npz: must contain an array \"gamma\", and contains \['weights'\]"),
        ("square.npy", ValueError, r"gamma must have shape \(d, d \+ 1\), got \(3, 3\)"),
        ("nan.npy", ValueError, "gamma must be finite"),
        ("words.npy", TypeError, "gamma must be an array of real numbers, got <U1"),
        ("gone.npy", FileNotFoundError, "gone.npy"),
        *((f"model{ending}", ValueError, runs) for ending in (".pt", ".pth", ".pkl", ".ckpt", ".PT2")),
        ("some.py", ValueError, r"got '.*some.py'; for .*some.py add :function"),
        ("some.py:g", ValueError, r"some.py has no 'g'; it has f"),
        ("some.py:value", TypeError, r"some.py:value must be a function of \(x, y, query\) .*, got 3"),
        ("gone.py:f", FileNotFoundError, "there is no file .*gone.py"),
        ("broken.py:f", ImportError, "broken.py failed to run: ZeroDivisionError: division by zero"),
    ):
        with pytest.raises(error, match=message):
            load_predictor(str(tmp_path / name))
    with pytest.raises(ValueError, match=r'predictor must be "ridge", "dmmse", gamma.npy, .* got \'my model\''):
        load_predictor("my model")
    with pytest.raises(ImportError, match=r"cannot import 'no_such_module' .* for a file give path/file.py:function"):
        load_predictor("no_such_module:f")
    with pytest.raises(TypeError, match="numpy:ndarray must be a function"):
        load_predictor("numpy:ndarray")
    with pytest.raises(TypeError, match="'ridge' needs noise"):
        load_predictor("ridge")
    with pytest.raises(ValueError, match='"dmmse" needs the list of pretraining tasks'):
        load_predictor("dmmse", noise=0.1)


def test_linear_attention_of_another_dimension():
    with pytest.raises(RuntimeError, match=r"gamma is for tokens of dimension d = 3, got x of shape \(10, 6, 4\)"):
        probe(linear_attention(np.ones((3, 4))), **AT, n_prompts=10)


def test_public_names():
    assert icl.probe is probe
    assert {"probe", "probing"} <= set(icl.__all__)
    for name in icl.probing.__all__:
        assert getattr(icl.probing, name).__doc__
