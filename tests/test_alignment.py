"""Measures of alignment against dense-matrix twins, their invariances, and rank correlations against scipy's."""

import math

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import spearmanr

from icltheory.prompts.covariance import low_rank, power_law, spiked
from icltheory.theory.alignment import MEASURES, AlignmentTable, alignment_kernel, alignment_table, rank_correlations
from icltheory.theory.task_covariance import task_covariance

POINT = {"tau": 3.0, "alpha": 2.0, "kappa": 0.7, "rho": 0.1}
D = 12


def turned(seed=0, d=D):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def wishart(seed, d=D):
    w = np.random.default_rng(seed).standard_normal((2 * d, d))
    return w.T @ w / (2 * d)


def only(train, test, **change):
    """Return the measures of a single test covariance."""
    table = alignment_table(**{**POINT, **change}, train=train, tests={"b": test})
    return {name: values.item() for name, values in table.measures.items()}


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("tau", [0.5, 3.0])
def test_the_error_is_affine_in_the_misalignment(tau, ridge):
    """Equal signal variance: errors differ by trd (B - B') K, in test prompts of any length."""
    c, first, second = wishart(0), power_law(D, 1.5), wishart(1)
    second *= D / np.trace(second)
    kernel = alignment_kernel(**{**POINT, "tau": tau, "ridge": ridge}, train=c)
    difference = np.trace((np.diag(first) - second) @ kernel) / D
    for length in (None, 0.3, 50.0):
        errors = [
            task_covariance(**{**POINT, "tau": tau, "ridge": ridge}, train=c, test=b, test_alpha=length).icl
            for b in (first, second)
        ]
        assert errors[0] - errors[1] == pytest.approx(difference, rel=1e-10)


def test_the_kernel_is_that_of_a_sampled_matrix():
    """K = nu^2 G^2 + q R G^2 of one sample covariance, averaged: diagonal, and as predicted."""
    d, draws, rng = 150, 40, np.random.default_rng(0)
    c = power_law(d, 0.7)
    kwargs = {**POINT, "kappa": 0.8}
    predicted = alignment_kernel(**kwargs, train=c)
    law = task_covariance(**kwargs, train=c)
    x, q = (0.1 + 1.0) / 2.0, float(law.idg) / 3.0
    kernels = []
    for _ in range(draws):
        w = rng.standard_normal((round(0.8 * d), d)) * np.sqrt(c)
        a = w.T @ w / len(w)
        g = np.linalg.inv(a + x * np.eye(d))
        kernels.append(np.diag(x**2 * g @ g + q * (a + x * np.eye(d)) @ g @ g))
    error = np.std(kernels, axis=0, ddof=1) / math.sqrt(draws)
    # 150 directions at 1 % by Bonferroni and Student: 4.6 standard errors; and O(1/d)
    assert np.all(np.abs(np.mean(kernels, axis=0) - predicted) < 4.6 * error + 1 / d * predicted)


def test_the_kernel_has_the_form_of_the_training_covariance():
    c, turn = power_law(D, 1.0), turned()
    values = alignment_kernel(**POINT, train=c)
    assert values.shape == (D,)
    assert np.all(np.diff(values) > 0)  # strong in training, easy in the test
    matrix = alignment_kernel(**POINT, train=turn * c @ turn.T)
    np.testing.assert_allclose(matrix, turn * values @ turn.T, atol=1e-12)


def slow_measures(c, b, fraction=0.9):
    """Measures of dense, invertible matrices by the most literal formulas."""
    d = len(c)
    h = np.eye(d) - np.ones((d, d)) / d

    def cosine(m, n):
        return np.trace(m @ n.T) / math.sqrt(np.trace(m @ m.T) * np.trace(n @ n.T))

    values, vectors = np.linalg.eigh(c)
    count = 1
    while values[-count:].sum() < fraction * values.sum():
        count += 1
    leading = vectors[:, -count:]
    root = sqrtm(c)
    ratio = np.linalg.slogdet(c)[1] - np.linalg.slogdet(b)[1]
    return {
        "inverse": np.trace(b @ np.linalg.inv(c)) / d,
        "cka": cosine(h @ c @ h, h @ b @ h),
        "cosine": cosine(c, b),
        "captured": np.trace(leading.T @ b @ leading) / np.trace(b),
        "frobenius": math.sqrt(np.trace((b - c) @ (b - c)) / d),
        "bures": math.sqrt(np.trace(b + c - 2 * np.real(sqrtm(root @ b @ root))) / d),
        "divergence": 0.5 * (np.trace(np.linalg.solve(c, b)) - d + ratio) / d,
    }


@pytest.mark.parametrize(
    ("c", "b"),
    [
        (wishart(0), wishart(1)),
        (power_law(D, 0.7), wishart(2)),
        (wishart(3), spiked(D, 4.0)[::-1]),
        (power_law(D, 0.7), 3 * power_law(D, 1.5)[::-1]),
    ],
)
def test_measures_are_their_definitions(c, b):
    found = only(c, b)
    dense = [np.diag(m) if m.ndim == 1 else m for m in (c, b)]
    for name, value in slow_measures(*dense).items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
    kernel = alignment_kernel(**POINT, train=dense[0])
    assert found["misalignment"] == pytest.approx(np.trace(kernel @ dense[1]) / D, rel=1e-10)
    law = task_covariance(**POINT, train=c, test=b)
    assert found["misalignment"] == pytest.approx(law.misalignment, rel=1e-10)


def test_the_resolvent_solves_its_equation():
    """F = (sC + nu)^{-1} with s = 1 - 1/kappa + nu trd F/kappa, read off tests along each direction."""
    c = power_law(D, 1.0)
    tests = {str(i): D * np.eye(D)[i] for i in range(D)}
    f = alignment_table(**POINT, train=c, tests=tests).measures["resolvent"]
    nu = (0.1 + 1.0) / 2.0
    s = 1 - 1 / 0.7 + nu / 0.7 * f.mean()
    np.testing.assert_allclose(f, 1 / (s * c + nu), rtol=1e-12)


def test_measures_do_not_depend_on_the_basis_but_for_the_centred_one():
    c, b, turn = wishart(0), wishart(1), turned()
    before, after = only(c, b), only(turn @ c @ turn.T, turn @ b @ turn.T)
    for name in MEASURES:
        if name != "cka":
            assert after[name] == pytest.approx(before[name], rel=1e-8), name
    assert abs(after["cka"] - before["cka"]) > 1e-3


@pytest.mark.parametrize("c", [power_law(D, 1.0), wishart(0)])
def test_a_covariance_is_aligned_with_itself(c):
    found = only(c, c)
    assert found["cosine"] == pytest.approx(1, rel=1e-14)
    assert found["cka"] == pytest.approx(1, rel=1e-14)
    assert found["inverse"] == pytest.approx(1, rel=1e-10)
    for name in ("frobenius", "divergence"):
        assert found[name] == pytest.approx(0, abs=1e-12)
    assert found["bures"] == pytest.approx(0, abs=1e-7)  # the root of rounding


def test_singular_covariances():
    c = low_rank(D, 4)
    inside, outside = only(c, low_rank(D, 2)), only(c, np.ones(D))
    assert inside["inverse"] == pytest.approx(1 / 3)  # trace D in directions of variance 3, over D
    assert math.isinf(outside["inverse"])
    assert inside["captured"] == pytest.approx(1)
    assert outside["captured"] == pytest.approx(4 / D)
    assert math.isinf(only(np.ones(D), c)["divergence"])
    assert math.isinf(outside["divergence"])
    as_matrix = only(turned() * c @ turned().T, turned() * low_rank(D, 2) @ turned().T)
    assert as_matrix["inverse"] == pytest.approx(1 / 3)


def test_captured_variance_shares_an_eigenspace():
    """Half of the trace of the identity is held by half of its eigenspace, whichever half."""
    assert only(np.ones(D), power_law(D, 1.0))["captured"] == pytest.approx(11 / 12)  # .9 D = 10.8 directions
    table = alignment_table(**POINT, train=np.ones(D), tests={"b": power_law(D, 1.0)}, fraction=0.5)
    assert table.measures["captured"] == pytest.approx(0.5)
    table = alignment_table(**POINT, train=[4.0, 1.0, 1.0], tests={"b": [0.0, 3.0, 0.0]}, fraction=0.8)
    assert table.measures["captured"] == pytest.approx(0.5)  # the first, and one of the other two


def test_isotropic_centred_matrices_have_no_direction():
    found = only(np.ones(D), np.ones((D, D)))
    assert found["cka"] == 0  # the constant matrix is centred to 0


def test_rank_correlations_are_those_of_scipy():
    c = power_law(D, 1.0)
    tests = {f"{i}": wishart(i) for i in range(8)} | {f"low {r}": low_rank(D, r) for r in (2, 5, 9)}
    table = alignment_table(**POINT, train=c, tests=tests)
    errors = np.random.default_rng(0).integers(4, size=11)  # with ties
    for target in (None, errors):
        found = rank_correlations(table, target)
        for name, rises in MEASURES.items():
            expected = spearmanr(table.measures[name], table.icl if target is None else target).statistic
            assert found[name] == pytest.approx(expected if rises else -expected, abs=1e-13), name
    assert sum(np.isinf(table.measures["divergence"])) == 3


def test_where_training_is_isotropic_alignment_means_nothing():
    """At equal signal variance every test has the same error: K is a multiple of the identity."""
    tests = {str(p): power_law(D, p) for p in (0.0, 1.0, 2.0)}
    table = alignment_table(**POINT, train=np.ones(D), tests=tests)
    np.testing.assert_allclose(table.icl, table.icl[0], rtol=1e-13)
    flat = AlignmentTable(tests=table.tests, measures={m: np.ones(3) for m in MEASURES}, icl=table.icl)
    assert all(math.isnan(value) for value in rank_correlations(flat).values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fraction": 0.0}, r"fraction must be in \(0, 1\], got 0"),
        ({"kappa": 0.0}, "kappa must be > 0, got 0"),
        ({"tests": {"b": [1.0]}}, r"tests\['b'\] must have shape"),
        ({"tests": {"b": [1.0, -1.0]}}, r"tests\['b'\] must be positive semidefinite"),
    ],
)
def test_errors_name_the_argument(change, message):
    kwargs = {**POINT, "train": [1.5, 0.5], "tests": {"b": [1.0, 1.0]}}
    with pytest.raises(ValueError, match=message):
        alignment_table(**{**kwargs, **change})


def test_one_point_at_a_time():
    with pytest.raises(TypeError, match=r"tau must be one number here, got an array of shape \(2,\)"):
        alignment_kernel(**{**POINT, "tau": [1.0, 2.0]}, train=[1.0, 1.0])


def test_errors_to_be_ranked_are_checked():
    table = alignment_table(**POINT, train=[1.5, 0.5], tests={"b": [1.0, 1.0], "c": [0.5, 1.5]})
    for wrong in ([1.0], [1.0, math.nan]):
        with pytest.raises(ValueError, match="errors must be 2 numbers, one a test of the table"):
            rank_correlations(table, wrong)


def test_a_table_of_nothing_is_refused():
    with pytest.raises(ValueError, match="tests must name at least one test covariance"):
        alignment_table(tau=1, alpha=1, kappa=1, rho=0.1, train=[1, 2], tests={})
