"""One simulation as a user calls it: seeds, edges, refusals, and what the numbers mean."""

import math
import tracemalloc

import numpy as np
import pytest

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts import draw_tasks, sample_summaries
from icltheory.simulate.experiment import estimated_bytes

from .reference import dense_fit, features, summarise, token_prompts

simulate = icl.simulate.linear_attention
POINT = {"d": 12, "tau": 1.5, "alpha": 1.0, "kappa": 0.5, "rho": 0.1, "ridge": 0.01}


def test_seeds_are_seeds():
    zero, again, one = (simulate(**POINT, rng=seed) for seed in (0, 0, 1))
    assert zero.icl == again.icl
    np.testing.assert_array_equal(zero.gamma, again.gamma)
    assert zero.icl != one.icl
    assert simulate(**POINT).icl != simulate(**POINT).icl
    assert simulate(**POINT, rng=np.random.default_rng(0)).icl == zero.icl
    assert simulate(**POINT, rng=np.random.SeedSequence(0)).icl == zero.icl
    generator = np.random.default_rng(0)
    assert simulate(**POINT, rng=generator).icl != simulate(**POINT, rng=generator).icl


def test_against_the_slow_pipeline():
    """The same draws through materialised features, an SVD, and prompts drawn token by token for the tests."""
    sim = simulate(**POINT, rng=5)
    data = sample_summaries(sim.point, "sphere", np.random.default_rng(5))
    n, d = sim.point.n_sequences, 12
    gamma = dense_fit(data.query, data.context, data.target, n / d * 0.01)
    np.testing.assert_allclose(sim.gamma, gamma, atol=1e-10)
    residual = data.target - features(data.query, data.context) @ gamma.ravel()
    assert sim.train == pytest.approx(np.mean(residual**2), rel=1e-9)
    rng = np.random.default_rng(6)
    m = 100_000
    for exact, tasks in (
        (sim.icl, draw_tasks(m, d, "sphere", rng)),
        (sim.idg, data.tasks[rng.integers(sim.point.n_tasks, size=m)]),
    ):
        query, context, target = summarise(*token_prompts(tasks, sim.point.context_length, 0.1, rng))
        squares = (target - np.einsum("ni,ij,nj->n", query, gamma, context)) ** 2
        assert abs(squares.mean() - exact) < 4 * squares.std() / math.sqrt(m)
    assert sim.gap == sim.icl - sim.idg


@pytest.mark.parametrize("tasks", ["sphere", "gaussian"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"d": 1, "n_sequences": 1, "context_length": 1, "n_tasks": 1},
        {"d": 3, "n_sequences": 4, "context_length": 2, "n_tasks": 50},
        {"d": 5, "n_sequences": 200, "context_length": 1, "n_tasks": 1},
        {"d": 5, "n_sequences": 200, "context_length": 9, "n_tasks": math.inf},
    ],
)
def test_edges(sizes, tasks):
    for rho, ridge in ((0.0, 0.1), (0.3, 1e-3)):
        sim = simulate(**sizes, rho=rho, ridge=ridge, tasks=tasks, rng=0)
        assert all(math.isfinite(value) for value in (sim.icl, sim.idg, sim.train))
        if math.isinf(sizes["n_tasks"]):
            assert sim.gap == 0


def test_a_strong_ridge_predicts_zero():
    sim = simulate(**{**POINT, "ridge": 1e12}, rng=0)
    assert sim.icl == pytest.approx(1.1, rel=1e-9)


@pytest.mark.parametrize("rho", [1e6, 1e10, 1e25])
def test_labels_of_any_size(rho):
    """Single-precision products must not overflow: in noise alone, everything scales with rho."""
    sim = simulate(d=44, tau=3.0, alpha=1, kappa=1, rho=rho, ridge=1e-3, rng=0)
    law = icl.theory.linear_attention(**sim.point.ratios())
    assert sim.solver.name == "cg"
    assert sim.icl == pytest.approx(float(law.icl), rel=8 / 44)


def test_the_law_of_the_error_is_free_of_rotations_and_order():
    """Rotating tasks and tokens together, or permuting the sequences, leaves the fit's errors alone."""
    from icltheory.prompts import moments_of_law, moments_of_tasks
    from icltheory.simulate import exact_error, ridge_regression

    point = Point.of(**POINT)
    data = sample_summaries(point, "sphere", np.random.default_rng(0))
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    order = rng.permutation(point.n_sequences)
    turned = np.column_stack([data.context[:, :12] @ rotation, data.context[:, 12]])
    errors = []
    for x, r, y, tasks in (
        (data.query, data.context, data.target, data.tasks),
        ((data.query @ rotation)[order], turned[order], data.target[order], data.tasks @ rotation),
    ):
        gamma, _ = ridge_regression(x, r, y, point.n_sequences / 12 * 0.01)
        errors.append([exact_error(gamma, m, 12, 0.1) for m in (moments_of_law("sphere", 12), moments_of_tasks(tasks))])
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-10)


def test_refuses_what_does_not_fit_into_memory():
    with pytest.raises(MemoryError, match=r"d = 20000, 600000000 sequences.* needs about .* GB, and .* are available"):
        simulate(d=20_000, tau=1.5, alpha=1, kappa=1, rho=0.1)
    with pytest.raises(MemoryError, match=r"method='primal' needs about .* GB, .* use method='cg'"):
        simulate(d=300, tau=0.1, alpha=1, kappa=1, rho=0.1, method="primal")


def test_the_memory_estimate_covers_the_peak():
    """The estimate is an upper bound, and not by an order of magnitude."""
    tracemalloc.start()
    try:
        sim = simulate(d=100, tau=9, alpha=1, kappa=1, rho=0.1, ridge=1.0, rng=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.3 * estimated_bytes(sim.point) < peak < estimated_bytes(sim.point)


def test_estimate_at_d_200_is_far_below_the_dense_one():
    point = Point.of(d=200, tau=1.5, alpha=1, kappa=1, rho=0.01)
    assert estimated_bytes(point) < 1.5e9 < 8 * point.n_parameters**2
