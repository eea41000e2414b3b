"""Mixtures of laws against enumeration, conjugate posteriors and dMMSE; expected errors against those that occur."""

import doctest
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icltheory as icl

AT = ("query", "prefixes", "next")
PAGE = Path(__file__).parents[1] / "docs" / "mixture.md"


class Table(icl.bayes.Law):
    """Token 0, 1 or 2 with probabilities p; label j with probability q[token, j], whose value is values[j]."""

    def __init__(self, seed, values):
        rng = np.random.default_rng(seed)
        self.p, self.q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(len(values)), size=3)
        self.values = np.asarray(values, dtype=float)

    def log_density(self, x):
        return np.log(self.p)[x]

    def log_likelihood(self, x, y):
        same = (y[..., None] if self.values.ndim == 1 else y[..., None, :]) == self.values
        return np.log(self.q[x][same if self.values.ndim == 1 else same.all(axis=-1)].reshape(np.shape(x)))

    def mean(self, x):
        return self.q[x] @ self.values

    def variance(self, x):
        return self.q[x] @ self.values**2 - self.mean(x) ** 2

    def sample(self, n, rng):
        x = rng.choice(3, n, p=self.p)
        return x, np.array([self.values[rng.choice(len(self.values), p=self.q[token])] for token in x])


class Counts(icl.bayes.Law):
    """Poisson counts of rate exp(w x), tokens normal around a centre of the law's own."""

    def __init__(self, w, centre):
        self.w, self.centre = w, centre

    def log_density(self, x):
        return -0.5 * (x - self.centre) ** 2

    def log_likelihood(self, x, y):
        return y * self.w * x - np.exp(self.w * x) - np.vectorize(math.lgamma, otypes=[float])(y + 1.0)

    def mean(self, x):
        return np.exp(self.w * x)

    def variance(self, x):
        return np.exp(self.w * x)

    def sample(self, n, rng):
        x = self.centre + rng.standard_normal(n)
        return x, rng.poisson(self.mean(x))


SCALAR, VECTOR = [0.0, 1.0, 3.0], [[0.0, 1.0], [2.0, -1.0]]


def slow_table(laws, prior, examples, token):
    """Multiply probabilities and sum over labels, one by one."""
    weights = []
    for law, weight in zip(laws, prior, strict=True):
        for x, y in examples:
            weight *= law.p[x] * law.q[x, [np.array_equal(y, v) for v in law.values].index(True)]
        weights.append(weight * law.p[token])
    weights = np.array(weights) / sum(weights)
    chance = sum(w * law.q[token] for w, law in zip(weights, laws, strict=True))
    values = laws[0].values
    mean = sum(c * v for c, v in zip(chance, values, strict=True))
    variance = sum(c * (v - mean) ** 2 for c, v in zip(chance, values, strict=True))
    return weights, mean, variance


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("values", [SCALAR, VECTOR])
def test_mixture_is_an_explicit_sum(values, at):
    laws, prior = [Table(seed, values) for seed in range(4)], [0.5, 0.0, 2.0, 1.0]
    prompts = icl.bayes.draw_mixture(laws, 5, n_prompts=6, prior=prior, rng=1)
    x, y, query = prompts.x, prompts.y, prompts.query
    shaped = [a.reshape(2, 3, *a.shape[1:]) for a in (x, y, query)]
    found = icl.bayes.mixture(*shaped, laws, prior=prior, at=at)
    for b in range(6):
        for m in (5,) if at == "query" else range(6):
            token = x[b, m] if at == "next" and m < 5 else query[b]
            examples = list(zip(x[b, :m], y[b, :m], strict=True))
            weights, mean, variance = slow_table(laws, prior, examples, token)
            place = (b // 3, b % 3) if at == "query" else (b // 3, b % 3, m)
            np.testing.assert_allclose(found.weights[place], weights, rtol=1e-12)
            np.testing.assert_allclose(found.mean[place], mean, rtol=1e-12)
            np.testing.assert_allclose(found.variance[place], variance, rtol=1e-11)
            np.testing.assert_allclose(found.expected_error[place], np.sum(variance), rtol=1e-11)
            assert found.most_likely[place] == str(np.argmax(weights))


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("rho", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize("prior", [None, (0.0, 3.0, 1.0, 0.5, 0.0, 7.0)])
def test_dmmse_is_the_linear_gaussian_case(prior, rho, at):
    rng = np.random.default_rng(0)
    tasks = icl.prompts.draw_tasks(6, 3, "gaussian", rng)
    x, query = rng.standard_normal((2, 4, 9, 3)), rng.standard_normal((2, 4, 3))
    y = x @ tasks[1] + np.sqrt(rho) * rng.standard_normal((2, 4, 9))
    found = icl.bayes.mixture(x, y, query, [icl.bayes.LinearGaussian(w, rho) for w in tasks], prior=prior, at=at)
    expected = icl.bayes.discrete(x, y, query, tasks, rho, prior=prior, at=at)
    np.testing.assert_allclose(found.mean, expected, rtol=0, atol=1e-10)
    if at != "next":
        weights = icl.bayes.posterior(x, y, tasks, rho, prior=prior, at=at)
        np.testing.assert_allclose(found.weights, weights, rtol=0, atol=1e-10)


def test_many_tasks_become_the_conjugate_posterior():
    """Tasks on a fine grid with a Gaussian prior: ridge regression, and the predictive variance of the conjugate."""
    grid, rho = np.linspace(-6.0, 6.0, 241), 0.3
    laws = [icl.bayes.LinearGaussian([w], rho) for w in grid]
    x, y, query = np.array([[0.5], [-1.0], [0.8]]), np.array([1.0, -0.3, 0.9]), np.array([1.7])
    found = icl.bayes.mixture(x, y, query, laws, prior=np.exp(-0.5 * grid**2), at="prefixes")
    np.testing.assert_allclose(found.mean, icl.bayes.ridge(x, y, query, rho, at="prefixes"), rtol=1e-10, atol=1e-12)
    seen = np.concatenate([[0.0], np.cumsum(x[:, 0] ** 2)])
    # at no example the prior's cut at 6 standard deviations costs 1e-7
    np.testing.assert_allclose(found.variance, rho + query**2 * rho / (seen + rho), rtol=1e-6)


def test_noise_levels_are_told_apart():
    """Equal tasks, unequal noise: the density's own constant counts. Two laws, one example, by hand."""
    laws = [icl.bayes.LinearGaussian([1.0], 0.25), icl.bayes.LinearGaussian([1.0], 4.0)]
    found = icl.bayes.mixture([[1.0]], [2.0], [3.0], laws)
    density = [math.exp(-1 / (2 * rho)) / math.sqrt(2 * math.pi * rho) for rho in (0.25, 4.0)]
    weights = np.array(density) / sum(density)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-12)
    np.testing.assert_allclose(found.variance, weights @ [0.25, 4.0], rtol=1e-12)
    assert found.mean == pytest.approx(3.0, rel=1e-14)


@pytest.mark.parametrize("at", AT)
def test_logistic_is_a_product_of_probabilities(at):
    rng = np.random.default_rng(3)
    tasks = 3.0 * rng.standard_normal((4, 2))
    x, y, query = rng.standard_normal((5, 2)), np.array([1, 0, 0, 1, 1]), rng.standard_normal(2)
    found = icl.bayes.mixture(x, y, query, [icl.bayes.Logistic(w) for w in tasks], at=at)

    def one(w, token):
        return 1 / (1 + math.exp(-(w @ token)))

    for m in (5,) if at == "query" else range(6):
        token = x[m] if at == "next" and m < 5 else query
        weights = np.array(
            [
                math.prod(one(w, t) if label else 1 - one(w, t) for t, label in zip(x[:m], y[:m], strict=True))
                for w in tasks
            ]
        )
        p = weights @ [one(w, token) for w in tasks] / weights.sum()
        place = () if at == "query" else m
        np.testing.assert_allclose(found.mean[place], p, rtol=1e-12)
        np.testing.assert_allclose(found.variance[place], p * (1 - p), rtol=1e-11)
        np.testing.assert_allclose(found.weights[place], weights / weights.sum(), rtol=1e-11)


def test_logistic_neither_overflows_nor_vanishes():
    law = icl.bayes.Logistic([1.0])
    x, tail = np.array([[-800.0], [-30.0], [0.0], [30.0], [800.0]]), math.log1p(math.exp(-30))
    np.testing.assert_allclose(
        law.log_likelihood(x, np.ones(5)), [-800, -30 - tail, -math.log(2), -tail, 0], rtol=1e-14
    )
    np.testing.assert_array_equal(law.log_likelihood(x, np.zeros(5, dtype=bool)), law.log_likelihood(-x, np.ones(5)))
    np.testing.assert_allclose(law.variance(x)[:2], [0.0, math.exp(-30) / (1 + math.exp(-30)) ** 2], rtol=1e-14)


@given(seed=st.integers(0, 10**6), at=st.sampled_from(["query", "prefixes"]))
@settings(max_examples=25, deadline=None)
def test_examples_laws_and_halves_of_laws_may_come_in_any_order(seed, at):
    rng = np.random.default_rng(seed)
    laws, prior = [Table(seed + j, SCALAR) for j in range(4)], rng.random(4) + 0.1
    prompts = icl.bayes.draw_mixture(laws, 7, n_prompts=2, rng=seed)
    base = icl.bayes.mixture(prompts.x, prompts.y, prompts.query, laws, prior=prior, at=at)
    last = () if at == "query" else (slice(None), -1)
    order, of_laws = rng.permutation(7), rng.permutation(4)
    moved = icl.bayes.mixture(
        prompts.x[:, order], prompts.y[:, order], prompts.query, [laws[j] for j in of_laws], prior=prior[of_laws], at=at
    )
    np.testing.assert_allclose(moved.weights[last], base.weights[last][:, of_laws], rtol=1e-10)
    np.testing.assert_allclose(moved.variance[last], base.variance[last], rtol=1e-9)
    halved = icl.bayes.mixture(
        prompts.x, prompts.y, prompts.query, [*laws, laws[0]], prior=[prior[0] / 2, *prior[1:], prior[0] / 2], at=at
    )
    np.testing.assert_allclose(halved.mean, base.mean, rtol=1e-10)
    np.testing.assert_allclose(halved.weights[..., 0] + halved.weights[..., 4], base.weights[..., 0], rtol=1e-10)


FAMILIES = {
    "tables": [Table(j, VECTOR) for j in range(3)],
    "linear": [icl.bayes.LinearGaussian(w, rho) for w, rho in [((1, 0), 0.1), ((0, 2), 0.1), ((-1, 1), 0.5)]],
    "logistic": [icl.bayes.Logistic(w) for w in [(3, 0), (0, 5), (-4, 4)]],
    "counts": [Counts(0.3, 0.0), Counts(0.6, 0.5), Counts(-0.4, 1.0)],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_posterior_knows_its_own_error(family):
    """Over prompts drawn from the mixture: mean, squared error and weights are as the posterior says, to 4 s.e."""
    laws, prior, n = FAMILIES[family], [1.0, 2.0, 1.0], 4000
    prompts = icl.bayes.draw_mixture(laws, 4, n_prompts=n, prior=prior, rng=0)
    found = icl.bayes.mixture(prompts.x, prompts.y, prompts.query, laws, prior=prior, at="prefixes")
    residual = prompts.target[:, None] - found.mean
    squared = residual**2 if residual.ndim == 2 else (residual**2).sum(axis=-1)
    wrote = (prompts.law[:, None] == np.arange(3))[:, None, :]
    for surplus in (
        residual,
        squared - found.expected_error,
        residual * found.mean,
        wrote - found.weights,
        (wrote - found.weights) * found.weights,
    ):
        assert np.all(np.abs(surplus.mean(axis=0)) < 4 * surplus.std(axis=0) / np.sqrt(n) + 1e-12)
    # the test sees an error of 5 % in the expected error; and examples help
    assert np.all(4 * (squared - found.expected_error).std(axis=0) / np.sqrt(n) < 0.2 * squared.mean(axis=0))
    assert found.expected_error[:, -1].mean() < found.expected_error[:, 0].mean()


@pytest.mark.parametrize("values", [SCALAR, VECTOR])
def test_bayes_risk_is_a_sum_over_all_prompts(values):
    laws, prior = [Table(seed, values) for seed in (5, 6)], np.array([0.3, 0.7])
    pairs = [(x, j) for x in range(3) for j in range(len(values))]
    exact = np.zeros(3)
    for prompt in itertools.product(pairs, repeat=2):
        for token in range(3):
            chance = [
                p * law.p[token] * math.prod(law.p[x] * law.q[x, j] for x, j in prompt)
                for p, law in zip(prior, laws, strict=True)
            ]
            for m in range(3):
                examples = [(x, values[j]) for x, j in prompt[:m]]
                exact[m] += sum(chance) * np.sum(slow_table(laws, prior, examples, token)[2])
    risk = icl.bayes.bayes_risk(laws, 2, prior=10 * prior, n_prompts=20_000, rng=0)
    assert risk.n_prompts == 20_000
    assert np.all(np.abs(risk.error - exact) < 4 * risk.standard_error)
    assert np.all(risk.standard_error < 0.01 * exact)


def test_bayes_risk_in_blocks_and_its_standard_error(monkeypatch):
    laws = FAMILIES["linear"]
    whole = icl.bayes.bayes_risk(laws, 3, n_prompts=50, rng=0)
    prompts = icl.bayes.draw_mixture(laws, 3, n_prompts=50, rng=0)
    errors = icl.bayes.mixture(prompts.x, prompts.y, prompts.query, laws, at="prefixes").expected_error
    np.testing.assert_allclose(whole.standard_error, [np.std(e, ddof=1) / math.sqrt(50) for e in errors.T], rtol=1e-12)
    monkeypatch.setattr("icltheory.bayes.mixture_risk.MAX_BYTES", 24 * 3 * 4 * 7)  # seven prompts at a time
    np.testing.assert_array_equal(icl.bayes.bayes_risk(laws, 3, n_prompts=50, rng=0).error, whole.error)


def test_drawn_prompts_are_of_the_law_they_name():
    laws = [icl.bayes.LinearGaussian(w, 1e-6) for w in [(1.0, 0.0, 1.0), (0.0, 9.0, 0.0), (5.0, 5.0, 5.0)]]
    prompts = icl.bayes.draw_mixture(laws, 4, n_prompts=4000, prior=[1, 0, 3], rng=0)
    w = np.array([law.w for law in laws])[prompts.law]
    noise = prompts.y - (prompts.x @ w[:, :, None])[:, :, 0]
    assert abs(np.mean(noise**2) / 1e-6 - 1) < 4 * math.sqrt(2 / noise.size)
    np.testing.assert_allclose(prompts.target, np.sum(prompts.query * w, axis=1), atol=6e-3)
    assert abs(np.mean(prompts.x**2) * 3 - 1) < 4 * math.sqrt(2 / prompts.x.size)
    assert np.bincount(prompts.law)[1] == 0
    assert abs(np.mean(prompts.law == 2) - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 4000)


def test_laws_that_are_ruled_out():
    """Weight 0 by prior, by label or by token; infinite variance at weight 0; likelihoods that would underflow."""

    class Exact(icl.bayes.Law):
        def __init__(self, value, spread=0.0):
            self.value, self.spread = value, spread

        def log_likelihood(self, x, y):
            return np.where(y == self.value * x, -1e6, -np.inf)

        def log_density(self, x):
            return np.where(x < 10, 0.0, -np.inf) if self.value == 2 else np.zeros(np.shape(x))

        def mean(self, x):
            return self.value * x

        def variance(self, x):
            return np.full(np.shape(x), self.spread)

    laws = {"one": Exact(1.0), "two": Exact(2.0), "also two": Exact(2.0), "three": Exact(3.0, np.inf)}
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 4.0])
    found = icl.bayes.mixture(x, y, 5.0, laws, prior=[1, 1, 3, 0], at="prefixes")
    np.testing.assert_allclose(found.weights[:2], [[0.2, 0.2, 0.6, 0], [0.2, 0.2, 0.6, 0]], rtol=1e-14)
    np.testing.assert_allclose(found.weights[2:], [[0, 0.25, 0.75, 0], [0, 0.25, 0.75, 0]], rtol=1e-14)
    np.testing.assert_allclose(found.mean, [9.0, 9.0, 10.0, 10.0], rtol=1e-14)
    np.testing.assert_allclose(found.variance, [4.0, 4.0, 0.0, 0.0], rtol=1e-13, atol=1e-13)
    assert found.names == tuple(laws)
    assert list(found.most_likely) == ["also two"] * 4
    assert icl.bayes.mixture(x, y, 5.0, laws).variance == 0
    assert icl.bayes.mixture([0.0], [0.0], 5.0, laws).variance == np.inf
    with pytest.raises(ValueError, match=r"no law is left after example 3, x = 2\., y = 2\.: it has probability 0"):
        icl.bayes.mixture(x, [0.0, 2.0, 2.0], 5.0, laws)
    with pytest.raises(ValueError, match=r"no law is left after example 2 of prompt \(1,\), x = 1\., y = 3\."):
        icl.bayes.mixture([x, x], [y, 3 * x], [5.0, 5.0], laws, prior=[1, 1, 1, 0], at="next")
    with pytest.raises(ValueError, match="no law is left at the query: its token has probability 0"):
        icl.bayes.mixture(x, y, 11.0, laws)


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize(("shape", "length"), [((), 0), ((0,), 3), ((2, 0), 0), ((2, 1), 1)])
def test_any_leading_shape(shape, length, at):
    columns = () if at == "query" else (length + 1,)
    for token, label, family in (((2,), (), "linear"), ((), (2,), "tables")):
        x = np.zeros((*shape, length, *token), dtype=int)
        y = np.broadcast_to(VECTOR[0] if label else 0.0, (*shape, length, *label))
        found = icl.bayes.mixture(x, y, np.zeros((*shape, *token), dtype=int), FAMILIES[family], at=at)
        assert found.weights.shape == (*shape, *columns, 3)
        assert found.mean.shape == found.variance.shape == (*shape, *columns, *label)
        assert found.expected_error.shape == found.most_likely.shape == (*shape, *columns)


def test_the_page_about_words():
    """The page's laws, with its posterior for a prompt and its risk counted out word by word."""
    page: dict = {}
    source = doctest.DocTestParser().get_examples(PAGE.read_text())
    for example in source[: 1 + next(i for i, e in enumerate(source) if e.source.startswith("languages ="))]:
        exec(example.source, page)
    tables = {name: dict(zip(page["ENGLISH"], words.split(), strict=True)) for name, words in page["TABLES"].items()}
    everything, slip = sorted({word for table in tables.values() for word in table.values()}), page["SLIP"]
    assert everything == list(page["WORDS"])

    def chance(table, english, word):
        return 1 - slip if table[english] == word else slip / (len(everything) - 1)

    prompt = [("yes", "ja"), ("day", "dag"), ("night", "natt"), ("no", "oui")]
    found = icl.bayes.mixture(*zip(*prompt, strict=True), "water", page["languages"], at="prefixes")
    for m in range(5):
        products = [math.prod(chance(t, *pair) for pair in prompt[:m]) for t in tables.values()]
        weights = np.array(products) / sum(products)
        np.testing.assert_allclose(found.weights[m], weights, rtol=1e-11)
        answer = [weights @ [chance(t, "water", word) for t in tables.values()] for word in everything]
        np.testing.assert_allclose(found.mean[m], answer, rtol=1e-11)
        assert sum(answer) == pytest.approx(1.0, abs=1e-12)
        assert found.expected_error[m] == pytest.approx(1 - np.sum(np.square(answer)), rel=1e-11)
    assert found.most_likely[-1] == "Swedish"
    guesses = [
        np.mean([[chance(t, e, w) for w in everything] for t in tables.values()], axis=0) for e in page["ENGLISH"]
    ]
    risk = icl.bayes.bayes_risk(page["languages"], 1, n_prompts=400, rng=0)
    exact = np.mean([1 - np.sum(g**2) for g in guesses])
    assert abs(risk.error[0] - exact) < 4 * risk.standard_error[0]


class Odd(icl.bayes.LinearGaussian):
    """A linear law with one method that answers with something else."""

    def __init__(self, name, answer):
        super().__init__([1.0, 2.0], 0.1)
        object.__setattr__(self, name, lambda *_: answer)

    def log_likelihood(self, x, y):
        return np.zeros(np.shape(y))


GOOD = icl.bayes.LinearGaussian([1.0, 2.0], 0.1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"laws": []}, ValueError, "laws must have at least one law, got none"),
        ({"laws": {"a": GOOD, "b": 3}}, TypeError, "law b must be an instance of a subclass of icl.bayes.Law, got 3"),
        ({"at": "last"}, ValueError, r"at must be one of \('query', 'prefixes', 'next'\), got 'last'"),
        ({"prior": [1.0]}, ValueError, r"prior must have shape \(k,\) = \(2,\), a number for each law, got \[1.0\]"),
        ({"prior": ["1", "2"]}, ValueError, r"prior must have shape .* a number for each law"),
        ({"prior": [0, 0]}, ValueError, r"prior must be finite and >= 0, and > 0 for at least one law, got \[0, 0\]"),
        ({"prior": [1, -1]}, ValueError, "prior must be finite and >= 0"),
        ({"prior": [1, np.inf]}, ValueError, "prior must be finite and >= 0"),
        ({"X": np.zeros((4, 3, 5))}, ValueError, r"tokens must have shape \(..., d\) with d = 2 .*, got \(4, 3, 5\)"),
        ({"y": np.zeros((4, 1))}, ValueError, r"law 0: log_likelihood\(X, y\) must have the leading .* y \(4, 1\)"),
        ({"x_query": np.zeros(2)}, ValueError, r"x_query must have shape \(4, 2\), one token .*, got \(2,\)"),
        ({"y": np.full((4, 3), np.nan)}, ValueError, r"law 0: log_likelihood must be a number or -inf, got nan"),
        ({"laws": [GOOD, Odd("log_likelihood", 1.0)]}, ValueError, r"law 1: log_likelihood\(X, y\) must have shape"),
        ({"laws": [GOOD, Odd("log_likelihood", np.full((4, 3), np.inf))]}, ValueError, "law 1: .*, got inf at index"),
        ({"laws": [GOOD, Odd("log_density", np.zeros((4, 9)))]}, ValueError, r"law 1: log_density .* got \(4, 9\)"),
        ({"laws": [GOOD, Odd("log_density", np.nan)]}, ValueError, "law 1: log_density must be a number or -inf"),
        ({"laws": [GOOD, Odd("mean", np.zeros((4, 1, 3)))]}, ValueError, r"law 1: mean must have shape \(4, 1\)"),
        ({"laws": [GOOD, Odd("variance", np.zeros(4))]}, ValueError, r"law 1: variance must have shape \(4, 1\)"),
        ({"laws": [GOOD, Odd("variance", np.full((4, 1), -1.0))]}, ValueError, "law 1: variance must be >= 0, got -1"),
        ({"laws": {"a": Odd("mean", np.full((4, 1), np.inf))}}, ValueError, "law a: mean must be finite, got inf"),
    ],
)
def test_what_is_refused(change, error, message):
    zeros = {"X": np.zeros((4, 3, 2)), "y": np.zeros((4, 3)), "x_query": np.zeros((4, 2)), "laws": [GOOD, GOOD]}
    with pytest.raises(error, match=message):
        icl.bayes.mixture(**{**zeros, **change})


def test_laws_that_are_refused():
    with pytest.raises(ValueError, match=r"rho must be > 0, got 0 .* icl.bayes.discrete takes that limit"):
        icl.bayes.LinearGaussian([1.0], 0.0)
    with pytest.raises(TypeError, match="rho must be one number"):
        icl.bayes.LinearGaussian([1.0], [0.1, 0.2])
    with pytest.raises(ValueError, match=r"w must have shape \(d,\) with d >= 1, one task, got \(1, 2\)"):
        icl.bayes.Logistic([[1.0, 2.0]])
    with pytest.raises(ValueError, match="w must be finite"):
        icl.bayes.Logistic([np.nan])
    with pytest.raises(ValueError, match="y must be 0 or 1 under a Logistic law, got -1"):
        icl.bayes.Logistic([1.0]).log_likelihood([[1.0]], [-1])
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (icl.bayes.Law,), {"mean": lambda self, x: x})()


class Mute(icl.bayes.Logistic):
    sample = icl.bayes.Law.sample


def test_draws_that_are_refused():
    with pytest.raises(NotImplementedError, match=r"Mute needs a method sample\(n, rng\)"):
        icl.bayes.bayes_risk([Mute([1.0])], 3)
    with pytest.raises(ValueError, match=r"law 0: sample\(12, rng\) must return 12 tokens and labels"):
        icl.bayes.draw_mixture([Odd("sample", (np.zeros(5), np.zeros(5)))], 3, n_prompts=3)
    with pytest.raises(ValueError, match="n_prompts must be >= 2, got 1"):
        icl.bayes.bayes_risk([GOOD], 3, n_prompts=1)
    with pytest.raises(ValueError, match="context_length must be an integer >= 1, got 0"):
        icl.bayes.bayes_risk([GOOD], 0)
    with pytest.raises(ValueError, match="laws must have finite variances"):
        icl.bayes.bayes_risk([Infinite([1.0, 2.0], 0.1)], 3, rng=0)


class Infinite(icl.bayes.LinearGaussian):
    def variance(self, x):
        return np.full(np.shape(x)[:-1], np.inf)
