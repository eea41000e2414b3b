"""Prompt summaries of correlated tokens against tokens drawn one by one: moments up to the fourth, and laws."""

import time

import numpy as np
import pytest
from scipy import stats

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts import moments_of_tasks, sample_summaries, stream_prompts
from icltheory.prompts import summarise as summarise_prompts
from icltheory.prompts.kernels import Kernel
from icltheory.simulate import exact_error

from .reference import summarise

D, LENGTH, RHO, N = 4, 6, 0.2, 60_000
TASKS = np.array([[1.5, -0.3, 0.8, 0.1], [0.2, 1.0, -1.0, 1.7], [0.0, 0.0, 0.0, 0.0]])


def random_matrix(rank):
    factor = np.random.default_rng(5).standard_normal((LENGTH + 1, rank))
    matrix = factor @ factor.T
    scale = np.sqrt(np.diag(matrix))
    return matrix / np.outer(scale, scale)


KERNELS = {
    "exponential": Kernel.exponential(2.0, LENGTH),
    "nearly independent": Kernel.exponential(0.05, LENGTH),
    "independent": Kernel.exponential(0.0, LENGTH),
    "far longer than the prompt": Kernel.exponential(400.0, LENGTH),
    "one token": Kernel.exponential(np.inf, LENGTH),
    "power law": Kernel.power_law(0.6, LENGTH),
    "random": Kernel.from_matrix(random_matrix(12), includes_query=True),
    "singular": Kernel.from_matrix(random_matrix(3), includes_query=True),
}


def joint_covariance(kernel, query):
    k = kernel.query_vector(query)
    return np.block([[kernel.matrix(), k[:, None]], [k[None, :], np.ones((1, 1))]])


def token_prompts(kernel, query, rng):
    """Draw all tokens from a factor of their correlations, one prompt a row."""
    values, vectors = np.linalg.eigh(joint_covariance(kernel, query))
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    tokens = factor @ rng.standard_normal((N, LENGTH + 1, D)) / np.sqrt(D)
    tasks = TASKS[rng.integers(len(TASKS), size=N)]
    labels = np.einsum("nld,nd->nl", tokens, tasks) + np.sqrt(RHO) * rng.standard_normal((N, LENGTH + 1))
    return np.column_stack(summarise(tokens, labels))


def summaries(kernel, query, seed=1):
    point = Point.of(d=D, n_sequences=N, context_length=LENGTH, n_tasks=len(TASKS), rho=RHO)
    data = sample_summaries(point, "gaussian", np.random.default_rng(seed), tasks=TASKS, kernel=kernel, query=query)
    return np.column_stack([data.query, data.context, data.target])


def products(values):
    """Return all products of two numbers of a prompt, and those of four that tell query, context and target apart."""
    pairs = [values[:, [i]] * values for i in range(values.shape[1])]
    query, context, energy, target = values[:, :D], values[:, D : 2 * D], values[:, [2 * D]], values[:, [-1]]
    overlap = (query * context).sum(axis=1, keepdims=True)
    return np.column_stack([values, *pairs, overlap * target, overlap * energy, overlap**2, energy * target * overlap])


@pytest.mark.parametrize("query", ["independent", "next"])
@pytest.mark.parametrize("name", KERNELS)
def test_equal_in_law_to_tokens_drawn_one_by_one(name, query):
    kernel = KERNELS[name]
    fast, slow = summaries(kernel, query), token_prompts(kernel, query, np.random.default_rng(2))
    a, b = products(fast), products(slow)
    z = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt((a.var(axis=0) + b.var(axis=0)) / N)
    assert np.abs(z).max() < 4.5
    # the laws of single numbers, not only their moments
    overlap = [(v[:, :D] * v[:, D : 2 * D]).sum(axis=1) for v in (fast, slow)]
    for i in (0, D, 2 * D, -1):
        assert stats.ks_2samp(fast[:, i], slow[:, i]).pvalue > 1e-3
    assert stats.ks_2samp(*overlap).pvalue > 1e-3


def squares(kernel, query, n=500_000):
    """Return squared errors of fixed models on drawn prompts, and the exact means of these for any kernel."""
    rng = np.random.default_rng(7)
    gammas = [c * np.eye(D, D + 1) + 0.3 * rng.standard_normal((D, D + 1)) for c in (-0.5, 0.5, 1.0)]
    point = Point.of(d=D, n_sequences=n, context_length=LENGTH, n_tasks=len(TASKS), rho=RHO)
    data = sample_summaries(point, "gaussian", np.random.default_rng(3), tasks=TASKS, kernel=kernel, query=query)
    predictions = [np.einsum("ni,ij,nj->n", data.query, gamma, data.context) for gamma in gammas]

    def exact(other):
        statistics = other.statistics(query)
        return [exact_error(gamma, moments_of_tasks(TASKS), LENGTH, RHO, statistics) for gamma in gammas]

    return np.array([(data.target - prediction) ** 2 for prediction in predictions]), exact


@pytest.mark.parametrize("query", ["independent", "next"])
@pytest.mark.parametrize("name", KERNELS)
def test_errors_on_drawn_prompts_are_the_exact_ones(name, query):
    found, exact = squares(KERNELS[name], query)
    z = (found.mean(axis=1) - exact(KERNELS[name])) / (found.std(axis=1) / np.sqrt(found.shape[1]))
    assert np.abs(z).max() < 4


@pytest.mark.parametrize("query", ["independent", "next"])
def test_precise_enough_to_see_a_fault_of_five_percent(query):
    """In k2, or of three with the query correlated."""
    found, exact = squares(Kernel.exponential(2.0, LENGTH), query)
    for xi in (1.85, 2.15) if query == "independent" else (1.9, 2.1):
        assert abs(Kernel.exponential(xi, LENGTH).k2 / Kernel.exponential(2.0, LENGTH).k2 - 1) < 0.05
        z = (found.mean(axis=1) - exact(Kernel.exponential(xi, LENGTH))) / (found.std(axis=1) / np.sqrt(found.shape[1]))
        assert np.abs(z).max() > 4


def test_a_chain_is_the_same_chain_as_a_matrix():
    """Two ways through: token by token, and in the eigenbasis."""
    chain = Kernel.exponential(3.0, LENGTH)
    matrix = Kernel.from_matrix(chain.matrix(), query=chain.query_vector("next"))
    a, b = (products(summaries(kernel, "next", seed)) for kernel, seed in ((chain, 1), (matrix, 2)))
    z = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt((a.var(axis=0) + b.var(axis=0)) / N)
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize("kernel", [Kernel.exponential(2.0, LENGTH), Kernel.power_law(0.6, LENGTH)], ids=str)
def test_a_query_of_ones_own(kernel):
    """A query that follows the fourth token rather than the last, and one with a profile of its own."""
    for profile in (np.array([0.1, 0.2, 0.3, 0.6, 0.3, 0.2]), np.array([0.0, 0.0, -0.5, 0.0, 0.0, 0.1])):
        a, b = products(summaries(kernel, profile)), products(token_prompts(kernel, profile, np.random.default_rng(2)))
        z = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt((a.var(axis=0) + b.var(axis=0)) / N)
        assert np.abs(z).max() < 4.5


def test_independent_tokens_are_the_sampler_without_a_kernel():
    np.testing.assert_array_equal(summaries(Kernel.independent(LENGTH), "next"), summaries(None, "independent"))


def test_draws_do_not_depend_on_the_block_size(monkeypatch):
    kernel = Kernel.exponential(2.0, LENGTH)
    whole = summaries(kernel, "next")
    monkeypatch.setattr("icltheory.prompts.sampling._BLOCK_ENTRIES", 1000 * LENGTH)
    np.testing.assert_allclose(summaries(kernel, "next"), whole, rtol=1e-12, atol=1e-14)


def test_a_chain_costs_no_more_than_its_length():
    """200 prompts of 100,000 tokens: a dense matrix of them would take 80 GB."""
    point = Point.of(d=50, n_sequences=200, context_length=100_000, n_tasks=5, rho=0.1)
    start = time.process_time()
    data = sample_summaries(
        point, "sphere", np.random.default_rng(0), kernel=Kernel.exponential(30.0, 100_000), query="next"
    )
    assert np.all(np.isfinite(data.context))
    assert time.process_time() - start < 60  # about 3: not a matter of speed, but of the order


@pytest.mark.parametrize(
    ("kernel", "query", "error", "message"),
    [
        (
            Kernel.exponential(1.0, 5),
            "next",
            ValueError,
            "kernel must have the context length of the prompts, 6, got 5",
        ),
        ("exponential", "next", TypeError, r"kernel must be a Kernel, such as .*, got 'exp"),
        (None, np.zeros(6), ValueError, 'query needs a kernel unless it is "independent" or "next"'),
        (Kernel.exponential(1.0, 6), "last", ValueError, 'query must be "independent", "next" or a vector, got'),
    ],
)
def test_what_is_refused(kernel, query, error, message):
    with pytest.raises(error, match=message):
        summaries(kernel, query)


@pytest.mark.parametrize("query", ["independent", "next"])
@pytest.mark.parametrize("name", KERNELS)
def test_full_tokens_have_the_correlations(name, query):
    """Entry by entry, and their summaries are those that are drawn without tokens."""
    kernel, n = KERNELS[name], 40_000
    batch = next(
        stream_prompts(
            d=D, n_sequences=n, rho=RHO, pretraining_tasks=TASKS, kernel=kernel, query=query, rng=0, batch_size=n
        )
    )
    tokens = np.concatenate([batch.x, batch.query[:, None, :]], axis=1)
    outer = np.einsum("nad,nbd->nab", tokens, tokens)  # of mean K_ab
    z = (outer.mean(axis=0) - joint_covariance(kernel, query)) / (outer.std(axis=0) / np.sqrt(n))
    assert np.abs(z).max() < 4.5
    residual = batch.y - np.einsum("nld,nd->nl", batch.x, batch.task)
    assert residual.var() == pytest.approx(RHO, rel=0.02)
    a, b = products(np.column_stack(summarise_prompts(batch))), products(summaries(kernel, query, seed=4))
    z = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(a.var(axis=0) / n + b.var(axis=0) / N)
    assert np.abs(z).max() < 4.5


def test_a_stream_of_correlated_tokens():
    """The kernel brings the context length; batches do not change the numbers; without it they are as they were."""
    kernel = Kernel.exponential(2.0, LENGTH)
    given = {"d": D, "n_sequences": 50, "n_tasks": 3, "rho": RHO, "rng": 0}
    whole = next(stream_prompts(**given, kernel=kernel, query="next"))
    parts = list(stream_prompts(**given, kernel=kernel, query="next", batch_size=7))
    np.testing.assert_array_equal(np.concatenate([part.x for part in parts]), whole.x)
    np.testing.assert_array_equal(np.concatenate([part.query for part in parts]), whole.query)
    assert whole.x.shape == (50, LENGTH, D)
    plain = next(stream_prompts(**given, context_length=LENGTH))
    np.testing.assert_array_equal(
        next(stream_prompts(**given, kernel=Kernel.independent(LENGTH), query="next")).x, plain.x
    )
    np.testing.assert_array_equal(plain.task, whole.task)
    with pytest.raises(ValueError, match="kernel must have the context length of the prompts, 5, got 6"):
        stream_prompts(**given, context_length=5, kernel=kernel)


def test_an_estimate_that_no_tokens_can_have_is_not_sampled():
    rng = np.random.default_rng(0)
    kernel = Kernel.from_sequences(rng.standard_normal((2, 60, 1)), context_length=59)
    assert np.linalg.eigvalsh(kernel.matrix())[0] < -0.01
    given = {"d": 4, "n_sequences": 5, "n_tasks": 3, "rho": 0.1}
    for draw in (
        lambda: stream_prompts(**given, kernel=kernel),
        lambda: sample_summaries(Point.of(**given, context_length=59), "sphere", rng, kernel=kernel),
    ):
        with pytest.raises(
            ValueError, match=r"kernel must be positive semidefinite to draw tokens, got the eigenvalue -"
        ):
            draw()


def test_what_is_no_kernel_is_refused_wherever_it_is_given():
    point = {"d": 4, "tau": 2.0, "kappa": 1.0, "rho": 0.1}
    for call in (
        lambda: icl.simulate.linear_attention(**point, kernel="chain"),
        lambda: icl.simulate.linear_attention(**point, alpha=1.0, test_kernel="chain"),
        lambda: icl.simulate.linear_attention_path(**point, ridges=[1.0], kernel="chain"),
        lambda: stream_prompts(**point, kernel="chain"),
    ):
        with pytest.raises(TypeError, match=r"kernel must be a Kernel, such as .*, got 'chain'"):
            call()
