"""Kernels against dense matrices: statistics, possible queries, estimates with their error bars, regimes."""

import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icltheory.prompts.kernels import Kernel
from icltheory.prompts.regimes import Statistics

FAMILIES = {
    "independent": (Kernel.independent, lambda j: (j == 0) * 1.0),
    "exponential 0": (lambda size: Kernel.exponential(0, size), lambda j: (j == 0) * 1.0),
    "exponential 1e-300": (lambda size: Kernel.exponential(1e-300, size), lambda j: (j == 0) * 1.0),
    "exponential 0.4": (lambda size: Kernel.exponential(0.4, size), lambda j: np.exp(-j / 0.4)),
    "exponential 30": (lambda size: Kernel.exponential(30, size), lambda j: np.exp(-j / 30)),
    "exponential inf": (lambda size: Kernel.exponential(math.inf, size), lambda j: 1.0 + 0 * j),
    "power 0": (lambda size: Kernel.power_law(0, size), lambda j: 1.0 + 0 * j),
    "power 0.3": (lambda size: Kernel.power_law(0.3, size), lambda j: (1.0 + j) ** -0.3),
    "power 2": (lambda size: Kernel.power_law(2, size), lambda j: (1.0 + j) ** -2),
    "power inf": (lambda size: Kernel.power_law(math.inf, size), lambda j: (j == 0) * 1.0),
}


def dense(correlation, length):
    """Return the matrix of l tokens and the query, entry by entry."""
    return np.array([[correlation(abs(a - b)) for b in range(length + 1)] for a in range(length + 1)])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("length", [1, 2, 3, 20, 37])
def test_statistics_against_dense_matrices(family, length):
    make, correlation = FAMILIES[family]
    full = dense(correlation, length)
    matrix, k = full[:-1, :-1], full[-1, :-1]
    kernel = make(length)
    assert kernel.context_length == length
    np.testing.assert_allclose(kernel.matrix(), matrix, rtol=1e-15)
    np.testing.assert_allclose(kernel.query_vector("next"), k, rtol=1e-15)
    exact = (k @ k, k @ matrix @ k, np.trace(matrix @ matrix) / length)
    np.testing.assert_allclose((kernel.k0, kernel.k1, kernel.k2), exact, rtol=1e-13)
    given_as_matrix = Kernel.from_matrix(full, includes_query=True)
    for other in (given_as_matrix, Kernel.from_matrix(matrix, query=k)):
        np.testing.assert_allclose((other.k0, other.k1, other.k2), exact, rtol=1e-13)
        np.testing.assert_array_equal(other.matrix(), matrix)
    independent = kernel.statistics()
    assert (independent.k0, independent.k1) == (0, 0)
    assert independent.k2 == kernel.k2
    assert (independent.k0_error, independent.k1_error, independent.k2_error) == (0, 0, 0)
    own = kernel.statistics(0.5 * k)
    np.testing.assert_allclose((own.k0, own.k1), (exact[0] / 4, exact[1] / 4), rtol=1e-13)


@pytest.mark.parametrize("xi", [0.5, 3.0, 40.0])
def test_a_long_chain_has_the_statistics_in_closed_form(xi):
    """l = 10^5, far beyond any dense matrix: k2 = coth(1/xi), k0 = 1/(e^(2/xi) - 1), k1 = k2 k0 as l -> infinity."""
    kernel = Kernel.exponential(xi, 100_000)
    k2, k0 = 1 / math.tanh(1 / xi), 1 / math.expm1(2 / xi)
    assert kernel.k0 == pytest.approx(k0, rel=1e-12)
    assert kernel.k1 == pytest.approx(k2 * k0, rel=1e-12)
    # the ends of the chain are worth 2 sum_j j r^(2j)/l
    ends = 2 * math.exp(-2 / xi) / math.expm1(-2 / xi) ** 2 / 100_000
    assert kernel.k2 == pytest.approx(k2 - ends, rel=1e-13)


def test_effective_length():
    """l = 128, rho = .01, xi = 0 to 6: the values of correlated.md."""
    lengths = [f"{Kernel.exponential(xi, 128).effective_length(0.01):.1f}" for xi in range(7)]
    assert lengths == ["128.0", "97.9", "59.9", "41.9", "32.1", "26.0", "21.8"]
    assert Kernel.exponential(math.inf, 64).effective_length(0.0) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="rho must be >= 0"):
        Kernel.independent(3).effective_length(-1.0)


@pytest.mark.parametrize("family", ["exponential 0", "exponential 0.4", "exponential 30", "power 0.3", "power 2"])
def test_which_queries_are_possible(family):
    """A query may go as far as its variance given the context is 0, and no further."""
    make, correlation = FAMILIES[family]
    length = 15
    kernel, matrix = make(length), dense(correlation, length)[:-1, :-1]
    rng = np.random.default_rng(0)
    for direction in (rng.standard_normal(length), matrix[0], np.eye(length)[7]):
        k = direction / math.sqrt(direction @ np.linalg.solve(matrix, direction))
        for each in (kernel, Kernel.from_matrix(matrix)):
            np.testing.assert_array_equal(each.query_vector(k), k)
        with pytest.raises(ValueError, match=r"variance 1 - k\^T K\^-1 k >= 0 given the context, got -0.0404"):
            kernel.query_vector(1.02 * k)
        with pytest.raises(ValueError, match=r"query must make \[K k; k\^T 1\] positive semidefinite, got the eigen"):
            Kernel.from_matrix(matrix).query_vector(1.02 * k)
        with pytest.raises(ValueError, match="query must make"):
            Kernel.from_matrix(matrix, query=1.02 * k)


def test_queries_of_identical_tokens():
    for kernel in (Kernel.exponential(math.inf, 4), Kernel.power_law(0, 4), Kernel.from_matrix(np.ones((4, 4)))):
        assert kernel.statistics(np.full(4, 0.5)).k1 == pytest.approx(4.0)
        assert kernel.query_vector(np.full(4, 0.999))[0] == 0.999
        for wrong in (np.full(4, 1.001), [0.5, 0.5, 0.5, 0.4]):
            with pytest.raises(ValueError, match="query must"):
                kernel.query_vector(wrong)


def test_a_query_that_cannot_be_checked_is_refused():
    """The matrix of tokens that are all but identical is singular to rounding: no silent answer."""
    k = np.random.default_rng(0).standard_normal(400)
    with pytest.raises((ArithmeticError, ValueError), match="query"):
        Kernel.power_law(1e-15, 400).query_vector(k / 1e3)


def test_a_long_power_law_checks_queries_without_a_matrix():
    kernel = Kernel.power_law(0.6, 5_000)
    k = kernel.query_vector("next")
    np.testing.assert_array_equal(kernel.query_vector(k), k)
    with pytest.raises(ValueError, match="variance"):
        kernel.query_vector(1.5 * k)


matrices = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seed=matrices, length=st.integers(1, 12), rank=st.integers(1, 14))
def test_statistics_of_any_possible_prompt_are_accepted_by_the_theory(seed, length, rank):
    """k2 >= 1 and k1 >= k0^2 for whatever tokens; a permutation of the tokens changes nothing."""
    from icltheory.theory.correlated import correlated_context

    rng = np.random.default_rng(seed)
    tokens = rng.standard_normal((length + 1, rank))
    tokens /= np.sqrt((tokens**2).sum(axis=1, keepdims=True))
    full = tokens @ tokens.T
    kernel = Kernel.from_matrix(full, includes_query=True)
    assert kernel.k2 >= 1 - 1e-12
    assert kernel.k1 >= kernel.k0**2 * (1 - 1e-9)
    correlated_context(tau=2.0, alpha=1.0, kappa=1.0, rho=0.1, k0=kernel.k0, k1=kernel.k1, k2=kernel.k2)
    order = rng.permutation(length)
    shuffled = Kernel.from_matrix(kernel.matrix()[np.ix_(order, order)], query=kernel.query_vector("next")[order])
    np.testing.assert_allclose((shuffled.k0, shuffled.k1, shuffled.k2), (kernel.k0, kernel.k1, kernel.k2), rtol=1e-12)


def autoregression(n, m, d, r, rng):
    """Draw n sequences of m tokens with correlations r^j, step by step."""
    x = rng.standard_normal((n, m, d))
    for a in range(1, m):
        x[:, a] = r * x[:, a - 1] + math.sqrt(1 - r**2) * x[:, a]
    return x


def lag_by_lag(tokens):
    """Return the mean of x_a . x_(a+j) over sequences and pairs, for every lag j, relative to lag 0."""
    size = tokens.shape[1]
    gram = np.einsum("nad,nbd->ab", tokens, tokens)
    sums = np.array([np.trace(gram, j) / (size - j) for j in range(size)])
    return sums / sums[0]


@pytest.mark.parametrize("n", [2, 250])
def test_the_estimate_itself(n):
    tokens = np.random.default_rng(n).standard_normal((n, 9, 3)) * np.arange(1.0, 4.0)
    tokens[:, 1:] += tokens[:, :-1]
    kernel = Kernel.from_sequences(tokens, context_length=8)
    np.testing.assert_allclose(kernel.query_vector("next")[::-1], lag_by_lag(tokens)[1:], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.matrix()[0], lag_by_lag(tokens)[:-1], rtol=1e-12, atol=1e-14)
    assert kernel.with_length(9).context_length == 9


def estimates(repeats, n, r, length, d, seed):
    """Estimate the statistics of a chain again and again; return the truth, the estimates and their error bars."""
    rng = np.random.default_rng(seed)
    exact = Kernel.exponential(-1 / math.log(r), length).statistics("next")
    all_tokens = [3.0 * autoregression(n, length + 1, d, r, rng) for _ in range(repeats)]
    found = [Kernel.from_sequences(tokens, context_length=length).statistics("next") for tokens in all_tokens]
    names = ("k0", "k1", "k2")
    values, bars = (
        np.array([[getattr(each, name + end) for name in names] for each in found]) for end in ("", "_error")
    )
    return np.array([getattr(exact, name) for name in names]), values, bars, all_tokens


def test_estimates_are_free_of_bias():
    """The mean of 400 estimates from 20 sequences each is the truth; squares of noisy correlations are not."""
    r, length = 0.4, 12
    exact, values, _, all_tokens = estimates(400, 20, r, length, 2, 0)
    error = values.std(axis=0, ddof=1) / math.sqrt(400)
    assert np.all(np.abs(values.mean(axis=0) - exact) < 3.5 * error)
    naive = []
    for tokens in all_tokens:
        c = lag_by_lag(tokens)
        matrix = c[np.abs(np.subtract.outer(np.arange(length), np.arange(length)))]
        naive.append((c[1:] @ c[1:], np.trace(matrix @ matrix) / length))
    assert np.all(np.mean(naive, axis=0) - exact[[0, 2]] > 6 * error[[0, 2]])


def test_error_bars_of_estimates():
    """The spread of 150 estimates is what their error bars say, to three times the 6 % to which 150 show a spread."""
    _, values, bars, _ = estimates(150, 100, 0.6, 6, 4, 1)
    ratio = bars.mean(axis=0) / values.std(axis=0, ddof=1)
    assert np.all(np.abs(ratio - 1) < 3 / math.sqrt(2 * 150))


def test_estimates_by_groups_of_sequences():
    """More sequences than groups, in groups of unequal size; lags far from the end; the rest as for known kernels."""
    r, rng = 0.5, np.random.default_rng(1)
    tokens = autoregression(1_037, 41, 4, r, rng)
    exact = Kernel.exponential(-1 / math.log(r), 20)
    kernel = Kernel.from_sequences(tokens, context_length=20)
    for query in ("next", "independent"):
        found, known = kernel.statistics(query), exact.statistics(query)
        for name in ("k0", "k1", "k2"):
            bar = getattr(found, f"{name}_error")
            assert abs(getattr(found, name) - getattr(known, name)) <= 3 * bar
            assert bar < 0.05
    np.testing.assert_allclose(kernel.matrix(), exact.matrix(), atol=0.03)
    assert kernel.regime("next").name == "weak"
    assert kernel.with_length(40).k2 == pytest.approx(exact.with_length(40).k2, abs=0.05)
    assert kernel.with_length(40).k0 == pytest.approx(exact.k0, abs=0.05)
    with pytest.raises(ValueError, match="at most 41, as estimated"):
        kernel.with_length(42)


def test_an_estimate_of_independent_tokens_is_made_possible():
    """Noise may leave k0 < 0 or k2 < 1: `possible` mends it, and the theory accepts the answer."""
    from icltheory.theory.correlated import correlated_context

    mended = 0
    for seed in range(20):
        tokens = np.random.default_rng(seed).standard_normal((30, 9, 4))
        raw = Kernel.from_sequences(tokens, context_length=8).statistics("next")
        good = raw.possible()
        mended += good != raw
        correlated_context(tau=2.0, alpha=1.0, kappa=1.0, rho=0.1, k0=good.k0, k1=good.k1, k2=good.k2)
        assert good.possible() == good
        assert good.k2_error == raw.k2_error
    assert mended > 5
    out = Statistics(k0=2.0, k1=1.0, k2=0.9, k0_error=0.1, k1_error=0.2, k2_error=0.3).possible()
    assert out == Statistics(k0=2.0, k1=4.0, k2=1.0, k0_error=0.1, k1_error=0.2, k2_error=0.3)
    assert Statistics(k0=-0.1, k1=0.3, k2=1.2).possible() == Statistics(k0=0.0, k1=0.0, k2=1.2)


@pytest.mark.parametrize(
    ("kernel", "query", "name", "reason"),
    [
        (Kernel.independent(2), "next", "weak", "k0, k1 and k2 have settled"),
        (Kernel.exponential(100, 1_000), "independent", "weak", "k2 has settled"),
        (Kernel.exponential(200, 1_000), "independent", "borderline", r"k2 still grows like l\^0.17 at l = 1000"),
        (Kernel.exponential(1_000, 1_000), "next", "strong", r"k2 grows like l\^0.63"),
        (Kernel.exponential(math.inf, 50), "independent", "strong", r"k2 grows like l\^1.00"),
        (Kernel.power_law(0.4, 1_000), "independent", "strong", r"like l\^0.20"),
        (Kernel.power_law(0.5, 1_000), "independent", "borderline", "log l"),
        (Kernel.power_law(0.6, 128), "independent", "borderline", r"k2 still grows like l\^0.18"),
        (Kernel.power_law(0.6, 100_000), "independent", "weak", "k2 has settled"),
        (Kernel.power_law(0.6, 100_000), "next", "borderline", "k1 grows without bound for gamma <= 2/3"),
        (Kernel.power_law(0.7, 100_000), "next", "weak", "settled"),
        (Kernel.from_matrix(np.full((8, 8), 0.9) + 0.1 * np.eye(8)), "independent", "strong", "k2 grows"),
        (Kernel.from_matrix(np.eye(64)), "independent", "weak", "k2 has settled"),
        (Kernel.from_matrix(np.eye(64)), np.full(64, 0.12), "borderline", r"k0 still grows like l\^0.40"),
        (Kernel.independent(1), "independent", "borderline", "one token"),
    ],
)
def test_regimes(kernel, query, name, reason):
    regime = kernel.regime(query)
    assert regime.name == name
    assert re.search(reason, regime.reason)


def test_how_k1_grows_for_power_laws():
    """What the verdict rests on: k1 ~ l^(2 - 3 gamma) for 1/2 < gamma < 2/3, and converges above."""
    for gamma in (0.52, 0.55):
        growth = np.log2(Kernel.power_law(gamma, 2_000_000).k1 / Kernel.power_law(gamma, 1_000_000).k1)
        assert growth == pytest.approx(2 - 3 * gamma, abs=0.06)
    steps = np.diff([Kernel.power_law(0.9, length).k1 for length in (1_000, 10_000, 100_000)])
    assert 0 < steps[1] < 0.5 * steps[0]


def test_lengths_pickles_and_equality():
    kernel = Kernel.exponential(5.0, 128)
    assert kernel.with_length(64) == Kernel.exponential(5.0, 64)
    assert kernel != Kernel.exponential(6.0, 128)
    assert hash(kernel) == hash(Kernel.exponential(5.0, 128))
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    matrix = Kernel.from_matrix(kernel.matrix())
    assert pickle.loads(pickle.dumps(matrix)).k2 == matrix.k2
    with pytest.raises(ValueError, match="another length needs a stationary kernel, and this one was"):
        matrix.with_length(5)
    copy = matrix.matrix()
    copy[0, 0] = 7.0
    assert matrix.matrix()[0, 0] == 1.0
    pair = Kernel.from_matrix(np.eye(2), query=[0.1, 0.2])
    pair.query_vector("next")[:] = 7.0
    assert pair.k0 == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.5]], r"matrix must have shape \(l, l\), got \(1, 2\)"),
        ([[1.0, 0.5], [0.4, 1.0]], r"matrix must be symmetric, got 0.5 at index \(0, 1\) and 0.4 at \(1, 0\)"),
        ([[1.0, 0.5], [0.5, 1.1]], r"matrix must be 1 on its diagonal, got 1.1 at index \(1, 1\)"),
        ([[1.0, 1.2], [1.2, 1.0]], "matrix must be positive semidefinite, got the eigenvalue -0.2"),
        ([[1.0, math.nan], [0.5, 1.0]], r"matrix must be finite, got nan at index \(0, 1\)"),
    ],
)
def test_matrices_that_no_tokens_have(matrix, message):
    with pytest.raises(ValueError, match=message):
        Kernel.from_matrix(matrix)


def test_errors_name_the_argument():
    cases = [
        (lambda: Kernel.exponential(-1.0, 5), ValueError, "xi must be >= 0, got -1"),
        (lambda: Kernel.exponential(math.nan, 5), ValueError, "xi must be >= 0, got nan"),
        (lambda: Kernel.power_law("a", 5), TypeError, "gamma must be one number, got 'a'"),
        (lambda: Kernel.power_law(1.0, 0), ValueError, "context_length must be an integer >= 1, got 0"),
        (lambda: Kernel.independent(2.5), ValueError, "context_length must be an integer"),
        (lambda: Kernel.independent(3).query_vector("nxt"), ValueError, 'query must be "independent", "next" or a v'),
        (lambda: Kernel.independent(3).query_vector([0.1, 0.2]), ValueError, "query must be 3 finite numbers"),
        (lambda: Kernel.independent(3).query_vector([None] * 3), TypeError, "query must be"),
        (lambda: Kernel.from_matrix(np.eye(3)).k0, ValueError, "give from_matrix the query"),
        (lambda: Kernel.from_matrix(np.eye(3), query=[0] * 3, includes_query=True), ValueError, "not both"),
        (lambda: Kernel.from_matrix([[1.0]], includes_query=True), ValueError, "context besides the query"),
        (lambda: Kernel.from_matrix("K"), TypeError, "matrix must be an array"),
        (lambda: Kernel.from_sequences(np.ones((1, 4, 2))), ValueError, "n >= 2 sequences"),
        (lambda: Kernel.from_sequences(np.ones((4, 2))), ValueError, r"shape \(n, m, d\)"),
        (lambda: Kernel.from_sequences(np.zeros((4, 4, 2))), ValueError, "zero"),
        (lambda: Kernel.from_sequences(np.full((4, 4, 2), np.inf)), ValueError, r"got inf at index \(0, 0, 0\)"),
        (lambda: Kernel.from_sequences(np.ones((4, 4, 2)), context_length=5), ValueError, "at most 4"),
        (lambda: Kernel.from_sequences(np.ones((4, 4, 2))).k0, ValueError, "context_length below the length"),
        (lambda: Kernel.from_sequences(np.ones((4, 4, 2))).query_vector([0.0] * 4), ValueError, "estimated kernel"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


def test_a_matrix_without_room_is_refused_before_it_is_made():
    with pytest.raises(MemoryError, match="the statistics do not need it"):
        Kernel.exponential(3.0, 10_000_000).matrix()
