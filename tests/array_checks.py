"""Checks of the operator and the solvers on arrays of another library, shared by the CPU tests and tests/gpu."""

import numpy as np

from icltheory.points import Point
from icltheory.prompts import sample_summaries
from icltheory.simulate import ridge_path, ridge_regression
from icltheory.simulate.khatri_rao import KhatriRao


def draw(d, n, *, seed=0):
    point = Point.of(d=d, n_sequences=n, alpha=1.0, kappa=1.0, rho=0.01)
    data = sample_summaries(point, "sphere", np.random.default_rng(seed))
    return data.query, data.context, data.target


def check_operator(convert, back):
    x, r, u = draw(12, 3000)
    g = np.random.default_rng(1).standard_normal((12, 13))
    here, there = KhatriRao(x, r), KhatriRao(convert(x), convert(r))
    pairs = [
        (here.forward(g), there.forward(convert(g))),
        (here.adjoint(u), there.adjoint(convert(u))),
        (here.normal(g), there.normal(convert(g))),
        (here.row_norms(), there.row_norms()),
    ]
    for expected, found in pairs:
        np.testing.assert_allclose(back(found), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def check_fits(convert, back):
    """Conjugate gradients on both sides of the threshold, and a direct solver, which runs on the host."""
    for d, n, penalty, method in ((30, 2000, 1e-4, "cg"), (30, 500, 1e-4, "cg"), (12, 156, 1e-6, "auto")):
        x, r, y = draw(d, n)
        expected, _ = ridge_regression(x, r, y, penalty, method=method, tol=1e-11)
        found, report = ridge_regression(convert(x), convert(r), convert(y), penalty, method=method, tol=1e-11)
        assert type(found) is type(convert(x))
        assert report.residual <= 1e-11 or report.name != "cg"
        assert np.linalg.norm(back(found) - expected) < 1e-8 * np.linalg.norm(expected)


def check_path(convert, back):
    x, r, y = draw(20, 1000)
    penalties = [1.0, 1e-3, 100.0]
    for (expected, _), (found, report) in zip(
        ridge_path(x, r, y, penalties), ridge_path(convert(x), convert(r), convert(y), penalties), strict=True
    ):
        assert report.residual <= 1e-8
        assert np.linalg.norm(back(found) - expected) < 1e-6 * np.linalg.norm(expected)


ALL = (check_operator, check_fits, check_path)
