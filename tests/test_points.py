"""Sizes, ratios, and what is said of impossible ones."""

import math

import numpy as np
import pytest

import icltheory as icl
from icltheory.points import Point

GOOD = {"d": 20, "tau": 1.5, "alpha": 1.0, "kappa": 0.5, "rho": 0.01, "ridge": 0.1}


def test_realised_sizes_and_ratios():
    # the documented point of published code that silently ran at tau = 1.000 (facts/peers.md): here n is not
    # rounded to a multiple of k
    point = Point.of(d=100, alpha=6, kappa=50, tau=1.2, rho=0.01)
    assert (point.n_sequences, point.context_length, point.n_tasks) == (12000, 600, 5000)
    assert (point.tau, point.alpha, point.kappa) == (1.2, 6.0, 50.0)
    odd = Point.of(d=7, tau=0.51, alpha=0.5, kappa=0.3, rho=0)
    assert odd.ratios() == {"tau": 25 / 49, "alpha": 4 / 7, "kappa": 2 / 7, "rho": 0.0, "ridge": 0.0}
    assert Point.of(d=7, n_sequences=25, context_length=4, n_tasks=2, rho=0) == odd


def test_infinitely_many_tasks_are_a_value():
    point = Point.of(d=10, tau=1, alpha=1, kappa=math.inf, rho=0)
    assert math.isinf(point.n_tasks)
    assert math.isinf(point.kappa)
    assert point == Point.of(d=10, tau=1, alpha=1, n_tasks=math.inf, rho=0)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"tau": -0.5}, ValueError, r"tau must be > 0, got -0.5 \(tau = n/d\^2"),
        ({"tau": 0}, ValueError, "tau must be > 0, got 0"),
        ({"tau": math.nan}, ValueError, "tau must be > 0, got nan"),
        ({"tau": 0.001}, ValueError, "tau must be large enough that n_sequences rounds to at least 1 at d = 20"),
        ({"alpha": 0.01}, ValueError, "alpha must be large enough that context_length"),
        ({"alpha": math.inf}, ValueError, "alpha must be > 0 and finite, got inf"),
        ({"alpha": 1e-60}, ValueError, "alpha must be between 1e-50 and 1e50"),
        ({"kappa": -1}, ValueError, "kappa must be > 0, got -1 .*math.inf"),
        ({"kappa": 0}, ValueError, "kappa must be > 0, got 0"),
        ({"kappa": 0.02}, ValueError, "kappa must be large enough that n_tasks"),
        ({"rho": -1e-9}, ValueError, "rho must be >= 0 and finite, got -1e-09"),
        ({"rho": math.inf}, ValueError, "rho must be >= 0 and finite, got inf"),
        ({"ridge": -1}, ValueError, "ridge must be >= 0 and finite, got -1"),
        ({"ridge": math.nan}, ValueError, "ridge must be >= 0 and finite, got nan"),
        ({"ridge": None}, TypeError, "ridge must be a number"),
        ({"rho": "low"}, TypeError, "rho must be a number or an array of numbers, got 'low'"),
        ({"d": 2.5}, ValueError, "d must be an integer >= 1, got 2.5"),
        ({"d": 0}, ValueError, "d must be an integer >= 1, got 0"),
        ({"d": [4, 5]}, TypeError, r"d must be one integer, got an array of shape \(2,\)"),
        ({"d": True}, TypeError, "d must be a number"),
        ({"d": math.nan}, ValueError, "d must be an integer >= 1, got nan"),
        ({"tau": None, "n_sequences": 10.5}, ValueError, "n_sequences must be an integer >= 1, got 10.5"),
        ({"tau": None, "n_sequences": math.inf}, ValueError, "n_sequences must be an integer >= 1, got inf"),
        ({"kappa": None, "n_tasks": 0}, ValueError, "n_tasks must be an integer >= 1 or math.inf, got 0"),
        ({"n_sequences": 10}, ValueError, "give tau or n_sequences, not both"),
        ({"tau": None}, TypeError, r"missing tau \(= n/d\^2\)"),
    ],
)
def test_every_bad_value_is_named(change, error, words):
    arguments = {**GOOD, **change}
    with pytest.raises(error, match=words):
        icl.simulate.linear_attention(**arguments)
    with pytest.raises(error, match=words):
        icl.theory.linear_attention(**arguments)


@pytest.mark.parametrize("rng", ["a", -1, 1.5])
def test_a_bad_seed_is_named(rng):
    with pytest.raises(TypeError, match=r"rng must be an integer >= 0, a SeedSequence, .* or None, got"):
        icl.simulate.linear_attention(**GOOD, rng=rng)


def test_simulation_takes_one_number_each_and_a_finite_set():
    with pytest.raises(TypeError, match="tau must be one number"):
        icl.simulate.linear_attention(**{**GOOD, "tau": [1.0, 2.0]})
    with pytest.raises(ValueError, match="tau must be finite in a simulation"):
        icl.simulate.linear_attention(**{**GOOD, "tau": math.inf})


def test_sizes_without_dimension():
    with pytest.raises(TypeError, match="n_sequences needs d as well"):
        icl.theory.linear_attention(n_sequences=10, alpha=1, kappa=1, rho=0)


def test_an_array_error_points_at_the_entry():
    with pytest.raises(ValueError, match=r"tau must be > 0, got -3 at index \(0, 1\)"):
        icl.theory.linear_attention(tau=np.array([[1.0, -3.0]]), alpha=1, kappa=1, rho=0)
