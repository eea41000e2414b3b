"""The ridge path against one dense fit a ridge."""

import numpy as np
import pytest

from icltheory.points import Point
from icltheory.prompts import sample_summaries
from icltheory.simulate import ridge_path, ridge_regression
from icltheory.simulate.path import _guess

from .array_checks import draw
from .reference import dense_fit

RIDGES = [1e-6, 1e-3, 0.1, 10.0]


@pytest.mark.parametrize("n", [200, 400, 500, 1200])
def test_every_ridge_of_a_path_is_the_dense_answer(n):
    x, r, y = draw(20, n)
    penalties = [n / 20 * ridge for ridge in (RIDGES[2], *RIDGES)]  # in no order, and one twice
    for penalty, (g, report) in zip(penalties, ridge_path(x, r, y, penalties, tol=1e-11), strict=True):
        expected = dense_fit(x, r, y, penalty)
        assert np.linalg.norm(g - expected) < 1e-8 * np.linalg.norm(expected)
        assert report.residual <= 1e-11 or report.name != "path"


@pytest.mark.parametrize("n", [500, 2000, 6000])
@pytest.mark.parametrize("tol", [1e-5, 1e-8, 1e-11])
def test_reported_residuals_are_those_of_the_answers(n, tol):
    x, r, y = draw(40, n)
    features = (x[:, :, None] * r[:, None, :]).reshape(n, -1)
    right = features.T @ y
    penalties = [n / 40 * ridge for ridge in np.geomspace(1e-2, 10, 10)]
    for penalty, (g, report) in zip(penalties, ridge_path(x, r, y, penalties, tol=tol), strict=True):
        assert report.name == "path"
        residual = right - features.T @ (features @ g.ravel()) - penalty * g.ravel()
        true = np.linalg.norm(residual) / np.linalg.norm(right)
        assert true - 1e-14 <= report.residual <= true + 0.3 * tol  # 1e-14: rounding
        assert report.residual <= tol


def test_ten_ridges_take_the_directions_of_one():
    x, r, y = draw(40, 3200)
    n = 3200
    path = ridge_path(x, r, y, [n / 40 * ridge for ridge in np.geomspace(1e-6, 10, 10)])
    assert {report.name for _, report in path} == {"path"}
    (shared,) = {report.steps for _, report in path}
    alone = ridge_regression(x, r, y, n / 40 * 1e-6, method="cg")[1].steps
    assert shared < 2 * alone
    assert max(report.residual for _, report in path) <= 1e-8


def test_where_whitening_saves_more_every_fit_begins_at_what_the_others_tell():
    point = Point.of(d=36, tau=2, alpha=30, kappa=0.5, rho=0.01)
    data = sample_summaries(point, "sphere", np.random.default_rng(0))
    arrays = data.query, data.context, data.target
    penalties = [point.n_sequences / 36 * ridge for ridge in np.geomspace(1e-6, 10, 10)]
    path = ridge_path(*arrays, penalties[::-1])[::-1]
    alone = [ridge_regression(*arrays, penalty) for penalty in penalties]
    assert {report.name for _, report in path + alone} == {"cg"}
    assert max(report.residual for _, report in path) <= 1e-8
    assert sum(report.steps for _, report in path) < 0.7 * sum(report.steps for _, report in alone)
    for (g, _), (expected, _) in zip(path, alone, strict=True):
        assert np.linalg.norm(g - expected) < 1e-5 * np.linalg.norm(expected)


def test_a_guess_is_the_best_combination_of_the_answers_so_far():
    x, r, y = draw(10, 300)
    features = (x[:, :, None] * r[:, None, :]).reshape(300, -1)
    right, normal = features.T @ y, features.T @ features
    known = {mu: dense_fit(x, r, y, mu) for mu in (0.1, 3.0, 50.0)}
    basis = np.stack([g.ravel() for g in known.values()], axis=1)
    best = basis @ np.linalg.lstsq(normal @ basis + 8.0 * basis, right)[0]
    guess = _guess(right.reshape(10, 11), known, 8.0)
    np.testing.assert_allclose(guess.ravel(), best, rtol=0, atol=1e-8 * np.abs(best).max())
    assert _guess(right.reshape(10, 11), {}, 8.0) is None


def test_conjugate_gradients_from_a_guess():
    x, r, y = draw(20, 1500)
    answer, cold = ridge_regression(x, r, y, 1.0, method="cg")
    again, warm = ridge_regression(x, r, y, 1.0, method="cg", start=answer)
    assert warm.steps == 0
    assert warm.residual == pytest.approx(cold.residual, rel=1e-3)
    np.testing.assert_array_equal(again, answer)
    noise = np.random.default_rng(0).standard_normal(answer.shape)
    near, report = ridge_regression(x, r, y, 1.0, method="cg", start=answer + 1e-4 * noise)
    assert 0 < report.steps < 0.8 * cold.steps
    assert report.residual <= 1e-8
    assert np.linalg.norm(near - answer) < 1e-6 * np.linalg.norm(answer)
    far, report = ridge_regression(x, r, y, 1.0, method="cg", start=1e6 * noise)
    assert report.residual <= 1e-8
    assert np.linalg.norm(far - answer) < 1e-6 * np.linalg.norm(answer)


def test_at_the_threshold_a_path_falls_back():
    x, r, y = draw(20, 420)
    (g, report), (_, easy) = ridge_path(x, r, y, [1e-6, 100.0], max_steps=100)
    assert report.name == "primal"
    assert easy.residual <= 1e-8
    assert np.linalg.norm(g - dense_fit(x, r, y, 1e-6)) < 1e-8 * np.linalg.norm(g)


def test_a_path_of_simulations_is_a_list_of_simulations():
    import icltheory as icl

    point = {"d": 16, "tau": 1.8, "alpha": 1.0, "kappa": 0.5, "rho": 0.1, "test_context_length": 30, "rng": 4}
    ridges = [1.0, 1e-4, 0.0]
    path = icl.simulate.linear_attention_path(ridges=ridges, **point, tol=1e-11)
    for ridge, sim in zip(ridges, path, strict=True):
        alone = icl.simulate.linear_attention(ridge=ridge, **point)
        assert sim.point == alone.point
        for target in ("icl", "idg", "train"):
            assert getattr(sim, target) == pytest.approx(getattr(alone, target), rel=1e-7)
    with pytest.raises(ValueError, match="ridge must be >= 0 and finite, got -1"):
        icl.simulate.linear_attention_path(ridges=[1.0, -1], **point)


def test_edges():
    x, r, y = draw(6, 30)
    assert ridge_path(x, r, y, []) == []
    ((g, report),) = ridge_path(x, r, 0 * y, [0.1])
    assert not g.any()
    assert report.residual == 0
    with pytest.raises(ValueError, match="penalties must be >= 0, got -1"):
        ridge_path(x, r, y, [1.0, -1])
