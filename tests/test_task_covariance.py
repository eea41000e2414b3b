"""Structured tasks: the closed form against the isotropic one, sampled matrices, simulations, and its certificates."""

import importlib
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import icltheory as icl
from icltheory.prompts.covariance import low_rank, power_law, spiked
from icltheory.theory.linear_attention import linear_attention
from icltheory.theory.task_covariance import task_covariance

FIELDS = ("icl", "idg", "train", "gap", "effective_ridge")
POINTS = [  # tau, alpha, kappa, rho, ridge, test_alpha
    (4.0, 2.0, 1.0, 0.01, 0.0, 2.0),
    (0.5, 1.0, 0.5, 0.1, 0.0, 5.0),
    (1.2, 3.0, 2.0, 0.1, 0.1, 1.0),
    (2.0, 0.5, 0.3, 0.5, 1.0, 0.5),
]


def turned(d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


@pytest.mark.parametrize("covariance", [np.ones(7), np.eye(3)])
def test_isotropic_tasks_are_the_known_case(covariance):
    tau = np.append(np.geomspace(0.05, 50, 12), [1.0, math.inf])[:, None, None, None]
    kappa = np.array([0.01, 0.3, 1.0, 2.5, math.inf])[:, None, None]
    alpha, ridge = np.array([0.1, 1.0, 50.0])[:, None], np.array([0.0, 1e-12, 1e-3, 1.0, 100.0])
    law = task_covariance(tau=tau, alpha=alpha, kappa=kappa, rho=0.1, ridge=ridge, train=covariance)
    known = linear_attention(tau=tau, alpha=alpha, kappa=kappa, rho=0.1, ridge=ridge)
    assert law.converged.all()
    for name in FIELDS:
        np.testing.assert_allclose(getattr(law, name), getattr(known, name), rtol=1e-13, err_msg=name)


def by_matrices(tau, alpha, kappa, rho, ridge, test_alpha, c, b, rng):
    """Evaluate the general formula with one sampled A_k: nothing but matrix products and a root finder."""
    d = len(c)
    w = rng.standard_normal((round(kappa * d), d)) * np.sqrt(c)
    a = w.T @ w / len(w)
    x = (rho + c.mean()) / alpha
    eigenvalues = np.maximum(np.linalg.eigvalsh(a), 0)

    def equation(xi):
        return xi * (1 - np.mean((eigenvalues + x) / (eigenvalues + x + xi)) / tau) - ridge

    xi = 0.0 if ridge == 0 and tau >= 1 else brentq(equation, 1e-9, 1e4, xtol=1e-14)
    r, test = a + x * np.eye(d), np.diag(b)
    r_test = test + (rho + b.mean()) / test_alpha * np.eye(d)
    g = np.linalg.inv(r + xi * np.eye(d))
    gamma = a @ g

    def trd(m):
        return np.trace(m) / d

    idg = (rho + trd(a) - 2 * trd(gamma @ a) + trd(gamma @ r @ gamma)) / (1 - trd(r @ r @ g @ g) / tau)
    bias = rho + trd(test) - 2 * trd(gamma @ test) + trd(gamma @ r_test @ gamma)
    icl_error = bias + idg / tau * trd(r @ r_test @ g @ g)
    x_seen = (rho + c.mean()) / test_alpha - x  # IDG in prompts of another length
    idg_error = idg + x_seen * (trd(gamma @ gamma) + idg / tau * trd(r @ g @ g))
    return icl_error, idg_error, idg * (1 - trd(r @ g) / tau) ** 2, xi


SPECTRA = {
    "power law, reversed": lambda d: (power_law(d, 0.9), power_law(d, 0.9)[::-1]),
    "low rank, isotropic": lambda d: (low_rank(d, d // 3), 1.7 * np.ones(d)),
    "spiked, low rank": lambda d: (2.0 * spiked(d, 9.0, rank=d // 6), low_rank(d, d // 12)),
}


@pytest.mark.parametrize("spectra", SPECTRA.values(), ids=SPECTRA)
@pytest.mark.parametrize(("tau", "alpha", "kappa", "rho", "ridge", "test_alpha"), POINTS)
def test_against_sampled_matrices(tau, alpha, kappa, rho, ridge, test_alpha, spectra):
    d, draws, rng = 240, 6, np.random.default_rng(0)
    c, b = spectra(d)
    sampled = np.array([by_matrices(tau, alpha, kappa, rho, ridge, test_alpha, c, b, rng) for _ in range(draws)])
    law = task_covariance(
        tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge, train=c, test=b, test_alpha=test_alpha
    )
    expected = np.array([law.icl, law.idg, law.train, law.effective_ridge])
    error = sampled.std(axis=0, ddof=1) / math.sqrt(draws)
    assert np.all(np.abs(sampled.mean(axis=0) - expected) <= 4 * error + expected / d + 1e-12)


def by_published_form(tau, alpha, kappa, rho, c, b):
    """Return (icl, idg) by the formulas of Letey et al. with a solved M and numerical derivatives; ridgeless."""
    x = (rho + c.mean()) / alpha

    def stieltjes(z):
        def excess(m):
            return np.mean(1 / ((1 - 1 / kappa + z * m / kappa) * c + z)) - m

        lowest = max(0.0, (1 / kappa - 1) * kappa / z) if kappa < 1 else 0.0  # where the factor of C is 0
        return brentq(excess, lowest * (1 + 1e-14), 1 / z, xtol=1e-16, rtol=1e-15)

    def resolvent(z):
        return 1 / ((1 - 1 / kappa + z * stieltjes(z) / kappa) * c + z)

    xi = 0.0 if tau > 1 else brentq(lambda xi: xi * stieltjes(x + xi) + tau - 1, 1e-8, 1e4, xtol=1e-15, rtol=1e-14)
    nu = x + xi
    step = 1e-4 * nu
    m, f = stieltjes(nu), resolvent(nu)
    derivative = [
        (8 * (at(nu + step) - at(nu - step)) - (at(nu + 2 * step) - at(nu - 2 * step))) / (12 * step)
        for at in (stieltjes, resolvent)
    ]
    q = (rho + nu - nu**2 * m - xi * (1 - 2 * nu * m - nu**2 * derivative[0])) / (
        tau - (1 - 2 * xi * m - xi**2 * derivative[0])
    )
    scalar = rho + (rho + b.mean()) / alpha * (1 + (q - 2 * nu) * m + (xi * q - nu**2) * derivative[0])
    return scalar + np.mean(b * (q * f + (q * xi - nu**2) * derivative[1])), tau * q


@pytest.mark.parametrize("tau", [0.4, 3.0])
@pytest.mark.parametrize("kappa", [0.3, 1.0, 4.0])
def test_against_the_published_form(tau, kappa):
    c, b = power_law(30, 1.0), 1.3 * power_law(30, 0.5)[::-1]
    law = task_covariance(tau=tau, alpha=2.0, kappa=kappa, rho=0.1, train=c, test=b)
    np.testing.assert_allclose((law.icl, law.idg), by_published_form(tau, 2.0, kappa, 0.1, c, b), rtol=1e-8)


SIMULATED = {  # d = 40: training, test, test context length
    "power law on itself": (power_law(40, 0.5), None, None),
    "turned, in longer prompts": (power_law(40, 0.5), power_law(40, 1.5)[::-1], 200),
    "matrices": (
        turned(40) * spiked(40, 4.0, rank=20) @ turned(40).T,
        turned(40, 1) * power_law(40, 1.0) @ turned(40, 1).T,
        30,
    ),
    "large signal": (3.0 * low_rank(40, 30), 2.0 * np.ones(40), None),
}


@pytest.mark.parametrize(("train", "test", "length"), SIMULATED.values(), ids=SIMULATED)
@pytest.mark.parametrize(("tau", "ridge"), [(4.0, 0.0), (0.5, 1e-3)])
def test_against_the_simulation(train, test, length, tau, ridge):
    """|simulation - theory| < 4 standard errors + c/d, with c = 8, the effect known at d = 40 (finite_size.md)."""
    d, seeds = 40, 10
    point = {"d": d, "tau": tau, "alpha": 2.0, "kappa": 2.0, "rho": 0.1, "ridge": ridge}
    runs = [
        icl.simulate.linear_attention(
            **point,
            tasks="gaussian",
            task_covariance=train,
            test_task_covariance=test,
            test_context_length=length,
            rng=i,
        )
        for i in range(seeds)
    ]
    law = task_covariance(**point, train=train, test=test, test_alpha=None if length is None else length / d)
    # an interpolating fit leaves no training error to compare
    for name in ("icl", "idg", "train") if tau > 1 else ("icl", "idg"):
        values = np.array([getattr(run, name) for run in runs])
        predicted = float(getattr(law, name))
        allowed = 4 * values.std(ddof=1) / math.sqrt(seeds) + 8 / d * predicted
        assert abs(values.mean() - predicted) < allowed, name


def test_the_simulation_approaches_theory_as_d_grows():
    ratios = []
    for d, seeds in ((16, 60), (64, 8)):
        c, b = power_law(d, 0.7), power_law(d, 1.0)[::-1]
        point = {"d": d, "tau": 4.0, "alpha": 2.0, "kappa": 1.0, "rho": 0.1}
        values = [
            icl.simulate.linear_attention(
                **point, tasks="gaussian", task_covariance=c, test_task_covariance=b, rng=i
            ).icl
            for i in range(seeds)
        ]
        ratios.append(np.mean(values) / task_covariance(**point, train=c, test=b).icl - 1)
    assert 0 < ratios[1] < 0.4 * ratios[0]  # 1/4, were it 1/d alone


def test_the_length_of_test_prompts():
    """Both errors are affine in 1/test_alpha, and those of equal length where it is alpha; training is as it was."""
    kwargs = {"tau": [0.5, 2.0], "alpha": 2.0, "kappa": 0.7, "rho": 0.2, "ridge": 0.01, "train": power_law(20, 1.0)}
    same = task_covariance(**kwargs, test=np.ones(20))
    nearly, long, endless = (task_covariance(**kwargs, test=np.ones(20), test_alpha=a) for a in (2 + 1e-9, 4.0, 1e12))
    for name in ("icl", "idg", "gap"):
        np.testing.assert_allclose(getattr(nearly, name), getattr(same, name), rtol=1e-8, err_msg=name)
        middle = (getattr(same, name) + getattr(endless, name)) / 2
        np.testing.assert_allclose(getattr(long, name), middle, rtol=1e-10, err_msg=name)
    np.testing.assert_allclose(long.icl - long.idg, long.gap, rtol=1e-12)
    np.testing.assert_array_equal(long.train, same.train)


def test_errors_scale_with_the_signal():
    c, b = power_law(20, 1.0), spiked(20, 5.0)
    kwargs = {"tau": [0.5, 2.0, 1.0], "alpha": 2.0, "kappa": 0.7, "test_alpha": 3.0}
    one = task_covariance(**kwargs, rho=0.2, ridge=[0.0, 0.1, 0.3], train=c, test=b)
    ten = task_covariance(**kwargs, rho=2.0, ridge=[0.0, 1.0, 3.0], train=10 * c, test=10 * b)
    for name in (*FIELDS, "misalignment"):
        np.testing.assert_allclose(getattr(ten, name), 10 * getattr(one, name), rtol=1e-12, err_msg=name)


def test_only_the_diagonal_in_the_eigenbasis_matters():
    d = 12
    c, b = power_law(d, 1.0), spiked(d, 5.0)[::-1]
    turn, other = turned(d), turned(d, 1)
    full = np.diag(b) + 0.3 * (np.ones((d, d)) - np.eye(d))
    full += 1.2 * np.eye(d)  # positive definite
    kwargs = {"tau": [0.5, 2.0], "alpha": 2.0, "kappa": 0.7, "rho": 0.1, "ridge": 0.01}
    reference = task_covariance(**kwargs, train=c, test=b + 1.2)
    for train, test in ((c, full), (np.diag(c), full), (turn * c @ turn.T, turn @ full @ turn.T)):
        law = task_covariance(**kwargs, train=train, test=test)
        np.testing.assert_allclose(law.icl, reference.icl, rtol=1e-11)
        np.testing.assert_allclose(law.gap, reference.gap, rtol=1e-11)
    # a vector stands for a diagonal in the token basis, as in the simulation, whatever the basis of training
    law = task_covariance(**kwargs, train=other * c @ other.T, test=b)
    again = task_covariance(**kwargs, train=c, test=other.T * b @ other)
    np.testing.assert_allclose(law.icl, again.icl, rtol=1e-11)
    isotropic = task_covariance(**kwargs, train=np.ones(d), test=b).icl
    np.testing.assert_allclose(isotropic, task_covariance(**kwargs, train=np.ones(d), test=np.ones(d)).icl, rtol=1e-13)


def test_weights_stand_for_repeated_eigenvalues():
    kwargs = {"tau": [0.5, 2.0], "alpha": 2.0, "kappa": 0.7, "rho": 0.1}
    long = task_covariance(
        **kwargs, train=np.repeat([3.0, 1.0, 0.0], [2, 5, 3]), test=np.repeat([0.1, 1.0, 2.0], [2, 5, 3])
    )
    short = task_covariance(**kwargs, train=[3.0, 1.0, 0.0], test=[0.1, 1.0, 2.0], weights=[0.4, 1.0, 0.6])
    for name in FIELDS:
        np.testing.assert_allclose(getattr(short, name), getattr(long, name), rtol=1e-13, err_msg=name)


def test_directions_never_seen_are_not_learnt():
    """Where C is 0, K = 1 + q x/nu^2: all of the signal is missed, and what was fitted there is noise."""
    c, unseen = low_rank(10, 4), low_rank(10, 5)[::-1]
    law = task_covariance(tau=3.0, alpha=2.0, kappa=[0.1, 0.4, 2.0, math.inf], rho=0.1, train=c, test=unseen)
    x = (0.1 + 1.0) / 2.0
    np.testing.assert_allclose(law.misalignment, 1.0 + law.idg / 3.0 / x, rtol=1e-12)
    assert all(few < more for few, more in pairwise(law.icl))  # more tasks harm
    same = task_covariance(tau=3.0, alpha=2.0, kappa=[0.1, 0.4, 2.0, math.inf], rho=0.1, train=c)
    assert all(few > more for few, more in pairwise(same.icl))


def test_the_gap_falls_like_one_over_kappa_where_training_and_test_agree():
    kwargs = {"tau": [0.5, 3.0], "alpha": 2.0, "rho": 0.1, "train": power_law(30, 1.0)}
    scaled = [task_covariance(**kwargs, kappa=kappa).gap * kappa for kappa in (1e6, 1e9, 1e12)]
    np.testing.assert_allclose(scaled[0], scaled[1], rtol=1e-4)
    np.testing.assert_allclose(scaled[1], scaled[2], rtol=1e-7)
    assert np.all(task_covariance(**kwargs, kappa=math.inf).gap == 0)


def test_at_the_threshold():
    law = task_covariance(tau=1, alpha=2, kappa=[0.5, math.inf], rho=0.1, train=power_law(9, 1), test=low_rank(9, 2))
    assert np.all(np.isposinf([law.icl, law.idg, law.misalignment]))
    assert np.all(law.train == 0)
    assert law.converged.all()
    same = task_covariance(tau=1, alpha=2, kappa=math.inf, rho=0.1, train=power_law(9, 1))
    assert same.gap == 0


positive = st.floats(1e-3, 1e3)


@settings(max_examples=150, deadline=None)
@given(
    tau=positive | st.just(math.inf),
    alpha=positive,
    kappa=positive | st.just(math.inf),
    rho=st.floats(0, 10),
    ridge=st.just(0.0) | st.floats(1e-12, 1e3),
    exponent=st.floats(0, 4),
    scale=st.floats(1e-3, 1e3),
    rank=st.integers(1, 20),
)
def test_certificates_and_identities(tau, alpha, kappa, rho, ridge, exponent, scale, rank):
    rho = 0.0 if rho < 1e-40 else rho
    c = scale * power_law(20, exponent) * (np.arange(20) < rank)
    b = power_law(20, 1.0)[::-1]
    law = task_covariance(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge, train=c, test=b)
    assert law.converged
    assert law.icl >= rho
    assert law.train <= law.idg * (1 + 1e-14)
    assert law.effective_ridge >= ridge * (1 - 1e-12)
    assert law.misalignment <= law.icl
    if math.isfinite(law.icl):
        assert law.icl - law.idg == pytest.approx(law.gap, abs=1e-11 * (law.icl + law.idg))


def test_a_false_root_is_not_certified(monkeypatch):
    """With one Newton step in place of a solution, the verified sign change is missing, and is missed."""
    monkeypatch.setattr("icltheory.theory.structured_spectrum._MAX_STEPS", 1)
    law = task_covariance(tau=[0.5, 3.0], alpha=2.0, kappa=0.3, rho=0.1, train=power_law(30, 1.5))
    assert not law.converged.any()


def test_broadcasting_and_blocks(monkeypatch):
    kwargs = {"rho": 0.1, "train": power_law(5, 1.0), "test": np.ones(5)}
    grid = {"tau": np.array([0.5, 1.0, 2.0])[:, None], "alpha": [1.0, 10.0], "kappa": 0.5, "ridge": [[0.0, 0.1]]}
    law = task_covariance(**grid, **kwargs, test_alpha=3.0)
    # the package's attribute of that name is the function
    monkeypatch.setattr(importlib.import_module("icltheory.theory.task_covariance"), "_BLOCK", 10)
    small = task_covariance(**grid, **kwargs, test_alpha=3.0)
    for name in (*FIELDS, "misalignment", "converged"):
        assert getattr(law, name).shape == (3, 2)
        np.testing.assert_allclose(getattr(law, name), getattr(small, name), rtol=1e-13, err_msg=name)
    alone = task_covariance(tau=2.0, alpha=10.0, kappa=0.5, ridge=0.1, **kwargs, test_alpha=3.0)
    assert alone.icl.shape == ()
    assert alone.icl == pytest.approx(law.icl[2, 1], rel=1e-13)
    assert task_covariance(tau=[], alpha=1.0, kappa=1.0, **kwargs).icl.shape == (0,)


GOOD = {"tau": 2.0, "alpha": 1.0, "kappa": 0.5, "rho": 0.1, "train": [1.5, 0.5]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": -1.0}, "tau must be > 0, got -1"),
        ({"test_alpha": 0.0}, "test_alpha must be > 0, got 0"),
        ({"test_alpha": [1.0, -math.inf]}, "test_alpha must be > 0, got -inf at index"),
        ({"train": [1.0, -0.5]}, "train must be positive semidefinite, got the eigenvalue -0.5"),
        ({"test": [1.0, 1.0, 1.0]}, r"test must have shape \(d,\) = \(2,\)"),
        ({"train": [0.0, 0.0]}, "train must have a largest eigenvalue between"),
        ({"train": [[1.0, 0.9], [0.0, 1.0]]}, "train must be symmetric"),
        ({"weights": [1.0, 0.0]}, "weights must be > 0 and finite, got 0 at index 1"),
        ({"weights": [1.0]}, r"weights must have the shape of train, \(2,\), got \(1,\)"),
        ({"weights": [0.5, 0.5], "train": np.eye(2)}, "train must be eigenvalues"),
        ({"d": 3}, r"train must have shape \(d,\) = \(3,\)"),
    ],
)
def test_errors_name_the_argument(change, message):
    with pytest.raises(ValueError, match=message):
        task_covariance(**{**GOOD, **change})


@pytest.mark.parametrize(("name", "value"), [("weights", "ab"), ("test_alpha", "long"), ("train", "steep")])
def test_things_that_are_not_numbers(name, value):
    with pytest.raises(TypeError, match=f"{name} must be"):
        task_covariance(**{**GOOD, name: value})


def test_sizes_give_the_realised_ratios():
    point = icl.Point.of(d=13, tau=0.77, alpha=0.9, kappa=0.3, rho=0.1, ridge=0.2)
    spectrum = power_law(13, 1.0)
    law = task_covariance(d=13, tau=0.77, alpha=0.9, kappa=0.3, rho=0.1, ridge=0.2, train=spectrum)
    assert law.icl == task_covariance(**point.ratios(), train=spectrum).icl


@pytest.mark.parametrize("test_alpha", [0.3, 5.0, math.inf])
def test_other_context_lengths_of_isotropic_tasks(test_alpha):
    """The closed form for isotropic tasks is the special case, endless test contexts included."""
    point = {"tau": [0.5, 3.0], "alpha": 2.0, "kappa": 0.7, "rho": 0.2, "ridge": 0.1, "test_alpha": test_alpha}
    law, closed = task_covariance(**point, train=np.ones(3)), icl.theory.other_context_length(**point)
    for risk in ("icl", "idg", "train", "gap"):
        assert getattr(law, risk) == pytest.approx(getattr(closed, risk), rel=1e-10)
