"""Structured tasks: spectra, draws, moments, prompts and simulations, against numpy's own sampler and single tokens."""

import math

import numpy as np
import pytest

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts import draw_tasks, moments_of_law, moments_of_tasks, sample_summaries
from icltheory.prompts.covariance import check_covariance, low_rank, power_law, spiked, square_root
from icltheory.simulate import best_gamma, exact_error
from icltheory.simulate.error import prompt_moments

from .reference import dense_fit, features, summarise, token_prompts

simulate = icl.simulate.linear_attention
SHEAR = np.array([[1.0, 0.9, 0.0], [0.0, 0.6, -0.5], [0.0, 0.0, 1.1]])
COVARIANCES = {
    "power law": power_law(3, 1.0),
    "spiked": spiked(3, 4.0, rank=2),
    "rank 1": low_rank(3, 1),
    "matrix": SHEAR @ SHEAR.T,
    "rank 2 matrix": SHEAR[:, :2] @ SHEAR[:, :2].T,
}
each_covariance = pytest.mark.parametrize("covariance", COVARIANCES.values(), ids=COVARIANCES)


def dense(covariance):
    return np.diag(covariance) if covariance.ndim == 1 else covariance


def scores(samples, exact):
    """Return z-scores of sample means (along the first axis); a quantity that does not vary must be exact."""
    error = samples.std(axis=0) / np.sqrt(len(samples))
    difference = samples.mean(axis=0) - exact
    np.testing.assert_allclose(difference[error < 1e-15], 0, atol=1e-12)
    return np.abs(difference / np.where(error < 1e-15, 1.0, error)), error


def test_spectra():
    weights = np.array([1, 1 / 4, 1 / 9])
    np.testing.assert_allclose(power_law(3, 2), 3 * weights / weights.sum(), rtol=1e-14)
    np.testing.assert_allclose(power_law(5, 0.0), np.ones(5), rtol=1e-14)
    np.testing.assert_allclose(spiked(4, 2.0, rank=2), [1.5, 1.5, 0.5, 0.5], rtol=1e-14)
    np.testing.assert_allclose(spiked(4, 0.0), np.ones(4), rtol=1e-14)
    np.testing.assert_allclose(low_rank(6, 2), [3, 3, 0, 0, 0, 0], rtol=1e-14)
    for spectrum in (power_law(40, 1.5), spiked(40, 7.0, rank=3), low_rank(40, 7)):
        assert spectrum.mean() == pytest.approx(1, rel=1e-14)
    assert icl.prompts.covariance.low_rank is low_rank


@each_covariance
def test_moments_of_the_law_are_those_of_numpy_samples(covariance):
    n, d = 400_000, 3
    exact = moments_of_law("gaussian", d, covariance=covariance)
    other = np.random.default_rng(0).multivariate_normal(np.zeros(d), dense(covariance), size=n)
    for w in (other, draw_tasks(n, d, "gaussian", np.random.default_rng(1), covariance=covariance)):
        s = (w**2).sum(axis=1) / d
        for samples, value in (
            (s, exact.signal),
            (s**2, exact.signal_squared),
            (w, exact.mean),
            (s[:, None] * w, exact.signal_mean),
            (w[:, :, None] * w[:, None, :], exact.second),
        ):
            z, error = scores(samples, value)
            assert z.max() < 4
        _, error = scores(s**2, exact.signal_squared)
        spread = exact.signal_squared - exact.signal**2
        assert 4 * error < 0.05 * spread  # precise enough to see a 5 % fault in 2 tr C^2/d^2


@each_covariance
def test_prompts_have_the_moments_of_their_law(covariance):
    """The sampler with structured tasks: A = E w r^T by way of x and y, and B = E r r^T, entry by entry."""
    n, d, length, rho = 300_000, 3, 4, 0.3
    a, b = prompt_moments(moments_of_law("gaussian", d, covariance=covariance), length, rho)
    for k in (math.inf, 40_000):
        point = Point.of(d=d, n_sequences=n, context_length=length, n_tasks=k, rho=rho)
        data = sample_summaries(point, "gaussian", np.random.default_rng(5), covariance=covariance)
        if data.tasks is not None:
            a, b = prompt_moments(moments_of_tasks(data.tasks), length, rho)
        labelled = d * data.target[:, None] * data.query  # its mean given w is w
        for exact, left in ((a, labelled), (b, data.context)):
            z, error = scores(left[:, :, None] * data.context[:, None, :], exact)
            assert z.max() < 4.3
        assert 4 * error[0, 0] < 0.05 * b[0, 0]


@each_covariance
@pytest.mark.parametrize("test_length", [2, 11])
def test_exact_error_against_tokens(covariance, test_length):
    rng = np.random.default_rng(7)
    n, d, rho = 400_000, 3, 0.2
    moments = moments_of_law("gaussian", d, covariance=covariance)
    gamma = best_gamma(moments, 5, rho) + 0.1 * rng.standard_normal((d, d + 1))
    tasks = rng.multivariate_normal(np.zeros(d), dense(covariance), size=n)
    query, context, target = summarise(*token_prompts(tasks, test_length, rho, rng))
    squares = (target - np.einsum("ni,ij,nj->n", query, gamma, context)) ** 2
    z, error = scores(squares, exact_error(gamma, moments, test_length, rho))
    assert z < 4
    assert 4 * error < 0.05 * squares.mean()


def test_simulation_against_the_slow_pipeline():
    """Structured training tasks, other test tasks, another test length: a dense fit, single tokens for the tests."""
    d, rho, length, train, test = 6, 0.1, 15, spiked(6, 5.0, rank=2), np.diag(power_law(6, 1.0))
    sim = simulate(
        d=d,
        tau=4.0,
        alpha=1.0,
        kappa=1.5,
        rho=rho,
        ridge=0.01,
        tasks="gaussian",
        task_covariance=train,
        test_task_covariance=test,
        test_context_length=length,
        rng=5,
    )
    assert (sim.point.context_length, sim.test_context_length) == (6, 15)
    data = sample_summaries(sim.point, "gaussian", np.random.default_rng(5), covariance=train)
    n = sim.point.n_sequences
    gamma = dense_fit(data.query, data.context, data.target, n / d * 0.01)
    np.testing.assert_allclose(sim.gamma, gamma, atol=1e-10)
    residual = data.target - features(data.query, data.context) @ gamma.ravel()
    assert sim.train == pytest.approx(np.mean(residual**2), rel=1e-9)
    rng, m = np.random.default_rng(6), 150_000
    for exact, tasks in (
        (sim.icl, rng.multivariate_normal(np.zeros(d), test, size=m)),
        (sim.idg, data.tasks[rng.integers(sim.point.n_tasks, size=m)]),
    ):
        query, context, target = summarise(*token_prompts(tasks, length, rho, rng))
        squares = (target - np.einsum("ni,ij,nj->n", query, gamma, context)) ** 2
        z, error = scores(squares, exact)
        assert z < 4
        assert 4 * error < 0.05 * exact


def test_fresh_tasks_for_every_prompt():
    """IDG is then the error under the law of training, and differs from ICL only if the test has another law."""
    d, train = 5, power_law(5, 1.0)
    point = {"d": d, "tau": 3.0, "alpha": 1.0, "kappa": math.inf, "rho": 0.1, "ridge": 0.01, "tasks": "gaussian"}
    same = simulate(**point, task_covariance=train, rng=0)
    assert same.gap == 0
    sim = simulate(**point, task_covariance=train, test_task_covariance=np.ones(d), rng=0)
    np.testing.assert_array_equal(sim.gamma, same.gamma)
    assert sim.idg == same.icl
    assert sim.icl == exact_error(sim.gamma, moments_of_law("gaussian", d), 5, 0.1)
    assert sim.gap > 0.01
    # without a test covariance given, that of training is used; the identity alone in training is the default
    other = simulate(**point, test_task_covariance=train, rng=0)
    np.testing.assert_array_equal(other.gamma, simulate(**point, rng=0).gamma)
    assert other.icl == exact_error(other.gamma, moments_of_law("gaussian", d, covariance=train), 5, 0.1)


def test_low_rank_training_learns_nothing_off_its_space():
    """The claim that low-rank tasks are there to show: fresh tasks of full rank are then out of reach."""
    d = 8
    sim = simulate(
        d=d,
        tau=40,
        alpha=8,
        kappa=50,
        rho=0.01,
        ridge=0.1,
        tasks="gaussian",
        task_covariance=low_rank(d, 2),
        test_task_covariance=np.ones(d),
        rng=0,
    )
    assert sim.idg < 0.2
    assert sim.icl > 0.75  # at least the part of w off the space, (d - 2)/d


@pytest.mark.parametrize("k", [7, math.inf])
def test_forms_of_a_covariance_agree(k):
    """No covariance, ones, and the identity matrix are one law with the same draws; so are eigenvalues and a matrix."""
    point = Point.of(d=4, n_sequences=50, context_length=6, n_tasks=k, rho=0.1)
    spectrum = power_law(4, 1.0)
    for forms in ((None, np.ones(4), np.eye(4)), (spectrum, np.diag(spectrum))):
        draws = [sample_summaries(point, "gaussian", np.random.default_rng(0), covariance=c) for c in forms]
        for other in draws[1:]:
            for name in ("query", "context", "target"):
                np.testing.assert_allclose(getattr(other, name), getattr(draws[0], name), rtol=1e-12, atol=1e-13)
    assert np.array_equal(
        sample_summaries(point, "gaussian", np.random.default_rng(0)).context,
        sample_summaries(point, "gaussian", np.random.default_rng(0), covariance=np.ones(4)).context,
    )


def test_square_root():
    for covariance in COVARIANCES.values():
        root = dense(square_root(check_covariance("c", covariance, 3)))
        np.testing.assert_allclose(root @ root, dense(covariance), atol=1e-12)
        np.testing.assert_allclose(root, root.T, atol=1e-12)


@pytest.mark.parametrize("assignment", ["random", "balanced"])
def test_given_tasks(assignment):
    """Handing back the tasks that were drawn changes nothing."""
    point = Point.of(d=4, n_sequences=200, context_length=6, n_tasks=5, rho=0.1)
    drawn = sample_summaries(point, "sphere", np.random.default_rng(0), assignment)
    given = sample_summaries(point, "sphere", np.random.default_rng(0), assignment, tasks=drawn.tasks)
    for name in ("query", "context", "target", "tasks"):
        np.testing.assert_array_equal(getattr(given, name), getattr(drawn, name))


def test_given_tasks_of_any_length_and_one_without_signal():
    """Moments of prompts on tasks that no law would draw, one of them zero."""
    n, length, rho = 400_000, 3, 0.4
    tasks = np.array([[1.5, 0.2], [0.0, 0.0], [3.0, -1.0]])
    point = Point.of(d=2, n_sequences=n, context_length=length, n_tasks=3, rho=rho)
    data = sample_summaries(point, "sphere", np.random.default_rng(1), tasks=tasks)
    np.testing.assert_array_equal(data.tasks, tasks)
    a, b = prompt_moments(moments_of_tasks(tasks), length, rho)
    for exact, left in ((a, 2 * data.target[:, None] * data.query), (b, data.context)):
        z, _ = scores(left[:, :, None] * data.context[:, None, :], exact)
        assert z.max() < 4
    silent = sample_summaries(
        Point.of(d=2, n_sequences=n, context_length=length, n_tasks=1, rho=rho),
        "sphere",
        np.random.default_rng(2),
        tasks=tasks[1:2],
    )
    outer = silent.context[:, :, None] * silent.context[:, None, :]
    z, error = scores(outer, prompt_moments(moments_of_tasks(tasks[1:2]), length, rho)[1])
    assert z.max() < 4
    assert np.all(4 * error.diagonal() < 0.05 * outer.mean(axis=0).diagonal())


def call(**arguments):
    return simulate(**{"d": 3, "tau": 2, "alpha": 1, "kappa": 1, "rho": 0.1, "tasks": "gaussian", **arguments})


def sample(**arguments):
    point = Point.of(d=2, n_sequences=9, context_length=3, n_tasks=arguments.pop("n_tasks", 2), rho=0.1)
    return sample_summaries(point, arguments.pop("law", "gaussian"), np.random.default_rng(0), **arguments)


LOPSIDED = np.array([[1.0, 0.5, 0], [0.4, 1, 0], [0, 0, 1]])
WRONG = [
    (lambda: power_law(0, 1.0), ValueError, "d must be an integer >= 1, got 0"),
    (lambda: power_law(2.5, 1.0), ValueError, "d must be an integer >= 1, got 2.5"),
    (lambda: power_law(3, -1.0), ValueError, "exponent must be >= 0 and finite, got -1"),
    (lambda: power_law(3, math.inf), ValueError, "exponent must be >= 0 and finite, got inf"),
    (lambda: power_law(3, "1"), TypeError, "exponent must be one number, got '1'"),
    (lambda: power_law(True, 1), TypeError, "d must be one number, got True"),
    (lambda: spiked(3, -1.0), ValueError, "strength must be > -1 and finite, got -1"),
    (lambda: spiked(3, [1, 2]), TypeError, r"strength must be one number, got \[1, 2\]"),
    (lambda: spiked(3, 1.0, rank=4), ValueError, "rank must be an integer from 1 to d = 3, got 4"),
    (lambda: low_rank(3, 0), ValueError, "rank must be an integer from 1 to d = 3, got 0"),
    (
        lambda: call(task_covariance=np.ones(4)),
        ValueError,
        r"task_covariance must have shape \(d,\) = \(3,\) .* or \(d, d\) = \(3, 3\), got \(4,\)",
    ),
    (lambda: call(task_covariance=1.0), ValueError, r"task_covariance must have shape .*, got \(\)"),
    (lambda: call(task_covariance=np.ones((3, 1))), ValueError, r"task_covariance must have shape .*, got \(3, 1\)"),
    (lambda: call(task_covariance="identity"), TypeError, "task_covariance must be an array of real numbers, got 'id"),
    (lambda: call(task_covariance=np.eye(3) + 0j), TypeError, "task_covariance must be an array of real numbers"),
    (lambda: call(task_covariance=[1, np.nan, 1]), ValueError, r"task_covariance must be finite, got nan at index \(1"),
    (
        lambda: call(test_task_covariance=LOPSIDED),
        ValueError,
        r"test_task_covariance must be symmetric, got 0.5 at index \(0, 1\) and 0.4 at \(1, 0\)",
    ),
    (
        lambda: call(test_task_covariance=[1, -0.5, 2]),
        ValueError,
        "test_task_covariance must be positive semidefinite, got the eigenvalue -0.5",
    ),
    (
        lambda: call(task_covariance=[[1, 2, 0], [2, 1, 0], [0, 0, 1]]),
        ValueError,
        "task_covariance must be positive semidefinite, got the eigenvalue -1",
    ),
    (lambda: call(task_covariance=-np.eye(3)), ValueError, "task_covariance must be positive semidefinite"),
    (lambda: call(task_covariance=np.zeros(3)), ValueError, "task_covariance must have a largest .*, got 0 .*rank 0"),
    (lambda: call(task_covariance=[1e60, 1, 1]), ValueError, r"task_covariance must have a largest .*, got 1e\+60"),
    (
        lambda: call(tasks="sphere", task_covariance=np.ones(3)),
        ValueError,
        'task_covariance must be None with tasks="sphere", an isotropic law; use tasks="gaussian"',
    ),
    (lambda: call(tasks="sphere", test_task_covariance=np.ones(3)), ValueError, "test_task_covariance must be None"),
    (lambda: call(test_context_length=0), ValueError, "test_context_length must be an integer >= 1, got 0"),
    (lambda: call(test_context_length=2.5), ValueError, "test_context_length must be an integer >= 1, got 2.5"),
    (lambda: call(test_context_length=math.inf), ValueError, "test_context_length must be an integer >= 1, got inf"),
    (lambda: call(test_context_length=[3, 4]), TypeError, r"test_context_length must be one integer, got an array of"),
    (lambda: call(test_context_length="3"), TypeError, "test_context_length must be a number"),
    (lambda: sample(law="sphere", covariance=np.ones(2)), ValueError, 'covariance must be None with tasks="sphere"'),
    (lambda: sample(law="cube"), ValueError, "tasks must be one of .*, got 'cube'"),
    (lambda: moments_of_law("cube", 3), ValueError, "tasks must be one of .*, got 'cube'"),
    (lambda: sample(tasks=np.ones((3, 2))), ValueError, r"tasks must have shape \(n_tasks, d\) = \(2, 2\), got \(3, 2"),
    (lambda: sample(tasks=np.ones((2, 2)), n_tasks=math.inf), ValueError, r"tasks must have shape .* = \(inf, 2\)"),
    (lambda: sample(tasks=[[1, 2], [3, np.inf]]), ValueError, r"tasks must be finite, got \[ ?3. inf\] in row 1"),
    (lambda: sample(tasks=[["a", "b"], ["c", "d"]]), TypeError, "tasks must be an array of real numbers"),
    (lambda: sample(tasks=np.ones((2, 2)), covariance=np.ones(2)), ValueError, "give tasks or covariance, not both"),
]


@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG)
def test_wrong_input(wrong, kind, message):
    with pytest.raises(kind, match="^" + message):
        wrong()


def test_rounding_is_forgiven():
    """A rank-one matrix has eigenvalues of -1e-17 or so, and an eigenvalue solver returns them."""
    v = np.random.default_rng(0).standard_normal(6)
    matrix = np.outer(v, v)
    assert call(d=6, task_covariance=matrix, rng=0).icl > 0
    spectrum = np.array([1.0, -1e-17, 2.0])
    assert check_covariance("c", spectrum, 3).min() == 0
    assert call(task_covariance=spectrum, rng=0).icl > 0
    assert spectrum.min() == -1e-17  # the caller's array is left alone
