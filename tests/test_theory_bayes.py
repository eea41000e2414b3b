"""The Bayes benchmarks against quadrature over spectra, brute force over tasks, exact limits and the estimators."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

import icltheory as icl
from icltheory.theory import (
    bayes,
    bayes_discrete,
    bayes_discrete_finite,
    bayes_finite,
    bayes_ridge,
    nearest_task,
    nearest_task_exponent,
)

LAWS = ("gaussian", "sphere")


def trd(f, alpha):
    """Average over the spectrum of X^T X: eigenvalues alpha a, a of the Marchenko-Pastur law, and zeros."""
    low, high = (math.sqrt(alpha) - 1) ** 2, (math.sqrt(alpha) + 1) ** 2

    def at_angle(angle):
        s = low + (high - low) * math.cos(angle / 2) ** 2
        return f(s) * ((high - low) * math.sin(angle / 2) * math.cos(angle / 2)) ** 2 / (2 * math.pi * s)

    continuous = integrate.quad(at_angle, 0, math.pi, epsabs=1e-12, epsrel=1e-10, limit=500)[0]
    return continuous + max(1 - alpha, 0) * f(0.0)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.5, 20.0])
@pytest.mark.parametrize("rho", [0.01, 0.3, 4.0])
def test_ridge_against_quadrature(alpha, rho):
    """Bias rho^2 trd G^2 and variance rho trd X^T X G^2, not yet added up to rho trd G."""
    expected = rho + trd(lambda s: (rho**2 + rho * s) / (s + rho) ** 2, alpha)
    assert bayes_ridge(alpha=alpha, rho=rho) == pytest.approx(expected, rel=1e-10)


def test_ridge_at_the_ends():
    np.testing.assert_array_equal(bayes_ridge(alpha=[0.25, 1.0, 3.0], rho=0.0), [0.75, 0.0, 0.0])
    rho = np.array([1e-50, 1e-30, 1e-8])
    np.testing.assert_allclose(bayes_ridge(alpha=1.0, rho=rho), rho / 2 + np.sqrt(rho + rho**2 / 4), rtol=1e-14)
    np.testing.assert_allclose(bayes_ridge(alpha=3.0, rho=rho) / rho, 1.5, rtol=1e-7)
    assert bayes_ridge(alpha=1.0, rho=1e50) == 1e50
    assert bayes_ridge(d=10, context_length=15, rho=0.1) == bayes_ridge(alpha=1.5, rho=0.1)
    with pytest.raises(TypeError, match="alpha"):
        bayes_ridge(rho=0.1)


@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_ridge_against_the_estimator(alpha):
    d, rho = 100, 0.2
    rng, length = np.random.default_rng(1), round(alpha * d)
    theory = bayes_ridge(alpha=alpha, rho=rho)
    traces = []
    for _ in range(20):
        x = rng.standard_normal((length, d)) / math.sqrt(d)
        traces.append(np.trace(np.linalg.inv(x.T @ x + rho * np.eye(d))) / d)
    assert rho + rho * np.mean(traces) == pytest.approx(float(theory), rel=0.01)
    b = 1000
    x, w = rng.standard_normal((b, length + 1, d)) / math.sqrt(d), rng.standard_normal((b, d))
    y = np.einsum("bld,bd->bl", x, w) + math.sqrt(rho) * rng.standard_normal((b, length + 1))
    error = (icl.bayes.ridge(x[:, :-1], y[:, :-1], x[:, -1], rho) - y[:, -1]) ** 2
    assert abs(error.mean() - theory) < 4 * error.std() / math.sqrt(b)


# ---- the nearest task


def slow_sphere(d, k):
    """Integrate the survival function of the nearest distance, in log distance where it is small."""
    half = (d - 1) / 2

    def farther(x):
        return math.exp(k * special.log1p(-special.betainc(half, half, x))) if x < 1 else 0.0

    ends = [0.0, *np.geomspace(1e-14, 0.1, 27), *np.linspace(0.1, 1, 181)[1:]]
    pieces = [
        integrate.quad(farther, a, b, epsrel=1e-10, epsabs=1e-14, limit=200)[0] for a, b in itertools.pairwise(ends)
    ]
    return 4 * sum(pieces)


def slow_gaussian(d, k):
    """Integrate the survival function over distances, and over |w|^2, on plain grids."""
    r = np.linspace(1e-12, math.sqrt(d) + 9, 701)
    y = np.linspace(-34, math.log((math.sqrt(d) + 12) ** 2 * 4), 4000)
    t = np.exp(y)[None, :]
    farther = np.exp(k * np.log1p(-np.minimum(stats.ncx2.cdf(t, d, r[:, None] ** 2), 1 - 1e-16)))
    at_norm = np.trapezoid(farther * t, y, axis=1) + t[0, 0]
    return np.trapezoid(at_norm * stats.chi.pdf(r, d), r) / d


@pytest.mark.parametrize(("d", "k"), [(2, 5), (2, 300), (3, 1), (7, 50), (10, 10**4), (64, 128), (400, 10**9)])
def test_nearest_on_the_sphere_against_quadrature(d, k):
    assert nearest_task(d=d, n_tasks=k, tasks="sphere") == pytest.approx(slow_sphere(d, k), rel=1e-10)


@pytest.mark.parametrize(("d", "k"), [(1, 20), (2, 7), (3, 1000), (10, 100), (64, 64)])
def test_nearest_gaussian_against_quadrature(d, k):
    assert nearest_task(d=d, n_tasks=k) == pytest.approx(slow_gaussian(d, k), rel=2e-5)


def test_nearest_where_it_is_known():
    k = np.array([[1, 2, 10], [1000, 10**8, 10**15]])
    np.testing.assert_allclose(nearest_task(d=3, n_tasks=k, tasks="sphere"), 4 / (k + 1.0), rtol=1e-12)
    np.testing.assert_allclose(nearest_task(d=1, n_tasks=k, tasks="sphere"), 4 * 0.5 ** k.astype(float))
    np.testing.assert_allclose(nearest_task(d=1, n_tasks=k, tasks="sphere")[0], [2, 1, 4 / 1024])
    for d, law in [
        (1, "gaussian"),
        (2, "gaussian"),
        (50, "gaussian"),
        (300, "gaussian"),
        (2, "sphere"),
        (90, "sphere"),
    ]:
        assert nearest_task(d=d, n_tasks=1, tasks=law) == pytest.approx(2.0, abs=1e-10)
    # min(a^2, b^2) = (a^2 + b^2 - |a - b| |a + b|)/2, with a - b and a + b independent of variances 2 and 6
    assert nearest_task(d=1, n_tasks=2) == pytest.approx(2 - 2 * math.sqrt(3) / math.pi, rel=1e-10)


@pytest.mark.parametrize("law", LAWS)
def test_nearest_against_samples(law):
    d, k, n = 6, 40, 4000
    rng = np.random.default_rng(3)
    w, tasks = rng.standard_normal((n, 1, d)), rng.standard_normal((n, k, d))
    if law == "sphere":
        w, tasks = (math.sqrt(d) * a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (w, tasks))
    nearest = ((w - tasks) ** 2).sum(-1).min(-1) / d
    assert abs(nearest.mean() - nearest_task(d=d, n_tasks=k, tasks=law)) < 4 * nearest.std() / math.sqrt(n)


@pytest.mark.parametrize(("law", "slope"), [("gaussian", -0.2241), ("sphere", -0.2502)])
def test_slopes_over_two_decades(law, slope):
    k = np.unique(np.round(np.geomspace(10, 1000, 9)))
    fitted = np.polyfit(np.log(k), np.log(nearest_task(d=10, n_tasks=k, tasks=law)), 1)[0]
    assert f"{fitted:.4f}" == f"{slope:.4f}"
    exponents = nearest_task_exponent(d=10, n_tasks=k, tasks=law)
    assert exponents.min() < slope < exponents.max()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("d", "k"), [(1, 5), (2, 40), (5, 10**4), (64, 100), (64, 10**12)])
def test_exponent_is_the_derivative(law, d, k):
    near = np.array([k, k + max(1, k // 1000)])
    if law == "sphere" and d == 1:
        assert nearest_task_exponent(d=1, n_tasks=k, tasks=law) == pytest.approx(-k * math.log(2))
        return
    logs = np.log(nearest_task(d=d, n_tasks=near, tasks=law))
    between = (logs[1] - logs[0]) / np.log(near[1] / near[0])
    ends = nearest_task_exponent(d=d, n_tasks=near, tasks=law)
    assert between == pytest.approx(ends.mean(), rel=2e-3 if k < 10 else 1e-5 if k > 1000 else 2e-4)


def test_exponents_of_endless_lists():
    assert nearest_task_exponent(d=5, n_tasks=10**15) == pytest.approx(-2 / 5, rel=1e-4)
    assert nearest_task_exponent(d=5, n_tasks=10**15, tasks="sphere") == pytest.approx(-2 / 4, rel=1e-4)


def test_nearest_errors():
    for bad in (0, 2.5, 1e16, math.inf):
        with pytest.raises(ValueError, match="n_tasks must be"):
            nearest_task(d=3, n_tasks=bad)
    with pytest.raises(ValueError, match="d must be"):
        nearest_task(d=0, n_tasks=3)
    with pytest.raises(ValueError, match="tasks"):
        nearest_task(d=3, n_tasks=3, tasks="cube")


# ---- dMMSE as d -> infinity


def slow_tempered(b, alpha, rho, law):
    """KL/d and the frozen error at an inverse temperature, straight from the Gaussian that the posterior is."""

    def with_multiplier(mu):
        z = mu * rho / b
        mean2 = trd(lambda s: s * (s + rho) / (s + z) ** 2, alpha)
        cov = trd(lambda s: rho / b / (s + z), alpha)
        return z, mean2, cov

    mu = 1.0
    if law == "sphere":
        mu = optimize.brentq(lambda m: sum(with_multiplier(m)[1:]) - 1, 1e-9, 1.0 + 1e-9, xtol=1e-14)
    z, mean2, cov = with_multiplier(mu)
    log_cov = trd(lambda s: math.log(rho / b / (s + z)), alpha)
    divergence = (cov + mean2 - 1 - log_cov) / 2
    miss = trd(lambda s: z**2 / (s + z) ** 2 + rho * s / (s + z) ** 2, alpha)
    return divergence, rho + miss + (1 - b) * cov


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("alpha", "rho"), [(0.5, 0.2), (1.0, 1.0), (2.0, 0.05), (8.0, 0.5)])
def test_discrete_against_quadrature(law, alpha, rho):
    for b in (0.05, 0.4, 0.9):
        rate, error = slow_tempered(b, alpha, rho, law)
        found = bayes_discrete(alpha=alpha, rho=rho, rate=rate, tasks=law)
        assert found.condensation == pytest.approx(1 - b, rel=1e-9)
        assert found.icl == pytest.approx(error, rel=1e-9)
        assert found.idg == rho
        assert found.gap == pytest.approx(error - rho, rel=1e-9)
        assert found.converged
    information = trd(lambda s: math.log1p(s / rho), alpha) / 2
    assert found.critical_rate == pytest.approx(information, rel=1e-10)
    assert slow_tempered(1.0, alpha, rho, law)[0] == pytest.approx(information, rel=1e-9)
    ridge = bayes_ridge(alpha=alpha, rho=rho)
    sides = bayes_discrete(alpha=alpha, rho=rho, rate=information * np.array([1 - 1e-9, 1 + 1e-9]), tasks=law)
    np.testing.assert_allclose(sides.icl, ridge, rtol=1e-7)
    np.testing.assert_allclose(sides.idg, [rho, ridge], rtol=1e-14)


def test_discrete_where_it_is_known():
    c = np.array([0.0, 0.01, 0.3, 2.0])
    clean = bayes_discrete(alpha=1e6, rho=1e-6, rate=c, tasks="sphere")
    np.testing.assert_allclose(clean.icl - 1e-6, 2 * (1 - np.sqrt(1 - np.exp(-2 * c))), rtol=1e-5)
    for law in LAWS:
        one = bayes_discrete(alpha=0.7, rho=0.3, d=30, n_tasks=[1, math.inf], tasks=law)
        ridge = float(bayes_ridge(alpha=0.7, rho=0.3))
        np.testing.assert_allclose(one.icl, [2.3, ridge], rtol=1e-14)
        np.testing.assert_allclose(one.idg, [0.3, ridge])
        np.testing.assert_array_equal(one.condensation, [1.0, 0.0])
        # no noise: one task that fits, with a posterior of its own spread off the data
        np.testing.assert_allclose(
            bayes_discrete(alpha=[0.4, 2.0], rho=0.0, rate=500.0, tasks=law).icl, [1.2, 0.0], atol=1e-90
        )
        noiseless = bayes_discrete(alpha=2.0, rho=[0.0, 1e-12], rate=0.4, tasks=law)
        assert noiseless.icl[0] == pytest.approx(noiseless.icl[1], rel=1e-9)
    assert bayes_discrete(alpha=2.0, rho=0.0, rate=1.0).critical_rate == math.inf
    sizes = bayes_discrete(d=10, context_length=20, rho=0.1, kappa=5.0)
    assert sizes.icl == bayes_discrete(alpha=2.0, rho=0.1, rate=math.log(50) / 10).icl


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("z", [1e-8, 0.3, 3.0, 1e6])
def test_divergence_keeps_its_digits(law, z):
    alpha, noise = 1.5, 1e-9
    with mpmath.workdps(60):
        a, x, rho = mpmath.mpf(alpha), mpmath.mpf(z), mpmath.mpf(noise)
        d = mpmath.sqrt((x + a - 1) ** 2 + 4 * x)
        f = 2 / (x + a - 1 + d)
        n = f - x * f * (1 + f) / d
        log_det = a * mpmath.log1p(f) - mpmath.log(x * f) + x * f - 1
        rest = (x - rho) * n if law == "gaussian" else mpmath.log(1 + (x - rho) * n / (x * f))
        expected = float((log_det - rest) / 2)
    found = bayes.divergence(np.array(z), np.array(alpha), np.array(noise), law)
    assert found == pytest.approx(expected, rel=1e-13)


@settings(max_examples=50, deadline=None)
@given(*[st.floats(-50, 50)] * 2, st.floats(-40, 3), st.sampled_from(LAWS))
def test_discrete_is_certified_everywhere(log_alpha, log_rho, log_rate, law):
    found = bayes_discrete(alpha=10**log_alpha, rho=[0.0, 10**log_rho], rate=10**log_rate, tasks=law)
    assert found.converged.all()
    floor = bayes_ridge(alpha=10**log_alpha, rho=[0.0, 10**log_rho])
    assert np.all(found.icl >= floor * (1 - 1e-9))
    assert np.all(found.icl <= (2.0 + np.array([0.0, 10**log_rho])) * (1 + 1e-9))


def test_discrete_errors():
    with pytest.raises(TypeError, match="missing rate"):
        bayes_discrete(alpha=1.0, rho=0.1)
    with pytest.raises(TypeError, match="need d as well"):
        bayes_discrete(alpha=1.0, rho=0.1, kappa=2.0)
    with pytest.raises(ValueError, match="give rate or the tasks"):
        bayes_discrete(alpha=1.0, rho=0.1, d=10, kappa=2.0, rate=0.1)
    with pytest.raises(ValueError, match=r"rate must be >= 0, got -0\.1"):
        bayes_discrete(alpha=1.0, rho=0.1, rate=-0.1)
    with pytest.raises(ValueError, match="rate must be >= 0"):
        bayes_discrete(alpha=1.0, rho=0.1, rate=math.nan)
    with pytest.raises(TypeError, match="rate must be a number"):
        bayes_discrete(alpha=1.0, rho=0.1, rate="much")
    with pytest.raises(ValueError, match="tasks"):
        bayes_discrete(alpha=1.0, rho=0.1, rate=0.1, tasks="cube")


# ---- dMMSE at finite d


def test_finite_tends_to_the_limit():
    """The correction is of order log(d)/d, above for fresh tasks: the rate counts for less."""
    for law in LAWS:
        limit = bayes_discrete(alpha=1.0, rho=0.3, rate=0.05, tasks=law)
        excess = []
        for d in (80, 160, 320, 640):
            k = round(math.exp(0.05 * d))
            excess.append(float(bayes_discrete_finite(d=d, alpha=1.0, rho=0.3, n_tasks=k, tasks=law).icl - limit.icl))
        scaled = np.array(excess) * np.array([80, 160, 320, 640]) / np.log([80, 160, 320, 640])
        assert np.all(np.array(excess) > 0)
        assert scaled.max() / scaled.min() < 1.35, scaled
        assert excess[-1] < 0.05


@pytest.mark.parametrize("law", LAWS)
def test_finite_at_the_ends(law):
    found = bayes_discrete_finite(d=30, alpha=2.0, rho=[[0.0], [0.4]], n_tasks=[1, math.inf], tasks=law)
    ridge = bayes_ridge(alpha=2.0, rho=[0.0, 0.4])
    np.testing.assert_allclose(found.icl[:, 0], [2.0, 2.4], rtol=1e-4)
    np.testing.assert_allclose(found.icl[:, 1], ridge, atol=1e-8)
    np.testing.assert_allclose(found.idg, np.array([[0.0, ridge[0]], [0.4, ridge[1]]]), atol=1e-8)
    many = bayes_discrete_finite(d=30, alpha=2.0, rho=[2.0, 1e6], n_tasks=10**15, tasks=law)
    np.testing.assert_allclose(many.icl - [2.0, 1e6], bayes_ridge(alpha=2.0, rho=[2.0, 1e6]) - [2.0, 1e6], rtol=1e-3)
    np.testing.assert_allclose(many.gap, 0.0, atol=1e-3)
    alone = bayes_discrete_finite(d=5, alpha=0.4, rho=5.0, n_tasks=[1, 2], tasks=law)
    assert alone.idg[0] == 5.0
    assert alone.idg[1] > 5.4
    with pytest.raises(ValueError, match="n_tasks must be at most"):
        bayes_discrete_finite(d=30, alpha=2.0, rho=0.1, n_tasks=1e16)
    with pytest.raises(ValueError, match="d must be at least 4"):
        bayes_discrete_finite(d=3, alpha=2.0, rho=0.1, n_tasks=10)


def test_finite_is_the_nearest_task_in_clean_prompts():
    """On the sphere what is left is O(1/d), small already for few tasks; Gaussian tasks have norms that spread."""
    k = np.array([2, 16, 64, 2048])
    for law, allowed in (("sphere", [2e-4, 1e-3, 1e-3, 3e-3]), ("gaussian", [6e-3] * 4)):
        found = bayes_discrete_finite(d=64, alpha=1e4, rho=1e-4, n_tasks=k, tasks=law)
        exact = nearest_task(d=64, n_tasks=k, tasks=law)
        assert np.all(np.abs((found.icl - 1e-4) / exact - 1) < allowed)


@pytest.mark.parametrize(("rho", "k"), [(0.5, 5), (0.5, 300), (0.02, 40)])
def test_integral_over_s_is_a_posterior_mean(rho, k):
    """Draw lists of tasks from the levels themselves, energies uniform within a cell, and weigh them."""
    d, alpha = 15, 2.0
    levels = bayes_finite._levels(d, np.array(alpha), np.array(rho), k, "gaussian")
    rng = np.random.default_rng(0)
    errors, squares = [], []
    for _ in range(4000):
        cell = rng.choice(levels.share.size, size=k, p=levels.share)
        energy = levels.energy[cell] + (levels.energy[cell + 1] - levels.energy[cell]) * rng.random(k)
        p = np.exp(energy.min() - energy)
        p /= p.sum()
        c = levels.overlap[np.ix_(cell, cell)]
        np.fill_diagonal(c, levels.distance[cell])
        errors.append(p @ c @ p)
        squares.append(p @ p)
    error, _, square = bayes_finite._errors(d, alpha, rho, k, "gaussian")
    assert abs(np.mean(errors) - error) < 4 * np.std(errors) / math.sqrt(4000) + 1e-3
    assert abs(np.mean(squares) - square) < 4 * np.std(squares) / math.sqrt(4000) + 1e-3


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_products_of_means_against_quadrature(alpha):
    z, rho = np.array([1e-3, 0.3, 0.3 * (1 + 1e-7), 0.35, 40.0]), 0.2
    found = bayes_finite._products(z, bayes.Traces.of(z, np.array(alpha)), np.array(rho))
    slow = [[trd(lambda s, a=a, b=b: s * (s + rho) / ((s + a) * (s + b)), alpha) for a in z] for b in z]
    np.testing.assert_allclose(found, slow, rtol=1e-6)


def test_entire_exponential_integral():
    x = np.array([1e-12, 0.01, 0.499, 0.501, 3.0, 400.0])
    slow = [integrate.quad(lambda t: -math.expm1(-t) / t, 0, end, epsabs=0, epsrel=1e-12, limit=200)[0] for end in x]
    np.testing.assert_allclose(bayes_finite._ein(np.log(x), x), slow, rtol=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("alpha", "rho"), [(1.0, 1.0), (2.0, 0.1)])
def test_information_density_of_the_own_task(law, alpha, rho):
    """Sample prompts: how likely the data are under their task against the prior, and how far its posterior mean is."""
    d, n, rng = 60, 3000, np.random.default_rng(5)
    x = rng.standard_normal((n, round(alpha * d), d)) / math.sqrt(d)
    w, noise = rng.standard_normal((n, d)), math.sqrt(rho) * rng.standard_normal(x.shape[:2])
    if law == "sphere":
        w *= math.sqrt(d) / np.linalg.norm(w, axis=1, keepdims=True)
    s, basis = np.linalg.eigh(x.transpose(0, 2, 1) @ x)
    y = np.einsum("bld,bd->bl", x, w) + noise
    seen = np.einsum("bdi,bd->bi", basis, np.einsum("bld,bl->bd", x, y))
    density = (np.log1p(s / rho).sum(1) + ((y**2).sum(1) - (seen**2 / (s + rho)).sum(1) - (noise**2).sum(1)) / rho) / 2
    error = ((seen / (s + rho) - np.einsum("bdi,bd->bi", basis, w)) ** 2).mean(1) / (
        bayes_ridge(alpha=alpha, rho=rho) - rho
    )
    rate = bayes_discrete(alpha=alpha, rho=rho, rate=0.0).critical_rate
    log_s = d / 2 + density.std() * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    sample = np.exp(-np.exp(np.minimum(log_s[:, None] - d / 2 + density - d * rate, 6.0))) * error
    found = bayes_finite._true_task(log_s, d, np.array(alpha), np.array(rho), law)
    traces = bayes.Traces.of(np.array(rho), np.array(alpha))
    variance, covariance = bayes_finite._dispersion(traces, np.array(rho), law)
    product = -(density - density.mean()) * (error - error.mean()) * traces.q
    assert abs(density.var() / d - variance) < 4 * variance * math.sqrt(2 / n) + 1 / d
    assert abs(product.mean() - covariance) < 4 * product.std() / math.sqrt(n) + 1 / d
    # terms of O(1) in the density, which the limit leaves out, against its spread
    allowed = 4 * sample.std(axis=1) / math.sqrt(n) + 0.1 / density.std()
    assert np.all(np.abs(sample.mean(axis=1) - found) < allowed), (sample.mean(axis=1) - found, allowed)


def simulate(law, d, length, rho, k, prompts, lists, seed):
    """Return the errors less the noise for fresh and for listed tasks, and their standard errors over lists."""
    rng = np.random.default_rng(seed)

    def draw(n):
        w = rng.standard_normal((n, d))
        return math.sqrt(d) * w / np.linalg.norm(w, axis=1, keepdims=True) if law == "sphere" else w

    found = np.empty((lists, 2))
    for row in found:
        tasks = draw(k)
        for which, w in enumerate((draw(prompts), tasks[rng.integers(k, size=prompts)])):
            x = rng.standard_normal((prompts, length, d)) / math.sqrt(d)
            y = np.einsum("bld,bd->bl", x, w) + math.sqrt(rho) * rng.standard_normal((prompts, length))
            mean = icl.bayes.posterior(x, y, tasks, rho) @ tasks
            row[which] = np.mean((mean - w) ** 2)
    return found.mean(axis=0), found.std(axis=0) / math.sqrt(lists - 1)


# both phases and the transition between them; I = 0.29 at (1, 1), 0.72 at (2, 1/2), in nats a dimension
POINTS = [
    ("gaussian", 20, 1.0, 1.0, 20),
    ("gaussian", 20, 1.0, 1.0, 1000),
    ("sphere", 20, 2.0, 0.5, 400),
    ("sphere", 20, 0.5, 0.05, 100),
    ("gaussian", 40, 2.0, 0.5, 400),
    ("gaussian", 64, 10.0, 0.01, 64),
]


@pytest.mark.parametrize(("law", "d", "alpha", "rho", "k"), POINTS)
def test_finite_against_the_estimator(law, d, alpha, rho, k):
    (fresh, listed), (fresh_error, listed_error) = simulate(law, d, round(alpha * d), rho, k, 60, 20, seed=0)
    unseen = 4.0 / 1200  # of 1200 prompts, as many may fail unseen with an error of 1
    found = bayes_discrete_finite(d=d, alpha=alpha, rho=rho, n_tasks=k, tasks=law)
    assert abs(found.icl - rho - fresh) < 4 * fresh_error + 0.5 * fresh / d
    assert abs(found.idg - rho - listed) < 4 * listed_error + 2.0 * listed / d + unseen
    # the limit d -> infinity is farther off, and on the side expected
    if found.condensation > 0.2:
        limit = bayes_discrete(alpha=alpha, rho=rho, d=d, n_tasks=k, tasks=law)
        assert limit.icl - rho < fresh - 4 * fresh_error
