"""Checks of the operator and the solvers on arrays of another library, shared by the CPU tests and tests/gpu."""

import itertools

import numpy as np

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts import sample_summaries
from icltheory.simulate import ridge_path, ridge_regression
from icltheory.simulate.khatri_rao import KhatriRao


def draw(d, n, *, seed=0):
    point = Point.of(d=d, n_sequences=n, alpha=1.0, kappa=1.0, rho=0.01)
    data = sample_summaries(point, "sphere", np.random.default_rng(seed))
    return data.query, data.context, data.target


def check_operator(convert, back):
    """Both where blocks are worked through whole and where they are stacks of slices (on the host)."""
    for d, n in ((12, 3000), (40, 2100)):
        x, r, u = draw(d, n)
        g = np.random.default_rng(1).standard_normal((d, d + 1))
        f, there = (x[:, :, None] * r[:, None, :]).reshape(n, -1), KhatriRao(convert(x), convert(r))
        pairs = [
            (f @ g.ravel(), there.forward(convert(g))),
            ((f.T @ u).reshape(d, d + 1), there.adjoint(convert(u))),
            ((f.T @ (f @ g.ravel())).reshape(d, d + 1), there.normal(convert(g))),
            ((f**2).sum(axis=1), there.row_norms()),
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
    """From one space, and one by one where tasks are too unlike."""
    alike = draw(20, 1000)
    unlike = sample_summaries(
        Point.of(d=20, n_sequences=1000, alpha=50.0, kappa=0.5, rho=0.01), "sphere", np.random.default_rng(0)
    )
    penalties = [1.0, 1e-3, 100.0]
    _check_path(convert, back, alike, penalties)
    _check_path(convert, back, (unlike.query, unlike.context, unlike.target), penalties)


def _check_path(convert, back, arrays, penalties):
    x, r, y = arrays
    for (expected, _), (found, report) in zip(
        ridge_path(x, r, y, penalties), ridge_path(convert(x), convert(r), convert(y), penalties), strict=True
    ):
        assert report.residual <= 1e-8
        assert np.linalg.norm(back(found) - expected) < 1e-6 * np.linalg.norm(expected)


def check_bayes(convert, back):
    """Both estimators, at the query and at every prefix, with examples that depend on each other and a prior."""
    rng = np.random.default_rng(0)
    x, y, query, tasks = (rng.standard_normal(shape) for shape in ((5, 9, 4), (5, 9), (5, 4), (30, 4)))
    x[0, 1] = x[0, 0]
    prior = np.arange(30.0)
    there = [convert(a) for a in (x, y, query)]
    for at, rho in itertools.product(("query", "prefixes", "next"), (0.1, 0.0)):
        pairs = [
            (icl.bayes.ridge(x, y, query, rho, at=at), icl.bayes.ridge(*there, rho, at=at)),
            (
                icl.bayes.discrete(x, y, query, tasks, rho, prior=prior, at=at, max_bytes=1000),
                icl.bayes.discrete(*there, convert(tasks), rho, prior=convert(prior), at=at),
            ),
        ]
        if at != "next":
            weights = icl.bayes.posterior(there[0], there[1], convert(tasks), rho, at=at)
            pairs.append((icl.bayes.posterior(x, y, tasks, rho, at=at), weights))
        for expected, found in pairs:
            assert type(found) is type(there[0])
            np.testing.assert_allclose(back(found), expected, rtol=1e-10, atol=1e-10)


ALL = (check_operator, check_fits, check_path, check_bayes)
