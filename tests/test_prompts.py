"""The O(d) sampler is equal in law to drawing every token."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from icltheory.points import Point
from icltheory.prompts import draw_tasks, moments_of_law, moments_of_tasks, sample_summaries

from .reference import summarise, token_prompts

N = 40_000
CASES = [
    (3, 4, 0.3, 2, "sphere"),
    (3, 1, 0.5, math.inf, "sphere"),
    (2, 2, 0.0, 3, "gaussian"),
    (4, 9, 1.0, math.inf, "gaussian"),
]


def both_samplers(d, length, rho, k, law):
    point = Point.of(d=d, n_sequences=N, context_length=length, n_tasks=k, rho=rho)
    fast = sample_summaries(point, law, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    tasks = draw_tasks(N, d, law, rng) if fast.tasks is None else fast.tasks[rng.integers(len(fast.tasks), size=N)]
    slow = summarise(*token_prompts(tasks, length, rho, rng))
    return (fast.query, fast.context, fast.target), slow


@pytest.mark.parametrize("case", CASES)
def test_equal_moments_to_fourth_order(case):
    fast, slow = (np.column_stack(parts) for parts in both_samplers(*case))
    columns = fast.shape[1]
    scores = []
    for order in range(1, 5):
        for subset in itertools.combinations_with_replacement(range(columns), order):
            a, b = (sample[:, subset].prod(axis=1) for sample in (fast, slow))
            scores.append((a.mean() - b.mean()) / math.sqrt((a.var() + b.var()) / N))
    scores = np.abs(scores)
    # some hundred correlated scores of heavy-tailed monomials
    assert scores.max() < 4.5
    assert np.mean(scores > 2) < 0.12


@pytest.mark.parametrize("case", CASES)
def test_equal_distributions(case):
    d = case[0]
    statistics = {
        "a context coordinate": lambda q, r, y: r[:, 0],
        "label energy": lambda q, r, y: r[:, d],
        "norm of the context": lambda q, r, y: np.linalg.norm(r[:, :d], axis=1),
        "target": lambda q, r, y: y,
        "query along the context": lambda q, r, y: np.einsum("ij,ij->i", q, r[:, :d]),
        "target times fit": lambda q, r, y: y * np.einsum("ij,ij->i", q, r[:, :d]),
        "context against its energy": lambda q, r, y: (r[:, :d] ** 2).sum(axis=1) / r[:, d],
    }
    fast, slow = both_samplers(*case)
    for name, statistic in statistics.items():
        assert ks_2samp(statistic(*fast), statistic(*slow)).pvalue > 1e-3, name


def test_the_comparison_would_notice_five_percent():
    """The test above can fail: scaling one column by 5 % is seen by both of its tools."""
    (_, context, _), (_, other, _) = both_samplers(*CASES[0])
    energy = 1.05 * context[:, -1]
    assert ks_2samp(energy, other[:, -1]).pvalue < 1e-6
    difference = (energy**2).mean() - (other[:, -1] ** 2).mean()
    assert abs(difference) > 4.5 * math.sqrt(((energy**2).var() + (other[:, -1] ** 2).var()) / N)


def test_cost_does_not_grow_with_the_context():
    """No array of the context's length can exist at l = 10^12."""
    point = Point.of(d=5, n_sequences=10, context_length=10**12, n_tasks=2, rho=0.1)
    data = sample_summaries(point, "sphere", np.random.default_rng(0))
    # and the law of large numbers holds: r -> [w, 1 + rho], up to a term along w of relative size 1/sqrt(l)
    nearest = np.abs(data.context[:, None, :5] - data.tasks[None]).max(axis=2).min(axis=1)
    assert nearest.max() < 1e-4
    np.testing.assert_allclose(data.context[:, 5], 1.1, rtol=1e-5)


def test_draws_do_not_depend_on_the_block_size(monkeypatch):
    import icltheory.prompts.sampling as sampling

    for k in (7, math.inf):
        point = Point.of(d=4, n_sequences=101, context_length=6, n_tasks=k, rho=0.1)
        first = sample_summaries(point, "gaussian", np.random.default_rng(0))
        monkeypatch.setattr(sampling, "_BLOCK", 17)
        second = sample_summaries(point, "gaussian", np.random.default_rng(0))
        monkeypatch.undo()
        for name in ("query", "context", "target"):
            np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-14)


@pytest.mark.parametrize("n", [60, 64])
def test_assignment_of_tasks(n):
    """With a context of 10^12 tokens a summary names its task, so that the tasks can be counted."""
    point = Point.of(d=4, n_sequences=n, context_length=10**12, n_tasks=6, rho=0.0)
    counts = {}
    for assignment in ("balanced", "random"):
        data = sample_summaries(point, "sphere", np.random.default_rng(0), assignment)
        nearest = np.abs(data.context[:, None, :4] - data.tasks[None]).max(axis=2).argmin(axis=1)
        counts[assignment] = np.bincount(nearest, minlength=6)
        assert np.any(np.diff(nearest) < 0)  # in random order
    assert np.ptp(counts["balanced"]) == (n % 6 > 0)
    assert np.ptp(counts["random"]) > 1
    with pytest.raises(ValueError, match=r"assignment must be one of .*, got 'fair'"):
        sample_summaries(point, "sphere", np.random.default_rng(0), "fair")


def test_tasks():
    rng = np.random.default_rng(0)
    sphere = draw_tasks(50, 7, "sphere", rng)
    np.testing.assert_allclose((sphere**2).sum(axis=1), 7, rtol=1e-14)
    with pytest.raises(ValueError, match=r"tasks must be one of \['gaussian', 'sphere'\], got 'cube'"):
        draw_tasks(5, 3, "cube", rng)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
def test_moments_of_many_tasks_approach_those_of_the_law(law):
    d, k = 3, 400_000
    sample = moments_of_tasks(draw_tasks(k, d, law, np.random.default_rng(0)))
    exact = moments_of_law(law, d)
    for name in ("signal", "signal_squared", "mean", "signal_mean", "second"):
        np.testing.assert_allclose(getattr(sample, name), getattr(exact, name), atol=0.02, err_msg=name)
