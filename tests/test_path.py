"""The ridge path against one dense fit a ridge."""

import numpy as np
import pytest

from icltheory.simulate import ridge_path, ridge_regression

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


def test_ten_ridges_take_the_directions_of_one():
    x, r, y = draw(40, 3200)
    n = 3200
    path = ridge_path(x, r, y, [n / 40 * ridge for ridge in np.geomspace(1e-6, 10, 10)])
    assert {report.name for _, report in path} == {"path"}
    (shared,) = {report.steps for _, report in path}
    alone = ridge_regression(x, r, y, n / 40 * 1e-6, method="cg")[1].steps
    assert shared < 2 * alone
    assert max(report.residual for _, report in path) <= 1e-8


def test_where_whitening_saves_more_every_ridge_is_fitted_alone():
    from icltheory.points import Point
    from icltheory.prompts import sample_summaries

    point = Point.of(d=20, tau=3, alpha=50, kappa=0.5, rho=0.01)
    data = sample_summaries(point, "sphere", np.random.default_rng(0))
    path = ridge_path(data.query, data.context, data.target, [1e-4, 1.0])
    assert "path" not in {report.name for _, report in path}
    assert max(report.residual for _, report in path) <= 1e-8


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
