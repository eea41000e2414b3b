"""The closed form against published anchors, quadrature, limits, and its own certificates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

import icltheory as icl

theory = icl.theory.linear_attention

# (tau, alpha, kappa, rho): e_ICL, e_IDG; ridgeless. Lu et al. 2025, as collected in facts/icl.md section 9
RIDGELESS = [
    (0.5, 1, 0.5, 0.01, 1.261077, 0.801849),
    (1.5, 1, 0.5, 0.01, 1.663509, 0.914342),
    (2, 1, 0.5, 0.01, 1.233993, 0.609561),
    (0.5, 10, 0.5, 0.01, 0.820849, 0.246343),
    (2, 10, 0.5, 0.01, 0.891164, 0.112400),
    (2, 100, 0.5, 0.01, 1.272548, 0.030000),
    (0.5, 5.5, 0.2, 0.1, 1.481713, 0.348624),
    (0.5, 100, 0.4, 0.1, 2.918066, 0.511531),
    (20, 100, 0.25, 0.5, 2.601442, 0.530244),
    (20, 100, 1, 0.5, 0.784173, 0.540286),
]
# (tau, alpha, kappa, rho): e_ICL at ridge 0.1
RIDGED = [
    (1.5, 1, 1, 0.01, 1.16634),
    (0.5, 1, 1, 0.01, 1.18716),
    (1.5, 10, 1, 0.01, 0.41167),
    (3, 2, 0.5, 0.1, 0.96547),
    (0.5, 10, math.inf, 0.01, 0.635927),
    (1, 10, math.inf, 0.01, 0.360683),
    (1.5, 10, math.inf, 0.01, 0.236614),
    (2, 10, math.inf, 0.01, 0.189353),
]
# kappa: g at alpha = tau = 10, rho = 0.01, ridgeless, to the digits printed
GAPS = {
    0.2: "0.8253",
    0.4: "0.6310",
    0.6: "0.4385",
    0.8: "0.2742",
    1: "0.1636",
    1.2: "0.1016",
    1.6: "0.0492",
    2: "0.0301",  # printed as .0302; 30-digit quadrature gives 0.03014513
    4: "0.00923",
    8: "0.00373",
    16: "0.00169",
    32: "0.00081",
}


@pytest.mark.parametrize(("tau", "alpha", "kappa", "rho", "e_icl", "e_idg"), RIDGELESS)
def test_ridgeless_anchors(tau, alpha, kappa, rho, e_icl, e_idg):
    law = theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho)
    assert f"{law.icl:.6f}" == f"{e_icl:.6f}"
    assert f"{law.idg:.6f}" == f"{e_idg:.6f}"
    assert law.converged


@pytest.mark.parametrize(("tau", "alpha", "kappa", "rho", "e_icl"), RIDGED)
def test_ridge_anchors(tau, alpha, kappa, rho, e_icl):
    digits = len(str(e_icl).split(".")[1])
    assert f"{theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=0.1).icl:.{digits}f}" == f"{e_icl:.{digits}f}"


def test_the_authors_own_sixteen_digits():
    assert theory(tau=0.5, alpha=0.5, kappa=0.1, rho=0.1).icl == pytest.approx(1.4898956781741148, rel=1e-15)


@pytest.mark.parametrize(("kappa", "printed"), GAPS.items())
def test_gap_anchors(kappa, printed):
    gap = theory(tau=10, alpha=10, kappa=kappa, rho=0.01).gap
    assert f"{gap:.{len(printed) - 2}f}" == printed


def by_quadrature(tau, alpha, kappa, rho, ridge):
    """Evaluate the general formula with traces over the Marchenko-Pastur density: slow, and obvious."""
    x = (1 + rho) / alpha
    if math.isinf(kappa):

        def trd(f):
            return f(1.0)
    else:
        low, high = (1 - kappa**-0.5) ** 2, (1 + kappa**-0.5) ** 2

        def trd(f):
            def at_angle(angle):
                a = (low + high) / 2 + (high - low) / 2 * math.cos(angle)
                return f(a) * kappa * ((high - low) / 2 * math.sin(angle)) ** 2 / (2 * math.pi * a)

            continuous = quad(at_angle, 0, math.pi, epsabs=1e-13, epsrel=1e-12, limit=500)[0]
            return continuous + (1 - kappa) * f(0.0) if kappa < 1 else continuous

    def equation(xi):
        return xi * (1 - trd(lambda a: (a + x) / (a + x + xi)) / tau) - ridge

    xi = 0.0
    if ridge > 0 or tau < 1:
        smallest = 1e-12 if tau < 1 else ridge * 1e-3
        xi = brentq(equation, max(smallest, ridge / 2), 1e4 + 10 * ridge, xtol=1e-15, rtol=1e-13)
    gamma = lambda a: a / (a + x + xi)  # noqa: E731
    resolvent = lambda a: 1 / (a + x + xi)  # noqa: E731
    bias_idg = rho + trd(lambda a: a - 2 * gamma(a) * a + gamma(a) ** 2 * (a + x))
    idg = bias_idg / (1 - trd(lambda a: ((a + x) * resolvent(a)) ** 2) / tau)
    bias_icl = rho + trd(lambda a: 1 - 2 * gamma(a) + gamma(a) ** 2 * (1 + x))
    icl_ = bias_icl + idg / tau * trd(lambda a: (a + x) * (1 + x) * resolvent(a) ** 2)
    train = idg * (1 - trd(lambda a: (a + x) * resolvent(a)) / tau) ** 2
    return icl_, idg, train, xi


@pytest.mark.parametrize("tau", [0.3, 0.9, 1.0, 1.2, 4.0])
@pytest.mark.parametrize("kappa", [0.3, 1.0, 2.5, math.inf])
@pytest.mark.parametrize(("alpha", "rho", "ridge"), [(1.0, 0.01, 1e-3), (0.4, 0.5, 1.0), (8.0, 0.0, 0.05)])
def test_against_quadrature(tau, alpha, kappa, rho, ridge):
    law = theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge)
    expected = by_quadrature(tau, alpha, kappa, rho, ridge)
    np.testing.assert_allclose((law.icl, law.idg, law.train, law.effective_ridge), expected, rtol=3e-8)


@pytest.mark.parametrize("tau", [0.5, 2.0])
def test_ridgeless_against_quadrature(tau):
    law = theory(tau=tau, alpha=2, kappa=0.7, rho=0.1)
    expected = by_quadrature(tau, 2, 0.7, 0.1, 0.0)
    np.testing.assert_allclose((law.icl, law.idg), expected[:2], rtol=1e-8)
    assert law.train == pytest.approx(0.0 if tau < 1 else law.idg * (1 - 1 / tau) ** 2, rel=1e-14)


def test_effective_ridge_has_the_published_closed_form_below_threshold():
    tau, alpha, kappa, rho = 0.6, 3.0, 0.8, 0.2
    x, c = (1 + rho) / alpha, kappa / tau
    m = 2 / (x + 1 - 1 / c + math.sqrt((x + 1 - 1 / c) ** 2 + 4 * x / c))
    assert theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho).effective_ridge == pytest.approx(
        (1 - tau) / (tau * m), rel=1e-13
    )


def test_at_the_threshold():
    law = theory(tau=1, alpha=[1, 10], kappa=0.5, rho=0.01)
    assert np.all(np.isposinf([law.icl, law.idg, law.gap]))
    assert np.all(law.train == 0)
    assert np.all(law.converged)
    same_law = theory(tau=1, alpha=1, kappa=math.inf, rho=0.01)
    assert math.isinf(same_law.icl)
    assert same_law.gap == 0
    assert np.all(np.isfinite(theory(tau=1, alpha=1, kappa=0.5, rho=0.01, ridge=np.logspace(-12, 0, 20)).icl))


def test_the_divergence_is_a_simple_pole():
    """Near tau = 1 the ridgeless error grows like 1/|tau - 1| on both sides."""
    step = np.array([1e-4, 1e-6, 1e-8])
    for side in (1 + step, 1 - step):
        scaled = theory(tau=side, alpha=1, kappa=0.5, rho=0.01).icl * step
        np.testing.assert_allclose(scaled[1:], scaled[-1], rtol=1e-3)


def test_limits_of_section_6():
    inf, rho, tau = math.inf, 0.1, 3.0
    assert theory(tau=inf, alpha=2, kappa=inf, rho=rho).icl == pytest.approx(rho + 1.1 / 3.1, rel=1e-14)
    far = theory(tau=tau, alpha=1e9, kappa=[0.5, 4.0], rho=rho)
    np.testing.assert_allclose(far.idg, rho * tau / (tau - 1), rtol=1e-6)
    assert far.icl[1] == pytest.approx(rho + rho / (tau - 1) * 4 / 3, rel=1e-6)
    # kappa < 1: linear growth in alpha
    growth = np.diff(theory(tau=tau, alpha=[1e6, 2e6, 3e6], kappa=0.5, rho=rho).icl)
    assert growth[0] == pytest.approx(growth[1], rel=1e-4)
    assert growth[0] > 1e3


@pytest.mark.parametrize("c", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("rho", [0.01, 0.4])
def test_task_diversity_transition(c, rho):
    alpha = 1e8
    below = theory(tau=c * alpha, alpha=alpha, kappa=[0.2, 0.8, 1.5], rho=rho).gap
    expected = np.array([0.8, 0.2, 0.0]) * (1 + rho / (c * (1 + rho)))
    np.testing.assert_allclose(below, expected, atol=1e-6)
    at_one = theory(tau=c * alpha, alpha=alpha, kappa=1.0, rho=rho).gap
    assert at_one * math.sqrt(alpha) == pytest.approx(math.sqrt(1 + rho) / 2 + rho / (c * math.sqrt(1 + rho)), rel=2e-4)


@pytest.mark.parametrize("tau", [1.5, 4.0])
def test_gap_falls_like_one_over_kappa(tau):
    rho, alpha, kappa = 0.1, 2.0, 1e8
    x = (1 + rho) / alpha
    slope = 2 * x**2 / (1 + x) ** 3 + (rho + x / (1 + x)) / ((tau - 1) * (1 + x) ** 2)
    assert theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho).gap * kappa == pytest.approx(slope, rel=1e-6)


# read off a scan with alpha up to about 1000; the exact boundaries, at alpha -> infinity, lie up to .03 higher
MARGIN = 0.03
RHOS = [0.05, 0.1, 0.25, 0.5, 1.0]
ICL_BOUNDARY = {0.5: [0.63, 0.68, 0.85, 1.05, 1.43], 20.0: [1.08, 1.13, None, 1.33, 1.48]}
IDG_RANGE = [(0.35, 0.70), (0.30, 0.78), (0.25, 0.98), (0.20, 1.23), (0.13, 1.65)]


def rises(tau, kappa, rho, target):
    """Does the error rise anywhere as the context grows?"""
    alpha = np.geomspace(0.1, 1e3, 4000)
    errors = getattr(theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho), target)
    return bool(np.any(np.diff(errors) > 1e-13))


@pytest.mark.parametrize(
    ("tau", "rho", "boundary"),
    [(tau, rho, k) for tau, row in ICL_BOUNDARY.items() for rho, k in zip(RHOS, row, strict=True) if k is not None],
)
def test_an_optimal_context_length_exists_for_few_tasks(tau, rho, boundary):
    assert rises(tau, boundary - MARGIN, rho, "icl")
    assert not rises(tau, boundary + MARGIN, rho, "icl")
    assert rises(tau, 0.98 * min(tau, 1), rho, "icl")  # kappa < min(tau, 1) is sufficient


@pytest.mark.parametrize(("rho", "window"), list(zip(RHOS, IDG_RANGE, strict=True)))
def test_in_distribution_error_rises_in_a_window_of_kappa(rho, window):
    low, high = window
    inside = [rises(0.5, kappa, rho, "idg") for kappa in (low + MARGIN, high - MARGIN)]
    outside = [rises(0.5, kappa, rho, "idg") for kappa in (low - MARGIN, high + MARGIN)]
    assert inside == [True, True]
    assert outside == [False, False]


positive = st.floats(1e-3, 1e3)


@settings(max_examples=200, deadline=None)
@given(tau=positive, alpha=positive, kappa=positive | st.just(math.inf), rho=st.floats(0, 10), ridge=st.floats(0, 1e3))
def test_certificates_and_identities(tau, alpha, kappa, rho, ridge):
    ridge = 0.0 if ridge < 1e-40 else ridge
    rho = 0.0 if rho < 1e-40 else rho
    law = theory(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge)
    assert law.converged
    assert law.icl >= rho
    assert law.train <= law.idg
    assert law.effective_ridge >= ridge * (1 - 1e-12)
    if math.isinf(kappa):
        assert law.gap == 0
    if math.isfinite(law.icl):
        assert law.icl - law.idg == pytest.approx(law.gap, abs=1e-12 * law.icl)
    if ridge > 0:
        assert law.train == pytest.approx(law.idg * (ridge / law.effective_ridge) ** 2, rel=1e-12)


def test_limits_of_the_ridge():
    kwargs = {"tau": [0.5, 2.0], "alpha": 1.5, "kappa": 0.7, "rho": 0.2}
    np.testing.assert_allclose(theory(**kwargs, ridge=1e-14).icl, theory(**kwargs).icl, rtol=1e-11)
    strong = theory(**kwargs, ridge=1e14)
    np.testing.assert_allclose((strong.icl, strong.idg, strong.train), 1.2, rtol=1e-12)
    np.testing.assert_allclose(theory(**{**kwargs, "kappa": 1e14}).icl, theory(**{**kwargs, "kappa": math.inf}).icl)
    np.testing.assert_allclose(theory(**{**kwargs, "tau": 1e14}).icl, theory(**{**kwargs, "tau": math.inf}).icl)


def test_broadcasting():
    law = theory(
        tau=np.array([0.5, 1.0, 2.0])[:, None], alpha=[1.0, 10.0], kappa=[0.5, math.inf], rho=0.1, ridge=[[0.0, 0.1]]
    )
    for name in ("icl", "idg", "train", "gap", "effective_ridge", "converged"):
        assert getattr(law, name).shape == (3, 2)
    for i, tau in enumerate((0.5, 1.0, 2.0)):
        for j, (alpha, kappa, ridge) in enumerate(((1.0, 0.5, 0.0), (10.0, math.inf, 0.1))):
            alone = theory(tau=tau, alpha=alpha, kappa=kappa, rho=0.1, ridge=ridge)
            assert alone.icl == pytest.approx(law.icl[i, j], rel=1e-14)
            assert alone.icl.shape == ()
    assert theory(tau=[], alpha=1, kappa=1, rho=0).icl.shape == (0,)


def test_sizes_give_the_realised_ratios():
    point = icl.Point.of(d=13, tau=0.77, alpha=0.9, kappa=0.3, rho=0.1, ridge=0.2)
    by_sizes = theory(d=13, tau=0.77, alpha=0.9, kappa=0.3, rho=0.1, ridge=0.2)
    assert by_sizes.icl == theory(**point.ratios()).icl
    assert by_sizes.icl != theory(tau=0.77, alpha=0.9, kappa=0.3, rho=0.1, ridge=0.2).icl
    assert theory(d=13, n_sequences=[130], context_length=12, n_tasks=4, rho=0.1, ridge=0.2).icl == by_sizes.icl


def test_a_hundred_thousand_ridges_are_all_certified():
    law = theory(tau=1.0, alpha=10, kappa=0.5, rho=0.01, ridge=np.geomspace(1e-40, 1e20, 100_000))
    assert law.converged.all()
    assert np.all(np.diff(law.effective_ridge) > 0)
