"""The operator and the three solvers against materialised features and their SVD."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import icltheory as icl
import icltheory.simulate.khatri_rao as khatri_rao
from icltheory.points import Point
from icltheory.prompts import sample_summaries
from icltheory.simulate import SolverError, ridge_regression
from icltheory.simulate.khatri_rao import KhatriRao

from .reference import dense_fit, features


def draw(d, n, seed=0, **kwargs):
    arguments = {"alpha": 1.0, "kappa": 1.0, "rho": 0.01, **kwargs}
    point = Point.of(d=d, n_sequences=n, **arguments)
    data = sample_summaries(point, "sphere", np.random.default_rng(seed))
    return data.query, data.context, data.target


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("n", "cache"), [(1, 1 << 20), (1000, 1 << 14), (1000, 1 << 20), (3000, 1 << 15)])
def test_operator_against_the_matrix(n, cache, threads, monkeypatch):
    monkeypatch.setattr(khatri_rao, "_CACHE_BYTES", cache)
    rng = np.random.default_rng(0)
    x, r = rng.standard_normal((n, 5)), rng.standard_normal((n, 6))
    g, u = rng.standard_normal((5, 6)), rng.standard_normal(n)
    f, operator = features(x, r), KhatriRao(x, r)
    assert operator.shape == f.shape
    with operator.parallel(threads):
        np.testing.assert_allclose(operator.forward(g), f @ g.ravel(), atol=1e-12)
        np.testing.assert_allclose(operator.adjoint(u).ravel(), f.T @ u, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(operator.normal(g).ravel(), f.T @ (f @ g.ravel()), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(operator.row_norms(), (f**2).sum(axis=1))
    np.testing.assert_allclose(np.tril(operator.dual_gram()), np.tril(f @ f.T), atol=1e-11)
    np.testing.assert_allclose(np.concatenate(list(operator.feature_blocks())), f)


def test_operator_is_bitwise_free_of_the_thread_count():
    x, r, _ = draw(20, 5000)
    operator = KhatriRao(x, r)
    g = np.random.default_rng(0).standard_normal((20, 21))
    alone = operator.normal(g)
    for threads in (2, 5):
        with operator.parallel(threads):
            np.testing.assert_array_equal(operator.normal(g), alone)


P24 = 24 * 25


def applicable():
    """Every solver, size and ridge but those where the solver's own matrix is singular or nearly so."""
    for n in (P24 // 3, P24 - 30, P24, P24 + 30, 2 * P24):
        for ridge in (1e-8, 1e-4, 0.1, 10.0):
            yield "auto", n, ridge
            yield "svd", n, ridge
            if ridge > 1e-3 or n <= P24:
                yield "dual", n, ridge
            if ridge > 1e-3 or n >= P24:
                yield "primal", n, ridge
            # near the threshold iterations have a test of their own: to be right or to say that they fail
            if ridge > 1e-3 or abs(n - P24) > 30:
                yield "cg", n, ridge


@pytest.mark.parametrize(("method", "n", "ridge"), list(applicable()))
def test_solvers_agree_with_the_dense_reference(method, n, ridge):
    x, r, y = draw(24, n)
    penalty = n / 24 * ridge
    expected = dense_fit(x, r, y, penalty)
    g, report = ridge_regression(x, r, y, penalty, method=method, tol=1e-12)
    assert np.linalg.norm(g - expected) < 1e-8 * np.linalg.norm(expected)
    assert report.name == method or method == "auto"
    assert (report.steps > 0) == (report.name == "cg")
    assert report.residual < 1e-9


@pytest.mark.parametrize("d", [5, 12, 24])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_at_the_threshold_the_answer_is_the_dense_one(d, over):
    """Published code stops early here: 306 is reported where the exact error is 950 (facts/peers.md)."""
    n = d * (d + 1) + over
    for seed in range(3):
        x, r, y = draw(d, n, seed)
        penalty = n / d * 1e-8
        expected = dense_fit(x, r, y, penalty)
        g, _ = ridge_regression(x, r, y, penalty)
        assert np.linalg.norm(g - expected) < 1e-8 * np.linalg.norm(expected)


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("tol", [1e-8, 1e-12])
def test_conjugate_gradients_never_stop_early_in_silence(over, tol):
    """At the threshold they raise, or reach the residual asked for, measured independently of the solver."""
    n = P24 + over
    x, r, y = draw(24, n)
    penalty = n / 24 * 1e-8
    f = features(x, r)
    try:
        g, report = ridge_regression(x, r, y, penalty, method="cg", tol=tol)
    except SolverError:
        return
    slope = f.T @ (y - f @ g.ravel()) - penalty * g.ravel()
    residual = np.linalg.norm(slope) / np.linalg.norm(f.T @ y)
    assert residual < 1.01 * tol
    assert report.residual == pytest.approx(residual, rel=1e-3)


def test_giving_up_is_an_error_that_says_what_to_do():
    x, r, y = draw(24, P24 + 10)
    with pytest.raises(SolverError, match=r"did not reach .* in 20 steps .* raise the ridge, max_steps or tol, or use"):
        ridge_regression(x, r, y, 1e-9, method="cg", max_steps=20)
    x, r, y = draw(6, 30)
    twice = [np.concatenate([part, part]) for part in (x, r, y)]
    with pytest.raises(SolverError, match="raise the ridge"):
        ridge_regression(*twice, 0.0, method="dual")


def test_ridgeless_below_the_threshold_is_the_minimum_norm():
    x, r, y = draw(24, 300)
    expected = dense_fit(x, r, y, 0.0)
    for method in ("dual", "cg"):
        g, _ = ridge_regression(x, r, y, 0.0, method=method, tol=1e-12)
        assert np.linalg.norm(g - expected) < 1e-8 * np.linalg.norm(expected)


def test_auto_takes_a_direct_solver_where_iterations_are_dear():
    """d = 40 at the threshold: iterations are tried, foreseen to take too long, and the dense answer returned."""
    n = 40 * 41
    x, r, y = draw(40, n)
    g, report = ridge_regression(x, r, y, n / 40 * 1e-8)
    assert report.name == "primal"
    assert report.steps > 0
    assert report.residual < 1e-12
    assert np.linalg.norm(g - dense_fit(x, r, y, n / 40 * 1e-8)) < 1e-8 * np.linalg.norm(g)


def test_auto_iterates_where_that_is_cheap():
    sim = icl.simulate.linear_attention(d=50, tau=1.6, alpha=1, kappa=1, rho=0.01, ridge=1e-6, rng=0)
    direct = icl.simulate.linear_attention(
        d=50, tau=1.6, alpha=1, kappa=1, rho=0.01, ridge=1e-6, rng=0, method="primal"
    )
    assert (sim.solver.name, direct.solver.name) == ("cg", "primal")
    assert 30 < sim.solver.steps < 200
    for target in ("icl", "idg", "train"):
        assert getattr(sim, target) == pytest.approx(getattr(direct, target), rel=1e-7)


@pytest.mark.parametrize("method", ["cg", "dual", "primal", "auto"])
def test_results_do_not_depend_on_threads(method):
    def run(threads):
        with threadpool_limits(threads, user_api="blas"):
            return icl.simulate.linear_attention(
                d=26, tau=1.05, alpha=1, kappa=0.5, rho=0.01, ridge=1e-4, rng=0, method=method
            )

    one, many = run(1), run(2)
    for target in ("icl", "idg", "train"):
        assert getattr(one, target) == pytest.approx(getattr(many, target), rel=1e-10)
    np.testing.assert_allclose(one.gamma, many.gamma, rtol=1e-9, atol=1e-10 * np.abs(one.gamma).max())


@pytest.mark.parametrize(("n", "alpha"), [(60 * 60, 1.0), (45 * 60, 10.0), (48 * 48 // 2, 1.0)])
def test_results_do_not_depend_on_the_block_size(n, alpha, monkeypatch):
    """To 1e-10, once the fit itself is solved that far: blocks change the rounding of single-precision products."""
    point = {"d": 48, "n_sequences": n, "alpha": alpha, "kappa": 0.5, "rho": 0.01, "ridge": 1e-6}

    def run(cache, panels):
        monkeypatch.setattr(khatri_rao, "_CACHE_BYTES", cache)
        monkeypatch.setattr(khatri_rao, "_PANELS", panels)
        return icl.simulate.linear_attention(**point, rng=0, method="cg", tol=1e-11)

    first = run(1 << 21, 8)
    for cache, panels in ((1 << 16, 8), (1 << 18, 3), (1 << 24, 1)):
        other = run(cache, panels)
        assert (other.icl, other.idg) == pytest.approx((first.icl, first.idg), rel=1e-10)


def test_where_the_gram_matrix_is_singular_the_svd_answers():
    """Two equal prompts with different labels: no interpolation, no Cholesky factor; least squares of minimum norm."""
    x, r, y = draw(12, 12 * 13)
    x[1], r[1] = x[0], r[0]
    g, report = ridge_regression(x, r, y, 0.0)
    assert report.name == "svd"
    expected = np.linalg.lstsq(features(x, r), y, rcond=1e-13)[0]
    np.testing.assert_allclose(g.ravel(), expected, atol=1e-8 * np.abs(expected).max())


def test_nothing_to_fit():
    x, r, y = draw(6, 30)
    for method in ("cg", "dual", "auto"):
        g, report = ridge_regression(x, r, 0 * y, 0.1, method=method)
        assert not g.any()
        assert report.residual == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "lu"}, "method must be one of .*, got 'lu'"),
        ({"penalty": -1.0}, "penalty must be >= 0, got -1.0"),
        ({"penalty": np.nan}, "penalty must be >= 0, got nan"),
        ({"tol": 0}, "tol must be > 0, got 0"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(ValueError, match=words):
        ridge_regression(*draw(3, 5), **{"penalty": 0.1, **options})
