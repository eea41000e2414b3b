"""Finite-size theory: its closed forms against dense matrices and samples, its predictions against simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts.sampling import sample_summaries
from icltheory.prompts.tasks import draw_tasks, moments_of_law, moments_of_tasks
from icltheory.simulate.batch import Job, run_all
from icltheory.simulate.error import prompt_moments
from icltheory.theory.feature_scale import Prompt, _causes, scale_law, third_and_fourth
from icltheory.theory.mean_spectrum import mean_spectrum, spectrum_of
from icltheory.theory.prompt_resolvent import fresh, seen, systematic_error, traces

D, LENGTH, RHO = 7, 11, 0.3


@pytest.mark.parametrize(("law", "k2", "test_k2"), [("sphere", 1.0, 1.0), ("gaussian", 1.0, 1.0), ("sphere", 2.5, 1.7)])
@pytest.mark.parametrize("target", ["icl", "idg"])
@pytest.mark.parametrize("test_length", [LENGTH, 3])
def test_closed_forms_against_dense_matrices(law, k2, test_k2, target, test_length):
    w = draw_tasks(5, D, law, np.random.default_rng(1))
    tasks = spectrum_of(moments_of_tasks(w), RHO)
    train = seen(tasks, D, LENGTH, RHO, k2)
    test = (
        fresh(moments_of_law(law, D).signal_squared, tasks, D, test_length, RHO, test_k2)
        if target == "icl"
        else seen(tasks, D, test_length, RHO, test_k2)
    )
    a, r = prompt_moments(moments_of_tasks(w), LENGTH, RHO, k2)
    tested = moments_of_law(law, D) if target == "icl" else moments_of_tasks(w)
    a_test, r_test = prompt_moments(tested, test_length, RHO, test_k2)
    for xi in (0.0, 0.2, 5.0):
        g = np.linalg.inv(r + xi * np.eye(D + 1))
        assert traces(tasks, train, test, xi) == pytest.approx(
            (np.trace(r_test @ g), np.trace(r_test @ g @ g)), rel=1e-10
        )
        gamma = a @ g
        dense = tested.signal - 2 / D * np.trace(gamma @ a_test.T) + np.trace(gamma @ r_test @ gamma.T) / D
        assert systematic_error(tasks, train, test, xi, D) == pytest.approx(dense, rel=1e-10)


def test_border_of_correlated_tokens_on_tasks_of_different_norms():
    """There it is along the label vector only up to O(1/l), which moves traces of all d features by less."""
    d, length, k2 = 24, 48, 3.0
    moments = moments_of_tasks(draw_tasks(12, d, "gaussian", np.random.default_rng(1)))
    tasks = spectrum_of(moments, RHO)
    ours = seen(tasks, d, length, RHO, k2)
    a, r = prompt_moments(moments, length, RHO, k2)
    for xi in (0.0, 0.2, 5.0):
        g = np.linalg.inv(r + xi * np.eye(d + 1))
        assert traces(tasks, ours, ours, xi) == pytest.approx((np.trace(r @ g), np.trace(r @ g @ g)), rel=2e-3)
        dense = moments.signal - 2 / d * np.trace(a @ g @ a.T) + np.trace(a @ g @ r @ g @ a.T) / d
        assert systematic_error(tasks, ours, ours, xi, d) == pytest.approx(dense, rel=1e-3)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
@pytest.mark.parametrize(("d", "k"), [(24, 6), (24, 24), (30, 80)])
def test_mean_spectrum_against_draws(law, d, k):
    """Right to order 1/d: within the sampling error and the next order, as the leading order alone is not."""
    rng = np.random.default_rng(0)
    draws = 1500
    eigenvalues = np.array([np.linalg.eigvalsh((w := draw_tasks(k, d, law, rng)).T @ w / k) for _ in range(draws)])
    ours = mean_spectrum(law, d, k, RHO)
    assert ours.weight.sum() == pytest.approx(d, abs=1e-9)
    for z in (0.3, 1.0, 3.0):
        values = (1 / (np.maximum(eigenvalues, 0) + z)).mean(axis=1)
        error = values.std() / math.sqrt(draws)
        predicted = ours.weight @ (1 / (ours.value + z)) / d
        leading = float(icl.theory.task_spectrum.resolvent(np.float64(z), np.float64(k / d))[0])
        assert abs(predicted - values.mean()) < 4 * error + leading / d**2
        assert abs(leading - values.mean()) > 4 * error


@pytest.mark.parametrize(("d", "k"), [(20, 8), (20, 20), (10, 35)])
def test_mean_spectrum_has_the_exact_moments(d, k):
    r"""E tr A^2 and E tr A^3, exact for sphere tasks by the sum over coincidences of tasks, for Gaussian by Wishart."""
    ratio = d / k
    sphere, gaussian = mean_spectrum("sphere", d, k, RHO), mean_spectrum("gaussian", d, k, RHO)
    for ours, sign in ((sphere, -1), (gaussian, 1)):
        assert ours.weight @ ours.value == pytest.approx(d, rel=1e-10)
        assert ours.weight @ ours.value**2 / d == pytest.approx(1 + ratio + sign / k, rel=1e-10)
        third = 1 + 3 * ratio + ratio**2 + sign * 3 * (d + k) / k**2
        assert ours.weight @ ours.value**3 / d == pytest.approx(third, rel=1e-10)


def test_label_vector_of_the_mean_spectrum():
    d, k = 20, 15
    rng = np.random.default_rng(3)
    draws = []
    for _ in range(1500):
        one = spectrum_of(moments_of_tasks(draw_tasks(k, d, "sphere", rng)), RHO)
        draws.append(one.label @ (1 / (one.value + 1.0)))
    ours = mean_spectrum("sphere", d, k, RHO)
    assert ours.label @ (1 / (ours.value + 1.0)) == pytest.approx(np.mean(draws), rel=0.02)


@pytest.mark.parametrize(
    ("law", "kappa", "alpha"),
    [("sphere", 1.0, 1.0), ("gaussian", 1.0, 3.0), ("sphere", 0.3, 0.7), ("gaussian", math.inf, 1.0)],
)
def test_scale_law_against_sampled_prompts(law, kappa, alpha):
    d, xi = 60, 0.3
    point = Point.of(d=d, n_sequences=60_000, alpha=alpha, kappa=kappa, rho=0.1)
    tasks = mean_spectrum(law, d, point.n_tasks, 0.1)
    train = seen(tasks, d, point.context_length, 0.1)
    floor = 0.1 + systematic_error(tasks, train, train, 0.0, d)
    prompt = Prompt(d=d, context_length=point.context_length, n_tasks=point.n_tasks, rho=0.1, spectrum=tasks)
    ours = scale_law(prompt, xi, traces(tasks, train, train, xi)[0] / d, floor)
    measured = []
    for draw in range(3):
        data = sample_summaries(point, law, np.random.default_rng(draw), "balanced")
        moments = moments_of_law(law, d) if data.tasks is None else moments_of_tasks(data.tasks)
        a, r = prompt_moments(moments, point.context_length, 0.1)
        form = np.einsum("ij,jk,ik->i", data.context, np.linalg.inv(r + xi * np.eye(d + 1)), data.context)
        scale = np.einsum("ij,ij->i", data.query, data.query) * form / form.mean()
        best = np.einsum("ij,ij->i", data.query @ a @ np.linalg.inv(r), data.context)
        residual = (data.target - best) ** 2
        measured.append([scale.var(), np.cov(scale, residual)[0, 1] / scale.var(), residual.mean()])
    variance, slope, mean = np.mean(measured, axis=0)
    p, s = ours.probability, ours.scale
    assert (p.sum(), p @ s) == pytest.approx((1.0, 1.0), rel=1e-12)
    assert p @ (s - 1) ** 2 == pytest.approx(variance, rel=6 / d)
    assert p @ ours.residual == pytest.approx(mean, rel=0.02)
    assert (ours.residual[1] - ours.residual[0]) / (s[1] - s[0]) == pytest.approx(slope, abs=0.08 * mean)


XI = 0.4


def blocks(w, length, rho, k2=1.0):
    """Return G and Gamma_0 on the context of given tasks, but for terms of relative order 1/d, and x."""
    d = w.shape[1]
    a, x = w.T @ w / len(w), (k2 + rho) * d / length
    body = (1 + k2 / length) * a + x * np.eye(d)
    return np.linalg.inv(body + XI * np.eye(d)), a @ np.linalg.inv(body), x


def causes(w, law, length, rho, kernel=None):
    d, tasks = w.shape[1], spectrum_of(moments_of_tasks(w), rho)
    if law == "gaussian":  # the law's spread of norms, not that of one draw
        tasks = replace(tasks, signal=1.0, signal_squared=1.0 + 2.0 / d)
    prompt = Prompt(d=d, context_length=length, n_tasks=len(w), rho=rho, spectrum=tasks)
    if kernel is not None:
        k3, k4 = third_and_fourth(kernel, kernel.k2)
        prompt = replace(prompt, k2=kernel.k2, k3=k3, k4=k4)
    return _causes(prompt, XI)


@pytest.mark.parametrize("rho", [0.05, 1.5])
@pytest.mark.parametrize("alpha", [0.7, 4.0])
def test_fluctuations_by_the_label_sums(rho, alpha):
    """All but the label sums at its mean: with many examples the next order is small."""
    d, draws, rng = 300, 400_000, np.random.default_rng(0)
    length = round(alpha * d)
    w = draw_tasks(200, d, "sphere", rng)
    g, b, x = blocks(w, length, rho)
    a = w.T @ w / len(w)
    signal, noise, cross = rng.standard_normal((3, draws))  # sums of g^2, e^2 and g e are near normal
    gg, ee, ge = 1 + signal * (2 / length) ** 0.5, 1 + noise * (2 / length) ** 0.5, cross / length**0.5
    along, power = gg + rho**0.5 * ge, (gg + 2 * rho**0.5 * ge + rho * ee) / (1 + rho)
    q = along**2 * np.trace(a @ g) / d + power * x * np.trace(g) / d
    left = (np.trace(a @ b @ b) * along**2 - 2 * np.trace(a @ b) * along + power * x * np.trace(b @ b)) / d
    *_, added = ours = causes(w, "sphere", length, rho)
    assert ours[0] == pytest.approx((q.var(), np.cov(q, left)[0, 1]), rel=0.01 + 4 / length)
    assert added == (0.0, 0.0)


@pytest.mark.parametrize("rho", [0.05, 3.0])
@pytest.mark.parametrize("kernel", [icl.Kernel.exponential(8.0, 60), icl.Kernel.power_law(0.7, 60)])
def test_fluctuations_by_the_label_sums_of_correlated_tokens(rho, kernel):
    """Both sums are quadratic forms of white noise, with covariances 2 tr M N: dense matrices, tasks of any size."""
    d, length = 30, 60
    w = 1.3 * draw_tasks(40, d, "sphere", np.random.default_rng(0))
    signal = 1.69
    value, basis = np.linalg.eigh(kernel.matrix())
    root = basis * np.sqrt(value) @ basis.T
    tokens = np.hstack([root, 0 * root])  # along the task, and labels, of (tokens, noise)
    labels = np.hstack([signal**0.5 * root, rho**0.5 * np.eye(length)])
    energy = kernel.k2 * signal + rho
    along = (labels.T @ tokens + tokens.T @ labels) / (2 * length * signal**0.5)
    power = labels.T @ kernel.matrix() @ labels / (length * energy)
    assert (np.trace(along), np.trace(power)) == pytest.approx((1, 1))
    a, x = w.T @ w / len(w), energy * d / length
    h = np.linalg.inv((1 + kernel.k2 / length) * a + x * np.eye(d))
    g, b = np.linalg.inv(np.linalg.inv(h) + XI * np.eye(d)), a @ h
    q = 2 * along * np.trace(a @ g) / d + power * x * np.trace(g) / d
    left = 2 * along * (np.trace(a @ b @ b) - np.trace(a @ b)) / d + power * x * np.trace(b @ b) / d
    ours = causes(w, "sphere", length, rho, kernel)
    assert np.add(ours[0], ours[3]) == pytest.approx((2 * np.sum(q * q), 2 * np.sum(q * left)), rel=1e-8)
    assert ours[3][0] > ours[0][0]  # correlations are most of it here


def test_fluctuations_by_the_size_of_fresh_tasks():
    d, length, rho, kernel = 30, 60, 0.2, icl.Kernel.exponential(8.0, 60)
    prompt = Prompt(
        d=d,
        context_length=length,
        n_tasks=math.inf,
        rho=rho,
        spectrum=mean_spectrum("gaussian", d, math.inf, rho),
        k2=kernel.k2,
    )
    g, b, x = blocks(math.sqrt(d) * np.eye(d), length, rho, kernel.k2)
    size, gain = 2 / d, kernel.k2 / (kernel.k2 + rho)  # variance of |w|^2/d; relative growth of noise with it
    q = g[0, 0] * (1 + gain * x)
    left = (x * b[0, 0]) ** 2 + gain * x * b[0, 0] ** 2
    assert _causes(prompt, XI)[2] == pytest.approx((q * q * size, q * left * size), rel=1e-10)


@pytest.mark.parametrize(
    "kernel", [icl.Kernel.exponential(3.0, 40), icl.Kernel.power_law(0.6, 40), icl.Kernel.independent(7)]
)
def test_third_and_fourth_powers_of_a_kernel(kernel):
    value = np.linalg.eigvalsh(kernel.matrix())
    expected = (np.mean(value**3), np.mean(value**4))
    assert third_and_fourth(kernel, kernel.k2) == pytest.approx(expected, rel=1e-12)


def test_powers_of_an_estimated_kernel_are_possible():
    kernel = icl.Kernel.from_sequences(np.random.default_rng(0).standard_normal((3, 30, 1)), context_length=30)
    k2 = kernel.statistics("independent").possible().k2
    k3, k4 = third_and_fourth(kernel, k2)
    assert k3 >= k2**2
    assert k4 >= k3**2 / k2


@pytest.mark.parametrize("kappa", [0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.7, 4.0])
@pytest.mark.parametrize("kernel", [None, 3.0])
def test_fluctuations_by_the_noise_of_the_context(kappa, alpha, kernel):
    """Exact for Gaussian z in the directions that are left: covariances of quadratic forms, task by task."""
    d, rho, length = 200, 0.2, round(200 * alpha)
    kernel = None if kernel is None else icl.Kernel.exponential(kernel, length)
    w = draw_tasks(round(kappa * d), d, "sphere", np.random.default_rng(1))
    g, b, x = blocks(w, length, rho, kernel.k2 if kernel else 1.0)
    variances, covariances = [], []
    for task in w[:40]:
        across = np.eye(d) - np.outer(task, task) / d  # z has no part along the task
        linear, quadratic = 2 * x**0.5 * across @ g @ task / d, x * across @ g @ across / d
        left_linear = -2 * x**0.5 * across @ b @ (task - b @ task) / d
        left_quadratic = x * across @ b @ b @ across / d
        variances.append(linear @ linear + 2 * np.sum(quadratic**2))
        covariances.append(linear @ left_linear + 2 * np.sum(quadratic * left_quadratic))
    ours = causes(w, "sphere", length, rho, kernel)[1]
    assert ours[0] == pytest.approx(np.mean(variances), rel=0.02)
    assert ours[1] == pytest.approx(np.mean(covariances), rel=0.03)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
@pytest.mark.parametrize("kappa", [0.4, 1.5])
@pytest.mark.parametrize("kernel", [None, icl.Kernel.exponential(5.0, 400)])
def test_fluctuations_by_the_choice_of_the_task(law, kappa, kernel):
    d, rho, length, k2 = 80, 0.2, 400, kernel.k2 if kernel else 1.0
    rng, measured, ours = np.random.default_rng(2), [], []
    for _ in range(round(100 / kappa)):
        w = draw_tasks(round(kappa * d), d, law, rng)
        g, b, x = blocks(w, length, rho, k2)
        size = np.einsum("ij,ij->i", w, w) / d
        left = w - w @ b.T
        q = np.einsum("ij,jk,ik->i", w, g, w) / d + (k2 * size + rho) / (k2 + rho) * x * np.trace(g) / d
        rest = np.einsum("ij,ij->i", left, left) / d + (k2 * size + rho) / (k2 + rho) * x * np.trace(b @ b) / d
        measured.append(np.cov(q, rest)[0])
        ours.append(causes(w, law, length, rho, kernel)[2])
    errors = np.std(measured, axis=0) / math.sqrt(len(measured))
    mean = np.mean(measured, axis=0)
    assert np.all(np.abs(np.mean(ours, axis=0) - mean) < 4 * errors + 4 / d * np.abs(mean))


SAMPLE = [  # (d, tau, alpha, kappa, rho, ridge, tasks, repetitions)
    (24, 3.0, 1.0, 1.0, 0.1, 1e-2, "sphere", 60),
    (30, 0.5, 1.0, 0.5, 0.05, 1e-4, "sphere", 100),
    (30, 1.5, 1.0, 2.0, 0.01, 1e-6, "gaussian", 50),
    (40, 0.3, 4.0, math.inf, 0.2, 1e-2, "sphere", 20),
    (32, 2.0, 5.0, 0.7, 0.3, 0.2, "gaussian", 120),
    (32, 1.3, 0.5, 0.3, 0.02, 1e-5, "sphere", 80),
]


@pytest.fixture(scope="module")
def simulated():
    answers = []
    for d, tau, alpha, kappa, rho, ridge, law, count in SAMPLE:
        point = Point.of(d=d, tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge)
        jobs = [Job(point=point, tasks=law, assignment="balanced", repetition=i) for i in range(count)]
        runs = np.array([[o.icl, o.idg, o.train] for o in run_all(jobs)])
        answers.append((point, law, runs.mean(axis=0), runs.std(axis=0) / math.sqrt(count)))
    return answers


@pytest.mark.parametrize(("target", "column"), [("icl", 0), ("idg", 1)])
def test_predictions_against_simulation(simulated, target, column):
    """The full table is benchmarks/finite_size.py; here six settings, each within 1.5 % beyond its error bar."""
    ours, asymptotic = [], []
    for point, law, mean, error in simulated:
        predicted = icl.theory.finite_size(**sizes(point), tasks=law)
        assert predicted.converged
        ours.append(abs(getattr(predicted, target) / mean[column] - 1))
        assert ours[-1] < 0.015 + 3 * error[column] / mean[column]
        asymptotic.append(abs(getattr(icl.theory.linear_attention(**point.ratios()), target) / mean[column] - 1))
    assert np.median(ours) < 0.01
    assert np.median(asymptotic) > 0.03


def test_training_error_against_simulation(simulated):
    for point, law, mean, error in simulated:
        if mean[2] > 1e-3:
            predicted = icl.theory.finite_size(**sizes(point), tasks=law)
            assert predicted.train == pytest.approx(mean[2], rel=0.05 + 3 * error[2] / mean[2])


def sizes(point: Point) -> dict:
    return {
        "d": point.d,
        "n_sequences": point.n_sequences,
        "context_length": point.context_length,
        "n_tasks": point.n_tasks,
        "rho": point.rho,
        "ridge": point.ridge,
    }


@pytest.mark.parametrize("tau", [0.5, 1.5])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("kappa", [0.5, 1.5, math.inf])
def test_large_d_is_the_asymptotic_theory_with_a_correction_of_order_one_over_d(tau, ridge, kappa):
    at = {"tau": tau, "alpha": 2.0, "kappa": kappa, "rho": 0.1, "ridge": ridge}
    limit = icl.theory.linear_attention(**at)
    for target in ("icl", "idg", "train"):
        if getattr(limit, target) == 0:
            continue
        corrections = [
            d * (float(getattr(icl.theory.finite_size(d=d, **at), target) / getattr(limit, target)) - 1)
            for d in (1000, 2000, 4000)
        ]
        assert abs(corrections[2]) < 60
        steps = np.diff(corrections)
        assert abs(steps[1]) < 0.65 * abs(steps[0]) + 1e-3  # what is left is of order 1/d^2


def test_many_tasks_are_fresh_tasks():
    at = {"d": 30, "tau": 1.5, "alpha": 1.0, "rho": 0.1, "ridge": 0.01}
    many, fresh_ones = icl.theory.finite_size(kappa=1e5, **at), icl.theory.finite_size(kappa=math.inf, **at)
    assert many.icl == pytest.approx(fresh_ones.icl, rel=1e-4)
    assert many.idg == pytest.approx(fresh_ones.idg, rel=1e-4)
    assert fresh_ones.gap == pytest.approx(0.0, abs=1e-12)


def test_given_tasks_average_to_the_law():
    at = {"d": 40, "tau": 2.0, "alpha": 2.0, "rho": 0.1, "ridge": 0.01}
    rng = np.random.default_rng(5)
    draws = [icl.theory.finite_size(tasks=draw_tasks(40, 40, "sphere", rng), **at) for _ in range(60)]
    law = icl.theory.finite_size(kappa=1.0, **at)
    for target in ("icl", "idg", "train"):
        values = np.array([float(getattr(draw, target)) for draw in draws])
        assert values.std() > 0
        assert abs(values.mean() / getattr(law, target) - 1) < 4 * values.std() / math.sqrt(60) / values.mean() + 2e-3


def test_given_tasks_predict_their_own_idg_error():
    """Two equal tasks in every direction are not like random ones; the theory is told and knows."""
    point = Point.of(d=30, tau=3.0, alpha=2.0, n_tasks=60, rho=0.1, ridge=0.05)
    w = math.sqrt(30) * np.concatenate([np.eye(30), np.eye(30)])
    errors = []
    for i in range(40):
        data = sample_summaries(point, "sphere", np.random.default_rng(i), "balanced", tasks=w)
        gamma, _ = icl.simulate.ridge_regression(data.query, data.context, data.target, 90 * 0.05)
        errors.append(icl.simulate.exact_error(gamma, moments_of_tasks(w), point.context_length, 0.1))
    ours = icl.theory.finite_size(d=30, tau=3.0, alpha=2.0, rho=0.1, ridge=0.05, tasks=w)
    assert ours.idg == pytest.approx(np.mean(errors), rel=0.01 + 3 * np.std(errors) / math.sqrt(40) / np.mean(errors))


def test_other_test_lengths():
    at = {"d": 30, "tau": 3.0, "alpha": 1.0, "kappa": 1.0, "rho": 0.1, "ridge": 0.05}
    ours = icl.theory.finite_size(test_context_length=120, **at)
    runs = [
        icl.simulate.linear_attention(**at, assignment="balanced", test_context_length=120, rng=i) for i in range(60)
    ]
    for target in ("icl", "idg"):
        values = np.array([getattr(run, target) for run in runs])
        assert getattr(ours, target) == pytest.approx(
            values.mean(), rel=0.015 + 3 * values.std() / 60**0.5 / values.mean()
        )
    assert ours.train == icl.theory.finite_size(**at).train


def test_independent_tokens_are_no_kernel_to_the_last_bit():
    at = {"d": 24, "tau": [0.5, 2.0], "kappa": 1.5, "rho": 0.13, "ridge": 0.01}
    for law in ("sphere", "gaussian"):
        for kernel in (icl.Kernel.independent(31), icl.Kernel.power_law(math.inf, 31), [icl.Kernel.independent(31)]):
            ours = icl.theory.finite_size(kernel=kernel, tasks=law, **at)
            plain = icl.theory.finite_size(context_length=31, tasks=law, **at)
            for name in ("icl", "idg", "train", "gap", "effective_ridge"):
                assert np.array_equal(getattr(ours, name), getattr(plain, name))


def test_faint_correlations_change_little():
    at = {"d": 24, "tau": 0.5, "kappa": 1.5, "rho": 0.1}
    plain = icl.theory.finite_size(context_length=40, **at)
    faint = icl.theory.finite_size(kernel=icl.Kernel.exponential(0.1, 40), **at)  # K differs from I by 5e-5
    assert faint.icl == pytest.approx(plain.icl, rel=1e-7)
    assert faint.icl != plain.icl


def test_large_d_is_the_limit_of_correlated_contexts():
    at = {"tau": 1.5, "kappa": 0.8, "rho": 0.1, "ridge": 0.05, "tasks": "gaussian"}
    errors = []
    for d in (100, 200, 400):
        kernel = icl.Kernel.exponential(2.0, 2 * d)
        limit = icl.theory.linear_attention(
            kernel=kernel, d=d, **{name: value for name, value in at.items() if name != "tasks"}
        )
        ours = icl.theory.finite_size(d=d, kernel=kernel, **at)
        errors.append([d * (float(getattr(ours, name) / getattr(limit, name)) - 1) for name in ("icl", "idg", "train")])
    assert np.all(np.abs(errors) < 20)
    assert np.all(np.abs(errors[2] - np.array(errors[1])) < 0.65 * np.abs(np.array(errors[1]) - errors[0]) + 1e-3)


def test_scale_law_of_correlated_tokens_against_sampled_prompts():
    """Variance, and the mean of 1/s, on which errors below the threshold depend."""
    d, length, rho, xi = 60, 600, 0.1, 0.1
    kernel = icl.Kernel.exponential(10.0, length)
    point = Point.of(d=d, n_sequences=30_000, context_length=length, n_tasks=math.inf, rho=rho)
    tasks = mean_spectrum("sphere", d, math.inf, rho)
    train = seen(tasks, d, length, rho, kernel.k2)
    floor = rho + systematic_error(tasks, train, train, 0.0, d)
    k3, k4 = third_and_fourth(kernel, kernel.k2)
    prompt = Prompt(d=d, context_length=length, n_tasks=math.inf, rho=rho, spectrum=tasks, k2=kernel.k2, k3=k3, k4=k4)
    trace = traces(tasks, train, train, xi)[0] / d
    ours = scale_law(prompt, xi, trace, floor)
    data = sample_summaries(point, "sphere", np.random.default_rng(0), "balanced", kernel=kernel)
    a, r = prompt_moments(moments_of_law("sphere", d), length, rho, kernel.k2)
    form = np.einsum("ij,jk,ik->i", data.context, np.linalg.inv(r + xi * np.eye(d + 1)), data.context)
    s = np.einsum("ij,ij->i", data.query, data.query) * form
    s /= s.mean()
    residual = (data.target - np.einsum("ij,ij->i", data.query @ a @ np.linalg.inv(r), data.context)) ** 2
    p, scale = ours.probability, ours.scale
    assert (p.sum(), p @ scale) == pytest.approx((1.0, 1.0), rel=1e-12)
    assert p @ (scale - 1) ** 2 == pytest.approx(s.var(), rel=4 / d)
    assert p @ (1 / scale) - 1 == pytest.approx((1 / s).mean() - 1, rel=4 / d)
    assert p @ ours.residual == pytest.approx(residual.mean(), rel=0.02)
    *causes, added = _causes(prompt, xi)  # covariances with the residual are too small to be seen in a sample
    variance, covariance = np.sum(causes, axis=0)
    total = (1 + 2 / d) * (1 + variance / trace**2) * (1 + added[0] / trace**2) - 1
    assert p @ (scale - 1) ** 2 == pytest.approx(total, rel=1e-9)
    expected = 2 / d * (floor - rho) + (1 + 2 / d) * (covariance + added[1]) / trace
    assert p @ ((scale - 1) * ours.residual) == pytest.approx(expected, rel=1e-9)


def test_lognormal_factor_is_not_a_gamma_law():
    """At a variance of order 1 a Gamma law would have a mean of 1/s of 1/(1 - variance)."""
    d, length = 20, 30
    kernel = icl.Kernel.exponential(3.0, length)
    k3, k4 = third_and_fourth(kernel, kernel.k2)
    tasks = mean_spectrum("sphere", d, math.inf, 0.1)
    prompt = Prompt(d=d, context_length=length, n_tasks=math.inf, rho=0.1, spectrum=tasks, k2=kernel.k2, k3=k3, k4=k4)
    law = scale_law(prompt, 0.3, traces(tasks, *[seen(tasks, d, length, 0.1, kernel.k2)] * 2, 0.3)[0] / d, 0.9)
    variance = law.probability @ (law.scale - 1) ** 2
    assert 0.5 < variance < 1
    assert law.probability @ (1 / law.scale) < 0.8 / (1 - variance)


CORRELATED = [  # (d, tau, kappa, rho, ridge, tasks, kernel, repetitions, allowed)
    (32, 4.0, 10.0, 0.01, 0.0, "gaussian", icl.Kernel.exponential(5.0, 128), 12, 0.01),
    (30, 0.5, 1.0, 0.1, 1e-4, "sphere", icl.Kernel.exponential(4.0, 90), 80, 0.02),
    (24, 1.6, math.inf, 0.1, 1e-2, "sphere", icl.Kernel.power_law(0.9, 60), 60, 0.02),
]


@pytest.mark.parametrize("setting", CORRELATED)
def test_correlated_contexts_against_simulation(setting):
    d, tau, kappa, rho, ridge, law, kernel, count, allowed = setting
    at = {"d": d, "tau": tau, "kappa": kappa, "rho": rho, "ridge": ridge, "kernel": kernel}
    point = Point.of(
        d=d, tau=tau, context_length=kernel.context_length, kappa=kappa, rho=rho, ridge=ridge
    )  # the kernel's length
    jobs = [Job(point=point, tasks=law, assignment="balanced", kernel=kernel, repetition=i) for i in range(count)]
    runs = np.array([[o.icl, o.idg] for o in run_all(jobs)])
    ours = icl.theory.finite_size(tasks=law, **at)
    limit = icl.theory.linear_attention(**at)
    assert ours.converged
    for column, name in enumerate(("icl", "idg")):
        mean, error = runs[:, column].mean(), runs[:, column].std() / count**0.5
        assert error < 0.01 * mean
        assert getattr(ours, name) == pytest.approx(mean, abs=allowed * mean + 3 * error)
        assert abs(getattr(limit, name) / mean - 1) > 0.04


def test_published_simulations_of_correlated_contexts():
    """Letey et al., HiLD at ICML 2026: d = 32, l = 128, tau = 4, kappa = 10, rho = .01, exponential."""
    chains = [icl.Kernel.exponential(xi, 128) for xi in (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0)]
    published = np.array([0.3088, 0.3761, 0.5237, 0.6461, 0.8180, 0.9735, 1.0426])
    at = {"d": 32, "tau": 4.0, "kappa": 10.0, "rho": 0.01, "kernel": chains}
    ours = icl.theory.finite_size(tasks="gaussian", **at).icl
    assert ours.shape == (7,)
    assert np.all(np.abs(ours / published - 1) < 0.02)
    assert np.all(np.abs(icl.theory.linear_attention(**at).icl / published - 1) > 0.05)


def test_tests_with_correlations_of_their_own():
    at = {"d": 24, "tau": 2.0, "kappa": 1.0, "rho": 0.1, "ridge": 0.05}
    chain = icl.Kernel.exponential(3.0, 48)
    longer = icl.theory.finite_size(kernel=chain, test_context_length=96, **at)
    assert longer.icl == icl.theory.finite_size(kernel=chain, test_kernel=chain.with_length(96), **at).icl
    given = icl.theory.finite_size(kernel=chain, test_kernel=chain.with_length(96), test_context_length=96, **at)
    assert longer.icl == given.icl
    other = icl.theory.finite_size(kernel=chain, test_kernel=icl.Kernel.power_law(1.2, 30), **at)
    assert other.train == longer.train == icl.theory.finite_size(kernel=chain, **at).train
    runs = [
        icl.simulate.linear_attention(
            **at, kernel=chain, test_kernel=icl.Kernel.power_law(1.2, 30), assignment="balanced", rng=i
        )
        for i in range(60)
    ]
    for target in ("icl", "idg"):
        values = np.array([getattr(run, target) for run in runs])
        assert getattr(other, target) == pytest.approx(
            values.mean(), abs=0.015 * values.mean() + 3 * values.std() / 60**0.5
        )


def test_kernels_are_an_axis():
    chains = [icl.Kernel.exponential(xi, 24) for xi in (0.0, 1.0, 2.0)]
    law = icl.theory.finite_size(d=24, tau=[[0.5], [2.0]], kappa=1, rho=0.1, ridge=1e-3, kernel=chains)
    assert law.icl.shape == (2, 3)
    one = icl.theory.finite_size(d=24, tau=2.0, alpha=1.0, kappa=1, rho=0.1, ridge=1e-3, kernel=chains[2])
    assert law.icl[1, 2] == one.icl


def test_strong_correlations_warn():
    with pytest.warns(icl.theory.CorrelationWarning, match="not weak but strong") as caught:
        icl.theory.finite_size(d=24, tau=2.0, kappa=1.0, rho=0.1, kernel=icl.Kernel.exponential(100.0, 48))
    assert caught[0].filename == __file__


def test_the_peak_sits_at_the_number_of_parameters():
    law = icl.theory.finite_size(d=20, n_sequences=[400, 419, 420, 421, 440], alpha=1.0, kappa=1.0, rho=0.1)
    assert np.isinf(law.icl[2])
    assert np.isinf(law.gap[2])
    assert law.icl[1] > 10 * law.icl[0]
    assert law.icl[3] > 10 * law.icl[4]


def test_small_ridges_tend_to_none():
    at = {"d": 30, "tau": [0.5, 1.5], "alpha": 1.0, "kappa": 0.5, "rho": 0.1}
    assert icl.theory.finite_size(ridge=1e-10, **at).icl == pytest.approx(icl.theory.finite_size(**at).icl, rel=1e-7)


def test_arguments_broadcast():
    law = icl.theory.finite_size(d=24, tau=[[0.5], [2.0]], alpha=[1, 2, 3], kappa=1, rho=0.1, ridge=1e-3)
    assert law.icl.shape == law.converged.shape == (2, 3)
    assert law.converged.all()
    one = icl.theory.finite_size(d=24, tau=2.0, alpha=3, kappa=1, rho=0.1, ridge=1e-3)
    assert law.icl[1, 2] == one.icl


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": math.inf}, "tau must be finite at finite d, got inf"),
        ({"tau": -1}, "tau must be > 0, got -1"),
        ({"tasks": "cube"}, r"tasks must be one of \['gaussian', 'sphere'\], got 'cube'"),
        (
            {"tasks": np.ones((3, 5))},
            r"tasks must be a law or an array of numbers of shape \(k, 24\), got float64 of shape",
        ),
        ({"tasks": np.full((3, 24), np.nan)}, "tasks must be finite, got nan"),
        ({"tasks": np.ones((3, 24))}, "give tasks or their number"),
        ({"test_context_length": 0}, "test_context_length must be an integer >= 1, got 0"),
        ({"d": 2.5}, "d must be an integer >= 1, got 2.5"),
        ({"kernel": icl.Kernel.independent(20)}, "kernel must have the context length of the prompts, 24, got 20"),
        ({"kernel": icl.Kernel.independent(24), "query": "next"}, 'query must be "independent" at finite d, got .next'),
        ({"query": np.zeros(24)}, 'query must be "independent" at finite d'),
        (
            {"test_kernel": icl.Kernel.independent(20), "test_context_length": 24},
            "test_kernel must have the context length of the tests, 24, got 20",
        ),
        (
            {"kernel": icl.Kernel.from_matrix(np.eye(24)), "test_context_length": 12},
            "another length needs a stationary kernel",
        ),
    ],
)
def test_errors_name_the_argument(change, message):
    at = {"d": 24, "tau": 1.5, "alpha": 1.0, "kappa": 1.0, "rho": 0.1}
    with pytest.raises(ValueError, match=message):
        icl.theory.finite_size(**{**at, **change})
