"""Ridge and dMMSE against a solve for every prefix and an explicit sum over tasks, at any rho, shape and block size."""

import itertools
import subprocess
import sys

import array_api_strict
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icltheory as icl

RHO = (1.0, 0.1, 1e-4, 1e-8, 1e-14, 0.0)
AT = ("query", "prefixes", "next")


def prompts(b=7, length=23, d=5, k=37, rho=0.1, seed=0):
    rng = np.random.default_rng(seed)
    tasks = rng.standard_normal((k, d))
    x, query = rng.standard_normal((b, length, d)) / np.sqrt(d), rng.standard_normal((b, d)) / np.sqrt(d)
    y = x @ tasks[0] + np.sqrt(rho) * rng.standard_normal((b, length))
    return x, y, query, tasks


def slow_ridge(x, y, query, rho):
    """Least squares on the examples and on d more of size sqrt(rho), by the pseudo-inverse."""
    d = len(query)
    return query @ np.linalg.pinv(np.vstack([x, np.sqrt(rho) * np.eye(d)])) @ np.concatenate([y, np.zeros(d)])


def slow_weights(x, y, tasks, rho, prior=None):
    """Enumerate the tasks in 30-digit arithmetic: no scale is lost, whatever rho."""
    prior = np.ones(len(tasks)) if prior is None else prior
    with mpmath.workdps(30):
        cost = [mpmath.fsum((mpmath.mpf(a) - mpmath.fdot(w, t)) ** 2 for a, t in zip(y, x, strict=True)) for w in tasks]
        best = min(c for c, p in zip(cost, prior, strict=True) if p > 0)
        if rho == 0:
            weights = [mpmath.mpf(p) * (c == best) for c, p in zip(cost, prior, strict=True)]
        else:
            weights = [mpmath.mpf(p) * mpmath.exp((best - c) / (2 * rho)) for c, p in zip(cost, prior, strict=True)]
        total = mpmath.fsum(weights)
        return np.array([float(weight / total) for weight in weights])


def every_prefix(estimate, x, y, query, at):
    """Call an estimator of one prompt's query for every prefix, as `at` asks for it."""
    length = x.shape[1]
    rows = []
    for tokens, labels, last in zip(x, y, query, strict=True):
        targets = [tokens[m] if at == "next" and m < length else last for m in range(length + 1)]
        found = [estimate(tokens[:m], labels[:m], targets[m]) for m in range(length + 1)]
        rows.append(found[-1] if at == "query" else found)
    return np.array(rows)


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("rho", RHO)
@pytest.mark.parametrize(("length", "d"), [(3, 5), (5, 5), (6, 5), (23, 5), (16, 1), (1, 4), (0, 3)])
def test_ridge_is_a_solve_for_every_prefix(length, d, rho, at):
    x, y, query, _ = prompts(length=length, d=d)
    expected = every_prefix(lambda *prompt: slow_ridge(*prompt, rho), x, y, query, at)
    np.testing.assert_allclose(icl.bayes.ridge(x, y, query, rho, at=at), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize(("rho", "expected_at"), [(0.1, 0.1), (1e-5, 1e-5), (1e-16, 0.0), (0.0, 0.0)])
def test_ridge_on_tokens_that_depend_on_each_other(rho, expected_at, at):
    """Equal tokens with unequal labels, tokens in a plane, a token of zeros: as rho -> 0 the least norm decides."""
    x, y, query, _ = prompts(b=3, length=9, d=4)
    x[0, 1], x[1, :, 2:], x[2, 0], x[2, 5] = x[0, 0], 0.0, 0.0, x[2, 4]
    expected = every_prefix(lambda *prompt: slow_ridge(*prompt, expected_at), x, y, query, at)
    np.testing.assert_allclose(icl.bayes.ridge(x, y, query, rho, at=at), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("rho", RHO)
@pytest.mark.parametrize(("length", "d", "k"), [(3, 5, 37), (12, 5, 37), (12, 5, 1), (0, 3, 4), (7, 1, 2)])
def test_discrete_is_an_explicit_posterior_mean(length, d, k, rho, at):
    x, y, query, tasks = prompts(b=3, length=length, d=d, k=k, rho=rho)

    def slow(tokens, labels, token):
        return slow_weights(tokens, labels, tasks, rho) @ (tasks @ token)

    expected = every_prefix(slow, x, y, query, at)
    np.testing.assert_allclose(icl.bayes.discrete(x, y, query, tasks, rho, at=at), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rho", [0.3, 1e-6, 0.0])
def test_posterior_weights_and_prior(rho):
    x, y, query, tasks = prompts(b=2, length=8, k=9, rho=0.3)
    prior = np.array([0.0, 3.0, 1.0, 0.5, 0.0, 7.0, 1.0, 1.0, 2.0])  # the true task, 0, is held to be impossible
    found = icl.bayes.posterior(x, y, tasks, rho, prior=prior, at="prefixes")
    expected = [[slow_weights(t[:m], z[:m], tasks, rho, prior) for m in range(9)] for t, z in zip(x, y, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(found[:, 0], np.broadcast_to(prior / prior.sum(), (2, 9)), rtol=1e-14)
    np.testing.assert_allclose(icl.bayes.posterior(x, y, tasks, rho, prior=prior), found[:, -1], atol=1e-12)
    mean = icl.bayes.discrete(x, y, query, tasks, rho, prior=prior, at="prefixes", max_bytes=400)
    np.testing.assert_allclose(mean, (found @ tasks @ query[:, :, None])[:, :, 0], atol=1e-10)


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("max_bytes", [1, 1000, 7777, 10**9])
def test_streamed_is_unstreamed(at, max_bytes):
    """Awkward sizes: 101 tasks and 53 prompts in blocks down to one of each."""
    x, y, query, tasks = prompts(b=53, length=11, k=101)
    for rho in (0.1, 0.0):
        blocks = {"at": at, "max_bytes": max_bytes}
        whole = icl.bayes.discrete(x, y, query, tasks, rho, at=at)
        np.testing.assert_allclose(icl.bayes.discrete(x, y, query, tasks, rho, **blocks), whole, rtol=0, atol=1e-12)
        whole = icl.bayes.ridge(x, y, query, rho, at=at)
        np.testing.assert_allclose(icl.bayes.ridge(x, y, query, rho, **blocks), whole, rtol=0, atol=1e-12)


def test_a_task_block_in_which_every_task_is_impossible():
    x, y, query, tasks = prompts(b=3, k=40)
    prior = np.zeros(40)
    prior[[7, 33]] = 1.0
    found = icl.bayes.discrete(x, y, query, tasks, 0.1, prior=prior, max_bytes=6 * 8 * 5)  # five tasks at a time
    np.testing.assert_allclose(found, icl.bayes.discrete(x, y, query, tasks[[7, 33]], 0.1), rtol=1e-12)


def test_nearest_task_at_no_noise():
    """The true task wins after one example, and keeps winning; equals share the weight."""
    x, _, query, tasks = prompts(b=4, length=6, k=10)
    y = x @ tasks[3]
    found = icl.bayes.discrete(x, y, query, tasks, 0.0, at="prefixes")
    np.testing.assert_allclose(found[:, 1:], np.broadcast_to((query @ tasks[3])[:, None], (4, 6)), rtol=1e-12)
    np.testing.assert_allclose(found[:, 0], query @ tasks.mean(axis=0), rtol=1e-12)
    twice = icl.bayes.posterior(x, y, np.vstack([tasks, tasks[3]]), 0.0)
    np.testing.assert_array_equal(twice[:, [3, 10]], 0.5)


def test_tiny_and_huge_noise_neither_overflow_nor_vanish():
    x, y, query, tasks = prompts(k=20)
    limit = icl.bayes.discrete(x, y, query, tasks, 0.0)
    np.testing.assert_allclose(icl.bayes.discrete(x, y, query, tasks, 1e-50), limit, rtol=1e-12)
    prior = icl.bayes.discrete(x, y, query, tasks, 1e50)
    np.testing.assert_allclose(prior, query @ tasks.mean(axis=0), rtol=1e-12)
    assert np.all(np.isfinite(icl.bayes.discrete(1e3 * x, y, query, tasks, 1e-9, at="prefixes")))


@given(
    shape=st.sampled_from([(), (1,), (3,), (2, 3), (0,), (2, 0)]),
    length=st.integers(0, 6),
    d=st.integers(1, 4),
    at=st.sampled_from(AT),
)
@settings(max_examples=40, deadline=None)
def test_any_leading_shape(shape, length, d, at):
    rng = np.random.default_rng(0)
    x, y, query = (rng.standard_normal((*shape, *rest)) for rest in ((length, d), (length,), (d,)))
    tasks = rng.standard_normal((3, d))
    columns = () if at == "query" else (length + 1,)
    for estimate in (
        lambda x, y, query: icl.bayes.ridge(x, y, query, 0.2, at=at),
        lambda x, y, query: icl.bayes.discrete(x, y, query, tasks, 0.2, at=at),
    ):
        found = estimate(x, y, query)
        assert found.shape == (*shape, *columns)
        assert found.dtype == np.float64
        for i in itertools.product(*map(range, shape)):
            np.testing.assert_allclose(found[i], estimate(x[i], y[i], query[i]), rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 10**6), rho=st.sampled_from([0.0, 1e-3, 1.0]))
@settings(max_examples=25, deadline=None)
def test_examples_may_come_in_any_order_and_tokens_in_any_basis(seed, rho):
    rng = np.random.default_rng(seed)
    x, y, query, tasks = prompts(b=2, length=12, d=4, k=6, seed=seed)
    order = rng.permutation(12)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    changed = (x @ turn)[:, order], y[:, order], query @ turn
    np.testing.assert_allclose(icl.bayes.ridge(*changed, rho), icl.bayes.ridge(x, y, query, rho), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        icl.bayes.discrete(*changed, tasks @ turn, rho), icl.bayes.discrete(x, y, query, tasks, rho), atol=1e-9
    )


def test_float32_in_double_precision_inside():
    x, y, query, tasks = (a.astype(np.float32) for a in prompts())
    doubles = [a.astype(np.float64) for a in (x, y, query, tasks)]
    np.testing.assert_array_equal(icl.bayes.ridge(x, y, query, 0.1), icl.bayes.ridge(*doubles[:3], 0.1))
    np.testing.assert_array_equal(icl.bayes.discrete(x, y, query, tasks, 0.1), icl.bayes.discrete(*doubles, 0.1))


def test_each_is_the_best_on_its_own_prompts():
    """On tasks from the list dMMSE beats ridge; on Gaussian tasks it is the other way round."""
    sizes = {"d": 8, "alpha": 2.0, "n_tasks": 8, "rho": 0.1, "n_sequences": 4000, "tasks": "gaussian", "rng": 0}
    errors = {}
    for split in ("idg", "icl"):
        batch = next(icl.prompts.stream_prompts(**sizes, split=split))
        tasks = icl.prompts.draw_tasks(8, 8, "gaussian", np.random.default_rng(0).spawn(4)[0])
        for name, found in (
            ("ridge", icl.bayes.ridge(batch.x, batch.y, batch.query, 0.1)),
            ("discrete", icl.bayes.discrete(batch.x, batch.y, batch.query, tasks, 0.1)),
        ):
            errors[split, name] = np.mean((found - batch.target) ** 2)
    assert errors["idg", "discrete"] < 0.9 * errors["idg", "ridge"]
    assert errors["icl", "ridge"] < 0.9 * errors["icl", "discrete"]
    # the right penalty is the best one
    batch = next(icl.prompts.stream_prompts(**sizes, split="icl"))
    risk = {
        c: np.mean((icl.bayes.ridge(batch.x, batch.y, batch.query, c * 0.1) - batch.target) ** 2) for c in (0.3, 1, 3)
    }
    assert risk[1] < min(risk[0.3], risk[3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros((7, 22))}, r"X, y, x_query must have shapes .* got \(7, 23, 5\), \(7, 22\), \(7, 5\)"),
        ({"x_query": np.zeros(5)}, r"must have shapes \(..., l, d\), \(..., l\), \(..., d\) .*, got .* \(5,\)"),
        ({"X": np.zeros(5)}, r"must have shapes .* got \(5,\)"),
        ({"X": np.zeros((7, 23, 0)), "x_query": np.zeros((7, 0))}, r"got \(7, 23, 0\)"),
        ({"y": np.full((7, 23), np.nan)}, "y must be finite, got nan or inf"),
        ({"rho": -0.1}, "rho must be >= 0 and finite, got -0.1"),
        ({"at": "last"}, r"at must be one of \('query', 'prefixes', 'next'\), got 'last'"),
        ({"max_bytes": 0}, "max_bytes must be an integer >= 1, got 0"),
        ({"tasks": np.zeros((3, 4))}, r"tasks must have shape \(k, d\) with k >= 1 and d = 5 as in X, got \(3, 4\)"),
        ({"tasks": np.zeros((0, 5))}, r"tasks must have shape \(k, d\) with k >= 1 .* got \(0, 5\)"),
        ({"tasks": np.full((3, 5), np.inf)}, "tasks must be finite"),
        ({"prior": np.ones(3)}, r"prior must have shape \(k,\) = \(37,\), a weight for each task, got \(3,\)"),
        ({"prior": np.zeros(37)}, "prior must be >= 0, and > 0 for at least one task"),
        ({"prior": -np.ones(37)}, "prior must be >= 0, and > 0 for at least one task"),
    ],
)
def test_what_is_refused(change, message):
    x, y, query, tasks = prompts()
    arguments = {"X": x, "y": y, "x_query": query, "tasks": tasks, "rho": 0.1, **change}
    with pytest.raises(ValueError, match=message):
        icl.bayes.discrete(**arguments)
    if not {"tasks", "prior"} & change.keys():
        del arguments["tasks"]
        with pytest.raises(ValueError, match=message):
            icl.bayes.ridge(**arguments)


def test_types_that_are_refused():
    x, y, query, tasks = prompts()
    with pytest.raises(TypeError, match="X must be an array of real numbers, got dtype complex128"):
        icl.bayes.ridge(x * 1j, y, query, 0.1)
    with pytest.raises(TypeError, match="rho must be one number, got an array of shape"):
        icl.bayes.ridge(x, y, query, np.ones(2))
    with pytest.raises(ValueError, match='at must be "query" or "prefixes", got \'next\''):
        icl.bayes.posterior(x, y, tasks, 0.1, at="next")


def test_arrays_of_two_libraries():
    x, y, query, tasks = prompts()
    other = array_api_strict.asarray
    for call in (
        lambda: icl.bayes.ridge(x, other(y), query, 0.1),
        lambda: icl.bayes.discrete(x, y, query, other(tasks), 0.1),
        lambda: icl.bayes.posterior(other(x), other(y), tasks, 0.1),
        lambda: icl.bayes.discrete(x, y, query, tasks, 0.1, prior=other(np.ones(37))),
    ):
        with pytest.raises(TypeError, match="must be arrays of one library, got X "):
            call()
    with pytest.raises(ValueError, match="X must be an array of real numbers, got a list of uneven rows"):
        icl.bayes.ridge([[1.0, 2.0], [3.0]], y, query, 0.1)


def test_weights_that_do_not_fit_into_memory():
    x, y, _, _ = prompts(b=1, length=2, d=1)
    x, y = np.broadcast_to(x, (10**7, 2, 1)), np.broadcast_to(y, (10**7, 2))
    with pytest.raises(
        MemoryError, match=r"posterior weights \(10000000 prompts, 10000 tasks, .* fewer prompts at a time"
    ):
        icl.bayes.posterior(x, y, np.zeros((10_000, 1)), 0.1)


def test_memory_stays_within_the_budget():
    """One array of prompts x tasks would take 134 MB."""
    code = """
import resource, numpy as np, icltheory as icl
rng = np.random.default_rng(0)
x, y, q, w = (rng.standard_normal(s) for s in ((16, 2, 4), (16, 2), (16, 4), (2**20, 4)))
icl.bayes.discrete(x, y, q, w[:9], 0.1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for at in ("query", "prefixes"):
    icl.bayes.discrete(x, y, q, w, 0.1, at=at, max_bytes=2**22)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30_000  # kilobytes: the prior of 2**20 tasks takes 8000, the budget 4000
