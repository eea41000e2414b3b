"""Kernels as arguments of the theory: the same numbers as their statistics, axes, lengths, and a warning."""

import numpy as np
import pytest

import icltheory as icl
from icltheory.theory import CorrelationWarning, correlated_context, linear_attention

AT = {"tau": 2.0, "kappa": 2.0, "rho": 0.1, "ridge": 0.01}
CHAINS = [icl.Kernel.exponential(xi, 128) for xi in (0.0, 1.0, 4.0)]


def same(found, expected):
    for name in ("icl", "idg", "train", "gap", "effective_ridge"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("query", ["independent", "next"])
def test_a_list_of_kernels_is_an_axis(query):
    alpha = np.array([[2.0], [4.0]])
    found = linear_attention(alpha=alpha, kernel=CHAINS, query=query, **AT)
    assert found.icl.shape == (2, 3)
    for j, chain in enumerate(CHAINS):
        s = chain.statistics(query)
        one = linear_attention(alpha=alpha[:, 0], kernel=chain, query=query, **AT)
        same(one, correlated_context(alpha=alpha[:, 0], k0=s.k0, k1=s.k1, k2=s.k2, **AT))
        np.testing.assert_array_equal(found.icl[:, j], one.icl)
    np.testing.assert_allclose(found.icl[:, 0], linear_attention(alpha=alpha[:, 0], **AT).icl, rtol=1e-13)


def test_an_independent_query_is_a_shorter_context():
    chain = icl.Kernel.exponential(3.0, 128)
    shorter = 4.0 * float(chain.effective_length(0.1)) / 128
    a, b = linear_attention(alpha=4.0, kernel=chain, **AT), linear_attention(alpha=shorter, **AT)
    np.testing.assert_allclose([a.icl, a.idg, a.train], [b.icl, b.idg, b.train], rtol=1e-12)


def test_other_prompts_in_the_test():
    train, test = icl.Kernel.exponential(2.0, 128), icl.Kernel.exponential(5.0, 256)
    s, t = train.statistics("next"), test.statistics("independent")
    found = linear_attention(alpha=4.0, kernel=train, query="next", test_kernel=test, test_query="independent", **AT)
    statistics = {"k0": s.k0, "k1": s.k1, "k2": s.k2, "test_k0": t.k0, "test_k1": t.k1, "test_k2": t.k2}
    same(found, correlated_context(alpha=4.0, test_alpha=8.0, **statistics, **AT))
    same(found, linear_attention(d=32, kernel=train, query="next", test_kernel=test, test_query="independent", **AT))
    # from independent tokens to a chain, at the same length
    plain = linear_attention(alpha=4.0, test_kernel=icl.Kernel.exponential(0.0, 7), **AT)
    np.testing.assert_allclose(plain.icl, linear_attention(alpha=4.0, **AT).icl, rtol=1e-13)
    harder = linear_attention(alpha=4.0, test_kernel=icl.Kernel.exponential(3.0, 128), **AT)
    assert harder.icl > plain.icl
    assert harder.train == pytest.approx(plain.train, rel=1e-13)


def test_a_kernel_brings_its_context_length():
    chain = icl.Kernel.exponential(2.0, 128)
    found = linear_attention(d=32, kernel=chain, **AT)
    same(found, linear_attention(alpha=4.0, kernel=chain, **AT))
    same(found, linear_attention(d=32, alpha=4.0, kernel=chain, **AT))
    with pytest.raises(
        ValueError, match="kernel must have the context length of the prompts, 64, got 128; leave alpha"
    ):
        linear_attention(d=32, alpha=2.0, kernel=chain, **AT)


def test_the_theory_is_what_is_simulated():
    """d = 32, sphere tasks: within 4 standard errors and 3/d, the known size of the finite-d effect."""
    chain, test = icl.Kernel.exponential(2.0, 64), icl.Kernel.exponential(4.0, 96)
    prompts = {"kernel": chain, "query": "next", "test_kernel": test, **AT, "ridge": 0.1}
    for more in ({}, {"test_query": "independent"}):
        runs = [icl.simulate.linear_attention(d=32, rng=seed, **prompts, **more) for seed in range(6)]
        law = linear_attention(d=32, **prompts, **more)
        for target in ("icl", "idg", "train"):
            values = np.array([getattr(run, target) for run in runs])
            error = values.std(ddof=1) / np.sqrt(len(values))
            assert abs(values.mean() / getattr(law, target) - 1) < 4 * error / values.mean() + 3 / 32
        assert runs[0].test_context_length == 96


def test_the_query_gain_of_kernels():
    gain = icl.theory.query_gain(alpha=4.0, kernel=CHAINS, **AT)
    apart = [linear_attention(alpha=4.0, kernel=CHAINS, query=query, **AT).icl for query in ("independent", "next")]
    np.testing.assert_allclose(gain, apart[0] - apart[1], rtol=1e-9, atol=1e-12)
    profile = np.zeros(128)
    profile[-1] = 0.5
    own = icl.theory.query_gain(alpha=4.0, kernel=CHAINS[1], query=profile, target="idg", **AT)
    s = CHAINS[1].statistics(profile)
    assert own == icl.theory.query_gain(alpha=4.0, k0=s.k0, k1=s.k1, k2=s.k2, target="idg", **AT)
    for wrong in ({}, {"k0": 0.1, "k1": 0.1}, {"kernel": CHAINS, "k0": 0.1, "k1": 0.1, "k2": 1.0}):
        with pytest.raises(TypeError, match="give a kernel, or k0, k1 and k2"):
            icl.theory.query_gain(alpha=4.0, **wrong, **AT)


def test_outside_the_weak_regime_there_is_a_warning():
    weak, strong = icl.Kernel.exponential(2.0, 128), icl.Kernel.exponential(200.0, 128)
    with pytest.warns(
        CorrelationWarning, match=r"not weak but strong \(exponential, xi = 200, 128 tokens, and 1 more\)"
    ) as caught:
        linear_attention(alpha=4.0, kernel=[weak, strong, strong], **AT)
    assert caught[0].message.regime.name == "strong"
    assert caught[0].message.kernel is strong
    assert caught[0].filename == __file__  # it points at the caller
    slow = icl.Kernel.power_law(0.6, 128)
    with pytest.warns(CorrelationWarning, match="k1 grows without bound"):
        linear_attention(alpha=4.0, kernel=slow, query="next", **AT)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kernel": "chain"}, TypeError, "kernel must be a Kernel or a list of them, got 'chain'"),
        ({"kernel": []}, TypeError, r"kernel must be a Kernel or a list of them, got \[\]"),
        ({"kernel": CHAINS, "query": "last"}, ValueError, 'query must be "independent", "next" or a vector'),
        ({"query": "nxt"}, ValueError, 'query needs a kernel unless it is "independent" or "next", got \'nxt\''),
        ({"test_kernel": CHAINS[1], "query": [0.1]}, ValueError, "query needs a kernel unless it is"),
    ],
)
def test_what_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        linear_attention(alpha=4.0, **arguments, **AT)
