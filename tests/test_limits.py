"""Every limit and rate against the closed form at extreme arguments: what is left must shrink like the next order."""

import math

import numpy as np
import pytest

import icltheory as icl

theory = icl.theory.linear_attention
limits = icl.theory.limits
INF = math.inf

TAUS = [0.3, 0.7, 1.5, 6.0, INF]
KAPPAS = [0.1, 0.5, 1.7, 4.0, INF]
RHOS = [0.0, 0.2, 1.0]
POINTS = [(tau, kappa, rho) for tau in TAUS for kappa in KAPPAS for rho in RHOS]


def order(remainder, step, factor=8.0):
    """Return the power of the step with which a remainder vanishes, inf if it is rounding error already."""
    coarse, fine = abs(remainder(step)), abs(remainder(step / factor))
    return INF if coarse < 1e-13 else math.log(max(coarse, 1e-300) / max(fine, 1e-300), factor)


def difference(values, target, expansion):
    """Return step -> (error of theory at values(step)) - expansion(step)."""
    return lambda step: float(getattr(theory(**values(step)), target) - expansion(step))


def test_infinite_pretraining():
    floor = limits.infinite_pretraining(alpha=[0.5, 3.0], rho=[[0.0], [0.3]])
    law = theory(tau=INF, kappa=INF, alpha=[0.5, 3.0], rho=[[0.0], [0.3]])
    np.testing.assert_allclose(law.icl, floor, rtol=1e-14)
    np.testing.assert_allclose(law.idg, floor, rtol=1e-14)


@pytest.mark.parametrize(("tau", "kappa", "rho"), POINTS)
def test_long_contexts(tau, kappa, rho):
    far = limits.long_context(tau=tau, kappa=kappa, rho=rho)

    def values(h):
        return {"tau": tau, "alpha": 1 / h, "kappa": kappa, "rho": rho}

    few = kappa < min(tau, 1)
    assert (far.icl_growth > 0) == (few and rho > 0 and tau < INF)
    assert np.isnan(far.icl_approach) == few
    approach = 0.0 if few else far.icl_approach
    icl_left = difference(values, "icl", lambda h: far.icl_growth / h + far.icl + approach * h)
    idg_left = difference(values, "idg", lambda h: far.idg + far.idg_approach * h)
    assert order(icl_left, 1e-4) > (0.9 if few else 1.9)
    assert order(idg_left, 1e-4) > 1.9


@pytest.mark.parametrize("tau", [0.3, 0.7, 1.5, 6.0])
@pytest.mark.parametrize("rho", [0.2, 1.0])
def test_square_root_growth_at_the_critical_number_of_tasks(tau, rho):
    kappa = min(tau, 1)
    growth = limits.critical_growth(tau=tau, rho=rho)
    for target in ("icl", "idg"):
        coefficient = getattr(growth, target)

        # the error times the square root of h tends to the coefficient, with corrections of order sqrt(h)
        def left(h, target=target, coefficient=coefficient):
            law = theory(tau=tau, alpha=1 / h, kappa=kappa, rho=rho)
            return float(getattr(law, target) * math.sqrt(h) - coefficient)

        assert order(left, 1e-8) > 0.45
    far = limits.long_context(tau=tau, kappa=kappa, rho=rho)
    assert np.isposinf(far.icl)
    assert np.isposinf(far.idg) == (tau < 1)
    assert far.icl_growth == 0


@pytest.mark.parametrize("tau", [0.3, 2.0, INF])
def test_at_the_critical_number_of_tasks_without_noise(tau):
    far = limits.long_context(tau=tau, kappa=min(tau, 1), rho=0.0)
    law = theory(tau=tau, alpha=1e14, kappa=min(tau, 1), rho=0.0)
    np.testing.assert_allclose((far.icl, far.idg), (law.icl, law.idg), atol=1e-6)
    assert limits.long_context(tau=INF, kappa=1.0, rho=0.3).icl == 0.3


def test_long_contexts_as_published():
    """Lu et al.: above the threshold, and the sign of growth below it."""
    far = limits.long_context(tau=3.0, kappa=[0.5, 4.0], rho=0.1)
    assert far.icl[1] == pytest.approx(0.1 + 0.05 * 4 / 3, rel=1e-14)
    np.testing.assert_allclose(far.idg, 0.15, rtol=1e-14)
    assert far.icl_growth[0] == pytest.approx(0.1 * 0.5 / (2 * 1.1), rel=1e-14)


@pytest.mark.parametrize(("tau", "kappa", "rho"), POINTS)
def test_short_contexts(tau, kappa, rho):
    near = limits.short_context(tau=tau, kappa=kappa, rho=rho)

    def values(h):
        return {"tau": tau, "alpha": h, "kappa": kappa, "rho": rho}

    for target in ("icl", "idg"):
        left = difference(values, target, lambda h, t=target: near.risk + getattr(near, f"{t}_slope") * h)
        assert order(left, 1e-4) > 1.9


@pytest.mark.parametrize("tau", [0.4, 3.0])
def test_no_fixed_ridge_matters_without_context(tau):
    law = theory(tau=tau, alpha=1e-9, kappa=0.3, rho=0.2, ridge=5.0)
    np.testing.assert_allclose((law.icl, law.idg), limits.short_context(tau=tau, kappa=0.3, rho=0.2).risk, rtol=1e-7)


def test_first_examples_do_harm_for_very_few_tasks():
    tau = 4.0
    slope = limits.short_context(tau=tau, kappa=[0.49, 0.5, 0.51], rho=0.3).icl_slope
    assert slope[0] > 0
    assert slope[1] == pytest.approx(0, abs=1e-15)
    assert slope[2] < 0


@pytest.mark.parametrize("kappa", [0.3, 1.0, 3.0, INF])
@pytest.mark.parametrize(("alpha", "rho"), [(1.0, 0.0), (10.0, 0.2)])
@pytest.mark.parametrize("target", ["icl", "idg"])
def test_divergence_at_the_threshold(kappa, alpha, rho, target):
    pole = limits.divergence(alpha=alpha, kappa=kappa, rho=rho)
    residue, at_threshold = getattr(pole, target), getattr(pole, f"{target}_at_threshold")
    for side in (1, -1):

        def left(h, side=side):
            return float(h * getattr(theory(tau=1 + side * h, alpha=alpha, kappa=kappa, rho=rho), target) - residue)

        assert order(left, 1e-3) > 0.9

    def left_in_ridge(h):
        law = theory(tau=1.0, alpha=alpha, kappa=kappa, rho=rho, ridge=h * h)
        return float(h * getattr(law, target) - at_threshold)

    assert order(left_in_ridge, 1e-3) > 0.9
    endless = getattr(theory(tau=INF, alpha=alpha, kappa=kappa, rho=rho), target)
    exact = getattr(theory(tau=[1.2, 5.0], alpha=alpha, kappa=kappa, rho=rho), target)
    np.testing.assert_allclose(endless + residue / np.array([0.2, 4.0]), exact, rtol=1e-13)


@pytest.mark.parametrize("tau", [0.4, 1.0, 3.0, INF])
@pytest.mark.parametrize("kappa", [0.2, 2.0, INF])
@pytest.mark.parametrize("target", ["icl", "idg"])
def test_strong_ridges(tau, kappa, target):
    coefficient = getattr(limits.strong_ridge(kappa=kappa), target)
    left = difference(
        lambda h: {"tau": tau, "alpha": 2.0, "kappa": kappa, "rho": 0.3, "ridge": 1 / h},
        target,
        lambda h: 1.3 + coefficient * h,
    )
    assert order(left, 1e-4) > 1.9


@pytest.mark.parametrize("tau", [0.4, 3.0, INF])
@pytest.mark.parametrize(("alpha", "rho"), [(0.7, 0.0), (10.0, 0.4)])
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 2.0])
def test_the_gap_falls_like_one_over_kappa(tau, alpha, rho, ridge):
    coefficient = limits.gap_many_tasks(tau=tau, alpha=alpha, rho=rho, ridge=ridge)
    left = difference(
        lambda h: {"tau": tau, "alpha": alpha, "kappa": 1 / h, "rho": rho, "ridge": ridge},
        "gap",
        lambda h: coefficient * h,
    )
    assert order(left, 1e-3) > 1.9
    if ridge == 0 and tau > 1:  # as published
        x = (1 + rho) / alpha
        law = 2 * x**2 / (1 + x) ** 3 + (rho + x / (1 + x)) / ((tau - 1) * (1 + x) ** 2)
        assert coefficient == pytest.approx(law, rel=1e-13)


@pytest.mark.parametrize(("kappa", "rate"), [(0.2, 1.0), (0.9, 1.0), (1.0, 0.5), (1.5, 1.0), (5.0, 1.0)])
@pytest.mark.parametrize("growth", [0.5, 4.0])
@pytest.mark.parametrize("rho", [0.01, 0.4])
def test_gap_transition(kappa, rate, growth, rho):
    law = limits.gap_transition(kappa=kappa, rho=rho, growth=growth)

    def left(h):
        gap = theory(tau=growth / h, alpha=1 / h, kappa=kappa, rho=rho).gap
        return float(gap * h ** -float(law.exponent) - law.coefficient)

    assert order(left, 1e-6) > 0.9 * rate
    assert law.exponent == (0.0 if kappa < 1 else 0.5 if kappa == 1 else 1.0)


def test_broadcasting_and_shapes():
    far = limits.long_context(tau=[[0.5], [2.0]], kappa=[0.2, 0.5, 3.0], rho=0.1)
    for name in ("icl_growth", "icl", "idg", "icl_approach", "idg_approach"):
        assert getattr(far, name).shape == (2, 3)
    for i, tau in enumerate((0.5, 2.0)):
        for j, kappa in enumerate((0.2, 0.5, 3.0)):
            assert limits.long_context(tau=tau, kappa=kappa, rho=0.1).icl == far.icl[i, j]
    assert limits.short_context(tau=[0.5, 2.0], kappa=1.0, rho=0.0).risk.shape == (2,)
    assert limits.divergence(alpha=1.0, kappa=[1.0, 2.0], rho=0.0).icl_at_threshold.shape == (2,)
    assert limits.gap_transition(kappa=[0.5, 1, 2], rho=[[0.1], [0.2]], growth=1.0).coefficient.shape == (2, 3)
    assert limits.gap_many_tasks(tau=[0.5, 2], alpha=1, rho=0).shape == (2,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: limits.long_context(tau=1.0, kappa=2.0, rho=0.1), "tau must not be 1 at ridge 0"),
        (lambda: limits.short_context(tau=[2.0, 1.0], kappa=2.0, rho=0.1), "tau must not be 1 at ridge 0"),
        (lambda: limits.critical_growth(tau=-1.0, rho=0.1), "tau must be > 0, got -1"),
        (lambda: limits.gap_transition(kappa=1.0, rho=0.1, growth=0.0), "growth must be > 0, got 0"),
        (lambda: limits.strong_ridge(kappa=0.0), "kappa must be > 0, got 0"),
        (lambda: limits.infinite_pretraining(alpha=1.0, rho=-0.1), "rho must be >= 0 and finite, got -0.1"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
