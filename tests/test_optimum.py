"""Optima against brute force; certificates against polynomials with known roots; edges against closed forms."""

import itertools
import math

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.optimize import brentq

import icltheory as icl
from icltheory.theory.bernstein import add, evaluate, line, multiply, roots, slope
from icltheory.theory.context_scan import rising
from icltheory.theory.rational import ContextCurve, RidgeCurve

theory = icl.theory.linear_attention
INF = math.inf
RHOS = [0.05, 0.1, 0.25, 0.5, 1.0]


def from_roots(*where):
    return multiply(*(line(np.array(-r), np.array(1.0 - r)) for r in where))


@pytest.mark.parametrize(
    "where", [(0.3,), (0.3, 0.31), (0.1, 0.5, 0.9), (1e-9, 1 - 1e-9), (0.2, 0.2001, 0.2003, 0.7), (-0.5, 0.4, 1.5), ()]
)
def test_polynomial_roots_are_counted_and_found(where):
    p = multiply(from_roots(*where), np.array([1.0, -0.5, 1.0])) if where else np.array([1.0, -0.5, 1.0])
    found = roots(p[None], np.full((1, len(p)), 1e-16))
    inside = sorted(r for r in where if 0 < r < 1)
    order = np.argsort(found.low)
    assert found.certified.all()
    np.testing.assert_allclose(found.low[order], inside, rtol=1e-9)
    assert np.all(found.low <= found.high)
    assert list(found.rising[order]) == [sum(other > r for other in where) % 2 == 0 for r in inside]


def test_a_double_root_is_not_certified():
    p = np.stack([from_roots(0.4, 0.4), from_roots(0.4, 0.6)])
    found = roots(p, np.full(p.shape, 1e-16))
    assert list(found.certified) == [False, True]


def test_bernstein_arithmetic_against_numpy():
    rng = np.random.default_rng(0)
    s = np.linspace(0, 1, 7)

    def power(b):
        n = len(b) - 1
        basis = [math.comb(n, i) * Polynomial([0, 1]) ** i * Polynomial([1, -1]) ** (n - i) for i in range(n + 1)]
        return sum((c * q for c, q in zip(b, basis, strict=True)), Polynomial([0.0]))

    f, g = rng.standard_normal(5), rng.uniform(1, 2, 4)
    np.testing.assert_allclose(evaluate(multiply(f, g), s), power(f)(s) * power(g)(s), atol=1e-13)
    np.testing.assert_allclose(evaluate(add(f, g), s), power(f)(s) + power(g)(s), atol=1e-13)
    p, rounding = slope(f, g)
    expected = power(f).deriv()(s) * power(g)(s) - power(f)(s) * power(g).deriv()(s)
    np.testing.assert_allclose(evaluate(p, s), expected, atol=1e-12)
    assert np.all(rounding > 0)
    assert np.max(rounding) < 1e-11


def random_points(m, seed):
    rng = np.random.default_rng(seed)
    tau, kappa, alpha = (np.exp(rng.uniform(low, high, m)) for low, high in ((-3, 4), (-4, 4), (-3, 6)))
    kappa[::7] = np.minimum(tau, 1)[::7]
    kappa[::11] = INF
    tau[::13] = INF
    return tau, alpha, kappa, rng.choice([0.0, 0.01, 0.5, 2.0], m), rng.uniform(0.01, 0.99, m)


@pytest.mark.parametrize("target", ["icl", "idg"])
def test_rational_forms_are_the_theory(target):
    tau, alpha, kappa, rho, s = random_points(1500, 0)
    curve = ContextCurve.of(tau, kappa, rho, target)
    at = curve.alpha(s)
    law = theory(tau=tau, alpha=at, kappa=kappa, rho=rho)
    ratio = evaluate(curve.numerator, s) / evaluate(curve.denominator, s)
    np.testing.assert_allclose(ratio, getattr(law, target), rtol=1e-11)
    np.testing.assert_allclose(curve.position(at), s, rtol=1e-11)
    assert np.all(np.isposinf(curve.alpha(np.ones_like(s))))
    ridge = RidgeCurve.of(tau, alpha, kappa, rho, target)
    law = theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge.ridge(s))
    ratio = evaluate(ridge.numerator, s) / evaluate(ridge.denominator, s)
    np.testing.assert_allclose(ratio, getattr(law, target), rtol=1e-11)
    np.testing.assert_allclose(ridge.ridge(np.ones_like(s)), 0, atol=0)


@pytest.mark.parametrize("target", ["icl", "idg"])
@pytest.mark.parametrize(("tau", "ridge"), [(0.5, 0.0), (3.0, 0.0), (20.0, 0.0), (0.5, 0.01), (1.0, 0.01), (20.0, 0.1)])
def test_stationary_points_against_a_scan(tau, ridge, target):
    """Every turn of a fine scan is found, with its kind and place; outside scans there is nothing."""
    kappa, rho = np.array([0.1, 0.3, 0.7, 1.05, 1.5, INF])[:, None], np.array([0.0, 0.05, 0.5, 1.0])
    bounds = (1e-2, 1e4)
    found = icl.theory.stationary_points(tau=tau, kappa=kappa, rho=rho, ridge=ridge, target=target, bounds=bounds)
    assert np.all(found.certified) == (ridge == 0)
    alpha = np.geomspace(*bounds, 6000)
    errors = getattr(theory(tau=tau, alpha=alpha, kappa=kappa[..., None], rho=rho[:, None], ridge=ridge), target)
    for i, j in np.ndindex(6, 4):
        steps = np.diff(errors[i, j])
        steps[np.abs(steps) < 3e-14 * errors[i, j, 1:]] = 0
        moving = np.flatnonzero(steps)
        turn = np.flatnonzero(np.sign(steps[moving][1:]) != np.sign(steps[moving][:-1]))
        here = ~np.isnan(found.value[i, j])
        assert len(turn) == here.sum()
        np.testing.assert_allclose(found.value[i, j][here], alpha[moving[turn] + 1], rtol=5e-3)
        assert list(found.minimum[i, j][here]) == list(steps[moving[turn]] < 0)


def test_brackets_hold_a_sign_change_of_the_slope():
    found = icl.theory.stationary_points(tau=20.0, kappa=[0.1, 0.25, 1.1], rho=0.5)
    here = ~np.isnan(found.value)
    assert np.all(found.below[here] <= found.above[here])
    np.testing.assert_allclose(found.above[here] / found.below[here], 1, rtol=1e-12)
    kappa = np.broadcast_to(np.array([[0.1], [0.25], [1.1]]), found.value.shape)[here]
    for minimum, low, high, k in zip(found.minimum[here], found.below[here], found.above[here], kappa, strict=True):
        for end, factor in ((low, 1 - 1e-4), (high, 1 + 1e-4)):
            two = theory(tau=20.0, alpha=[end * factor * 0.99999, end * factor * 1.00001], kappa=k, rho=0.5).icl
            assert (two[1] > two[0]) == ((factor > 1) == minimum)


def test_exact_slope_against_finite_differences():
    tau, alpha, kappa, rho, _ = random_points(300, 1)
    ridge = np.exp(np.random.default_rng(2).uniform(-6, 1, 300))
    for target in ("icl", "idg"):
        up, down = (
            getattr(theory(tau=tau, alpha=alpha * f, kappa=kappa, rho=rho, ridge=ridge), target)
            for f in (1.0001, 0.9999)
        )
        clear = np.abs(up - down) > 1e-9 * up
        assert np.array_equal(rising(alpha, tau, kappa, rho, ridge, target)[clear], (up > down)[clear])


@pytest.mark.parametrize("target", ["icl", "idg"])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_optimal_context_length_against_brute_force(target, ridge):
    tau, kappa, rho = np.array([0.3, 2.5, 20.0])[:, None], np.array([0.1, 0.4, 0.9, 1.1, 2.0]), 0.3
    bounds = (0.05, 300.0)
    best = icl.theory.optimal_context_length(tau=tau, kappa=kappa, rho=rho, ridge=ridge, target=target, bounds=bounds)
    alpha = np.geomspace(*bounds, 20_001)
    errors = getattr(theory(tau=tau[..., None], alpha=alpha, kappa=kappa[:, None], rho=rho, ridge=ridge), target)
    where = errors.argmin(axis=-1)
    np.testing.assert_allclose(best.risk, errors.min(axis=-1), rtol=1e-6)
    np.testing.assert_allclose(best.value, alpha[where], rtol=1e-3)
    assert np.array_equal(best.interior, (where > 0) & (where < 20_000))
    assert np.all(best.risk <= errors.min(axis=-1) * (1 + 1e-13))


def test_ends_are_limits():
    """Without bounds the answer can be no context, or an endless one; the error there is the limit."""
    most = icl.theory.optimal_context_length(tau=0.5, kappa=1.5, rho=0.1)
    assert (most.value, bool(most.monotone), bool(most.interior)) == (INF, True, False)
    assert most.risk == pytest.approx(float(theory(tau=0.5, alpha=1e9, kappa=1.5, rho=0.1).icl), rel=1e-7)
    none = icl.theory.optimal_context_length(tau=3.0, kappa=0.2, rho=7.0)
    assert (none.value, bool(none.monotone)) == (0.0, True)
    assert none.risk == pytest.approx(8 * 1.5, rel=1e-14)
    worse = icl.theory.optimal_context_length(tau=20.0, kappa=0.1, rho=2.0)  # a minimum, but no context is better
    assert worse.value == 0
    assert worse.local_risk > worse.risk
    assert not worse.monotone
    damped = icl.theory.optimal_context_length(tau=0.5, kappa=0.3, rho=0.5, ridge=1e-3)
    law = theory(tau=0.5, alpha=[1e15, float(damped.stationary.value[1])], kappa=0.3, rho=0.5, ridge=1e-3).icl
    assert damped.risk == pytest.approx(law[0], rel=1e-8)
    assert law[1] > 10 * damped.local_risk  # the growth that the ridge ends, at alpha of order 1/ridge
    assert 0.1 < damped.stationary.value[1] * 1e-3 < 10


def test_hundredth_of_a_million_optima_in_seconds():
    """The grid of Fig. 3 of Lu et al.; every answer certified."""
    kappa, rho = np.linspace(0.1, 2.1, 100)[:, None], np.linspace(0.01, 1, 100)
    best = icl.theory.optimal_context_length(tau=0.5, kappa=kappa, rho=rho)
    assert best.stationary.certified.all()
    assert best.value.shape == (100, 100)
    assert np.array_equal(best.monotone, np.isnan(best.local))
    few = np.broadcast_to(kappa < 0.5, best.monotone.shape)
    assert not np.any(best.monotone & few)  # kappa < min(tau, 1) is sufficient here


# edges found by bisection on the closed form with alpha up to 1e6
ICL_EDGE = {0.5: [0.631, 0.698, 0.853, 1.069, 1.451], 20.0: [1.139, 1.186, 1.276, 1.376, 1.521]}
IDG_EDGE = [0.711, 0.803, 1.000, 1.255, 1.683]


@pytest.mark.parametrize("tau", [0.5, 20.0])
def test_icl_boundary(tau):
    edge = icl.theory.non_monotone_boundary(tau=tau, rho=RHOS, kappa_range=(0.05, 5.0))
    assert edge.upper.shape == (5, 1)
    assert edge.certified.all()
    np.testing.assert_allclose(edge.upper[:, 0], ICL_EDGE[tau], atol=6e-4)
    np.testing.assert_allclose(edge.lower[:, 0], 0.05)
    approach = icl.theory.limits.long_context(tau=tau, kappa=edge.upper[:, 0], rho=RHOS).icl_approach
    np.testing.assert_allclose(approach, 0, atol=1e-8)
    if tau > 1:
        w = 1 - 1 / edge.upper[:, 0]
        np.testing.assert_allclose((tau - 1) * w**3 + (1 + np.array(RHOS)) * w**2, RHOS, rtol=1e-9)


def test_idg_boundary():
    tau, rho = 0.5, np.array(RHOS)
    edge = icl.theory.non_monotone_boundary(tau=tau, rho=RHOS, target="idg", kappa_range=(0.05, 5.0))
    low, high = edge.lower[:, 0], edge.upper[:, 0]
    np.testing.assert_allclose(high, IDG_EDGE, atol=6e-4)
    c = 1 / high
    np.testing.assert_allclose(2 * c * rho * (1 - tau), (1 - c * tau) ** 2 * (2 - tau - c * tau), rtol=1e-8)
    np.testing.assert_allclose(2 * low * rho * (1 - tau), (tau - low) ** 2 * (1 - low), rtol=1e-8)
    above = icl.theory.non_monotone_boundary(tau=[1.01, 3.0, INF], rho=0.5, target="idg")
    assert above.lower.shape == (3, 0)


def test_boundary_depends_on_the_range_of_context_lengths():
    edges = [
        icl.theory.non_monotone_boundary(tau=20.0, rho=0.1, bounds=(0.0, high), kappa_range=(0.5, 2)).upper[0]
        for high in (1e2, 1e3, INF)
    ]
    assert edges[0] < edges[1] - 0.05 < edges[2] - 0.05
    # on the edge of a bounded range the minimum sits on its end
    for factor, there in ((0.9999, True), (1.0001, False)):
        best = icl.theory.optimal_context_length(tau=20.0, kappa=edges[1] * factor, rho=0.1, bounds=(0.0, 1e3))
        assert bool(best.interior) == there


def test_few_tasks_do_not_suffice_at_large_noise():
    """For tau > 2 a strong noise opens a hole in the region: no minimum, the error only rises."""
    edge = icl.theory.non_monotone_boundary(tau=3.0, rho=10.0)
    assert edge.upper.shape == (2,)
    assert edge.lower[1] == pytest.approx(1 / 3, rel=1e-6)  # 1 - 2/tau: the first examples begin to help
    inside = icl.theory.optimal_context_length(tau=3.0, kappa=0.2, rho=10.0)
    assert bool(inside.monotone)
    assert inside.value == 0
    errors = theory(tau=3.0, alpha=np.geomspace(1e-4, 1e4, 2000), kappa=0.2, rho=10.0).icl
    assert np.all(np.diff(errors) > 0)


@pytest.mark.parametrize("target", ["icl", "idg"])
def test_optimal_ridge_against_brute_force(target):
    tau, alpha, kappa, rho, _ = random_points(150, 3)
    best = icl.theory.optimal_ridge(tau=tau, alpha=alpha, kappa=kappa, rho=rho, target=target)
    assert best.stationary.certified.all()
    ridge = np.concatenate([[0.0], np.geomspace(1e-6, 1e7, 1200)])
    errors = getattr(
        theory(tau=tau[:, None], alpha=alpha[:, None], kappa=kappa[:, None], rho=rho[:, None], ridge=ridge), target
    )
    lowest = errors.min(axis=-1)
    assert np.all(best.risk <= lowest * (1 + 1e-12))
    np.testing.assert_allclose(best.risk, lowest, rtol=1e-4)
    at_best = getattr(theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=best.value), target)
    np.testing.assert_allclose(at_best, best.risk, rtol=1e-12)


def test_optimal_ridge_by_root_finding():
    """At one point, the root of a numerical derivative to many digits; at the threshold too, where ridge 0 diverges."""
    for tau in (0.7, 1.0, 2.0):
        best = icl.theory.optimal_ridge(tau=tau, alpha=3.0, kappa=0.6, rho=0.2)

        def derivative(log_ridge, tau=tau):
            h = 1e-4
            up, down = theory(tau=tau, alpha=3.0, kappa=0.6, rho=0.2, ridge=np.exp([log_ridge + h, log_ridge - h])).icl
            return up - down

        assert best.value == pytest.approx(math.exp(brentq(derivative, -7, 5, xtol=1e-10)), rel=1e-6)
        assert best.interior


def test_optimal_ridge_with_endless_tasks():
    tau, rho, alpha = np.array([0.3, 1.0, 5.0]), 0.2, 2.0
    x = (1 + rho) / alpha
    for target in ("icl", "idg"):
        best = icl.theory.optimal_ridge(tau=tau, alpha=alpha, kappa=INF, rho=rho, target=target)
        np.testing.assert_allclose(best.value, (1 + x) * (rho * (1 + x) + x) / tau, rtol=1e-11)


def trace_law(tau, alpha, test_alpha, kappa, rho, ridge, d=800):
    """Evaluate the general formula for unequal test contexts with the eigenvalues of one large sampled A_k."""
    k = round(kappa * d)
    tasks = np.random.default_rng(0).standard_normal((k, d))
    a = np.maximum(np.linalg.eigvalsh(tasks.T @ tasks / k), 0)
    x, x_test = (1 + rho) / alpha, (1 + rho) / test_alpha
    r = a + x
    xi = brentq(lambda xi: xi * (1 - np.mean(r / (r + xi)) / tau) - ridge, 1e-12, 1e3, xtol=1e-14)
    g = 1 / (r + xi)
    gamma = a * g
    idg = np.mean(rho + a - 2 * gamma * a + gamma**2 * r) / (1 - np.mean((r * g) ** 2) / tau)
    result = []
    for a_test in (1.0, a):
        r_test = a_test + x_test
        bias = np.mean(rho + a_test - 2 * gamma * a_test + gamma**2 * r_test)
        result.append(bias + idg / tau * np.mean(r * r_test * g**2))
    return result


@pytest.mark.parametrize(("tau", "ridge"), [(0.5, 0.1), (2.0, 0.01)])
def test_other_context_length_against_sampled_traces(tau, ridge):
    point = {"tau": tau, "alpha": 2.0, "test_alpha": 9.0, "kappa": 0.6, "rho": 0.3, "ridge": ridge}
    law = icl.theory.other_context_length(**point)
    np.testing.assert_allclose((law.icl, law.idg), trace_law(**point), rtol=4e-3)  # fluctuations of order 1/d
    same = icl.theory.other_context_length(**{**point, "test_alpha": 2.0})
    trained = theory(tau=tau, alpha=2.0, kappa=0.6, rho=0.3, ridge=ridge)
    np.testing.assert_allclose((same.icl, same.idg), (trained.icl, trained.idg), rtol=1e-14)


def test_other_context_length_against_simulation():
    """|simulation - theory| < 4 standard errors + 8/d, for test prompts shorter and longer than in training."""
    point, d = {"tau": 2.0, "alpha": 2.0, "kappa": 0.6, "rho": 0.3, "ridge": 0.05}, 40
    for test_alpha, target in itertools.product((0.5, 20.0), ("icl", "idg")):
        length = round(test_alpha * d)
        runs = [
            getattr(icl.simulate.linear_attention(d=d, **point, test_context_length=length, rng=seed), target)
            for seed in range(8)
        ]
        law = getattr(icl.theory.other_context_length(**point, test_alpha=test_alpha), target)
        error = np.std(runs, ddof=1) / math.sqrt(8)
        assert abs(np.mean(runs) - law) < 4 * error + 8 / d * law


def test_longer_test_prompts_never_hurt():
    tau, alpha, kappa, rho, _ = random_points(300, 5)
    lengths = np.geomspace(0.01, 1e6, 30)[:, None]
    law = icl.theory.other_context_length(tau=tau, alpha=alpha, kappa=kappa, rho=rho, test_alpha=lengths)
    assert np.all(np.diff(law.icl, axis=0) <= 0)
    best = icl.theory.optimal_test_context_length(tau=tau, alpha=alpha, kappa=kappa, rho=rho)
    assert np.all(np.isposinf(best.value))
    endless = icl.theory.other_context_length(tau=tau, alpha=alpha, kappa=kappa, rho=rho, test_alpha=INF)
    np.testing.assert_allclose(best.risk, endless.icl, rtol=1e-12)
    np.testing.assert_allclose(
        best.risk + best.gain, theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho).icl, rtol=1e-12
    )


def test_longer_test_prompts_never_hurt_any_finite_model():
    """Exact at finite d: the error is affine in 1/l with a slope that is a mean square, for any Gamma and any tasks."""
    rng = np.random.default_rng(0)
    moments = icl.prompts.moments_of_law("sphere", 6)
    for _ in range(20):
        gamma = rng.standard_normal((6, 7)) * 10 ** rng.uniform(-2, 2)
        lengths = np.array([1, 2, 5, 50, 10**6])
        errors = np.array([icl.simulate.exact_error(gamma, moments, int(length), 0.3) for length in lengths])
        assert np.all(np.diff(errors) < 0)
        slopes = np.diff(errors) / np.diff(1 / lengths)
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)


def test_at_the_threshold():
    law = icl.theory.other_context_length(tau=1.0, alpha=1.0, kappa=0.5, rho=0.1, test_alpha=[0.5, 1.0, INF])
    assert np.all(np.isposinf(law.icl))
    best = icl.theory.optimal_test_context_length(tau=1.0, alpha=1.0, kappa=0.5, rho=0.1)
    assert np.isposinf(best.risk)
    assert np.isposinf(best.gain)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: icl.theory.optimal_context_length(tau=1.0, kappa=1, rho=0), ValueError, "tau must not be 1"),
        (lambda: icl.theory.stationary_points(tau=2, kappa=1, rho=0, target="ICL"), ValueError, 'target must be "icl"'),
        (lambda: icl.theory.stationary_points(tau=2, kappa=1, rho=0, bounds=(3, 2)), ValueError, "bounds must be two"),
        (lambda: icl.theory.optimal_ridge(tau=2, alpha=0, kappa=1, rho=0), ValueError, "alpha must be > 0"),
        (lambda: icl.theory.non_monotone_boundary(tau=2, rho=0, kappa_range=(2, 1)), ValueError, "kappa_range must be"),
        (
            lambda: icl.theory.other_context_length(tau=2, alpha=1, kappa=1, rho=0, test_alpha=0),
            ValueError,
            "test_alpha must be > 0",
        ),
        (
            lambda: icl.theory.other_context_length(tau=2, alpha=1, kappa=1, rho=0, test_alpha="1"),
            TypeError,
            "test_alpha must be a number",
        ),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()
