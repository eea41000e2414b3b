"""Both conventions describe one problem: prompts drawn in each by hand, and the estimators on them."""

import numpy as np
import pytest

import icltheory as icl
from icltheory.conventions import SCALED, UNSCALED, convention


def test_prompts_in_the_other_convention_are_those_of_its_own_sampler():
    """x ~ N(0, I), w ~ N(0, I), y = w.x + sigma e, drawn as Raventos et al. do, against our prompts times the scale."""
    d, sigma, rng = 8, 0.5, np.random.default_rng(0)
    n = 200_000
    w, x = rng.standard_normal((2, n, d))
    y = (w * x).sum(axis=1) + sigma * rng.standard_normal(n)
    rho = float(UNSCALED.rho(sigma, d))
    prompts = next(
        icl.prompts.stream_prompts(
            d=d, context_length=1, n_sequences=n, kappa=np.inf, rho=rho, tasks="gaussian", rng=0, batch_size=n
        )
    )
    scale = float(UNSCALED.scale(d))
    theirs, ours = (x[:, 0], y), (scale * prompts.query[:, 0], scale * prompts.target)
    for a, b in zip(theirs, ours, strict=True):
        for power in (2, 4):
            pair = np.array([a**power, b**power])
            error = np.sqrt((pair.var(axis=1) / n).sum())
            assert abs(np.subtract(*pair.mean(axis=1))) < 4 * error
        assert a.var() == pytest.approx(b.var(), rel=0.02)  # a scale that is off by 5 % is seen


@pytest.mark.parametrize("each", [SCALED, UNSCALED], ids=lambda each: each.name)
def test_the_bayes_estimators_make_the_same_of_both(each):
    d, rho = 6, 0.1
    batch = next(icl.prompts.stream_prompts(d=d, context_length=9, n_sequences=40, n_tasks=5, rho=rho, rng=0))
    scale, penalty = float(each.scale(d)), float(each.sigma(rho, d)) ** 2
    x, y, query = scale * batch.x, scale * batch.y, scale * batch.query
    tasks = np.unique(batch.task, axis=0)
    for ours, theirs in (
        (icl.bayes.ridge(batch.x, batch.y, batch.query, rho), icl.bayes.ridge(x, y, query, penalty)),
        (
            icl.bayes.discrete(batch.x, batch.y, batch.query, tasks, rho),
            icl.bayes.discrete(x, y, query, tasks, penalty),
        ),
    ):
        np.testing.assert_allclose(theirs / scale, ours, atol=1e-12)
        error, their_error = np.mean((ours - batch.target) ** 2), np.mean((theirs - scale * batch.target) ** 2)
        assert each.error(error, d) == pytest.approx(their_error, rel=1e-12)
        assert each.our_error(their_error, d) == pytest.approx(error, rel=1e-12)


def test_there_and_back():
    d, rho = np.array([3, 8, 50]), np.array([[0.0], [0.1]])
    for each in (SCALED, UNSCALED):
        np.testing.assert_allclose(each.rho(each.sigma(rho, d), d), np.broadcast_to(rho, (2, 3)), rtol=1e-15)
        assert convention(each.name) is each


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"convention must be one of .*, got 'raw' .*\"unscaled\": x ~ N\(0, I\)"):
        convention("raw")
    with pytest.raises(ValueError, match=r"sigma must be >= 0 and finite, got -1"):
        UNSCALED.rho(-1.0, 3)
    with pytest.raises(ValueError, match=r"d must be an integer >= 1, got 0"):
        UNSCALED.scale(0)
