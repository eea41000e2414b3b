"""Statements of Lu et al. 2025 (arXiv:2405.11751), each measured with its error bar at fixed seeds."""

import math

import numpy as np
import pytest

import icltheory as icl

SEEDS = 8


def mean_and_error(target, seeds=SEEDS, **kwargs):
    values = [getattr(icl.simulate.linear_attention(**kwargs, rng=seed), target) for seed in range(seeds)]
    return np.mean(values), np.std(values, ddof=1) / math.sqrt(seeds)


@pytest.mark.parametrize(
    ("tau", "alpha", "kappa", "rho", "ridge"),
    [
        (0.4, 1.0, 0.5, 0.01, 1e-6),
        (2.5, 1.0, 0.5, 0.01, 1e-6),
        (0.5, 10.0, 0.5, 0.1, 1e-3),
        (2.0, 5.0, 2.0, 0.3, 0.1),
        (3.0, 2.0, math.inf, 0.1, 1e-6),
        (1.0, 4.0, math.inf, 0.01, 0.1),
    ],
)
@pytest.mark.parametrize("target", ["icl", "idg", "train"])
def test_theory_predicts_the_simulation(tau, alpha, kappa, rho, ridge, target):
    """|simulation - theory| < 4 standard errors + c/d, with c = 8, the effect known at d = 40 (finite_size.md)."""
    d = 40
    mean, error = mean_and_error(target, d=d, tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge)
    law = getattr(icl.theory.linear_attention(d=d, tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge), target)
    if target == "train" and tau < 1 and ridge < 1e-5:
        assert mean < 1e-8  # interpolation: nothing is left to compare
        assert law < 1e-8
    else:
        assert abs(mean - law) < 4 * error + 8 / d * law


def test_the_prediction_becomes_exact_as_d_grows():
    """At alpha = kappa = 1, tau = 1.5 the deviation is 20 % at d = 40 and 8 % at d = 80: about c/d."""
    point = {"tau": 1.5, "alpha": 1.0, "kappa": 1.0, "rho": 0.01, "ridge": 1e-6}
    law = icl.theory.linear_attention(**point).icl
    small, small_error = mean_and_error("icl", seeds=60, d=20, **point)
    large, large_error = mean_and_error("icl", d=60, **point)
    assert large - law < 0.5 * (small - law) - 3 * math.hypot(0.5 * small_error, large_error)
    assert abs(large - law) < 4 * large_error + 8 / 60 * law


def test_ridgeless_error_peaks_at_the_number_of_parameters():
    """The peak is at n = d(d+1), not at d^2: the medians over seeds of a fine grid say so."""
    d = 14
    p = d * (d + 1)
    grid = [p - 28, d * d, p - 7, p, p + 7, p + 14, p + 28]
    medians = []
    for n in grid:
        runs = [
            icl.simulate.linear_attention(d=d, n_sequences=n, alpha=1, kappa=1, rho=0.01, rng=seed).icl
            for seed in range(40)
        ]
        medians.append(np.median(runs))
    assert grid[int(np.argmax(medians))] == p
    assert medians[3] > 3 * medians[1]


def test_a_ridge_removes_the_divergence():
    d, law = 30, []
    for ridge in (1e-6, 0.1):
        at_peak, _ = mean_and_error(
            "icl", d=d, n_sequences=d * (d + 1), alpha=10, kappa=math.inf, rho=0.01, ridge=ridge
        )
        before, _ = mean_and_error("icl", d=d, tau=0.5, alpha=10, kappa=math.inf, rho=0.01, ridge=ridge)
        law.append(at_peak / before)
    assert law[0] > 10
    assert law[1] < 0.7
