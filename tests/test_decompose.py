"""Noise, bias and variance: exact sums, known values, and a brute-force twin from products of independent fits."""

import math

import numpy as np
import pytest

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts import draw_tasks, moments_of_law, moments_of_tasks, sample_summaries
from icltheory.prompts.covariance import power_law
from icltheory.simulate import best_gamma, exact_error
from icltheory.simulate.error import prompt_moments

from .reference import dense_fit, features, summarise, token_prompts

decompose = icl.simulate.decompose
POINT = {"d": 10, "tau": 2.0, "alpha": 1.0, "kappa": 0.5, "rho": 0.1, "ridge": 0.1}
PARTS = ("noise", "bias", "task_variance", "sample_variance")
COVARIANCE = np.array([1.5, 0.9, 0.3])
# small enough for thousands of fits; the second has no task draws, and tests that differ in their law
SMALL = {
    "three tasks": {"d": 3, "n_sequences": 24, "context_length": 4, "n_tasks": 3, "rho": 0.2, "ridge": 0.1},
    "a fresh task each": {
        "d": 3,
        "n_sequences": 24,
        "context_length": 4,
        "n_tasks": math.inf,
        "rho": 0.2,
        "ridge": 0.1,
        "tasks": "gaussian",
        "task_covariance": COVARIANCE,
        "test_task_covariance": np.ones(3),
        "test_context_length": 9,
    },
}


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"kappa": math.inf},
        {"tasks": "gaussian", "task_covariance": power_law(10, 1.0), "test_context_length": 30},
        {"task_draws": 2, "sample_draws": 5, "assignment": "balanced"},
    ],
)
def test_the_parts_add_up_to_the_mean_error(extra):
    split = decompose(**{**POINT, "task_draws": 3, "sample_draws": 4, **extra}, rng=0)
    for parts in (split.icl, split.idg):
        assert sum(getattr(parts, name) for name in PARTS) == pytest.approx(parts.error, rel=1e-12)
        assert parts.standard_error > 0
        assert parts.sample_variance > 0
        assert parts.noise > 0.1
    assert split.idg.task_variance == 0
    assert (split.icl.task_variance == 0) == ("kappa" in extra)
    assert split.point == Point.of(**{**POINT, **{k: v for k, v in extra.items() if k == "kappa"}})


def test_the_mean_error_is_that_of_simulations_with_the_same_draws():
    """Two tasks draws of two training sets each, one by one."""
    split = decompose(**POINT, task_draws=2, sample_draws=2, rng=3)
    errors = []
    for stream in np.random.default_rng(3).spawn(2):
        task_stream, *samples = stream.spawn(3)
        tasks = draw_tasks(split.point.n_tasks, 10, "sphere", task_stream)
        for one in samples:
            data = sample_summaries(split.point, "sphere", one, tasks=tasks)
            gamma = dense_fit(data.query, data.context, data.target, split.point.n_sequences / 10 * 0.1)
            errors.append(
                [exact_error(gamma, m, 10, 0.1) for m in (moments_of_law("sphere", 10), moments_of_tasks(tasks))]
            )
    assert [split.icl.error, split.idg.error] == pytest.approx(np.mean(errors, axis=0), rel=1e-8)
    by_task = np.reshape(errors, (2, 2, 2)).mean(axis=1)
    scatter = np.abs(by_task[0] - by_task[1]) / 2  # sd / sqrt(2) of two numbers
    assert [split.icl.standard_error, split.idg.standard_error] == pytest.approx(scatter, rel=1e-6)


def test_seeds_and_distinct_draws():
    zero, again, one = (decompose(**POINT, task_draws=2, sample_draws=2, rng=seed) for seed in (0, 0, 1))
    assert zero == again
    assert zero.icl.error != one.icl.error


def pairs_of_fits(case, count, rng):
    """Yield (tasks, two fits on them), all from single tokens and dense fits; tasks is None if every prompt has one."""
    d, n, k = case["d"], case["n_sequences"], case["n_tasks"]
    law, root = case.get("tasks", "sphere"), np.sqrt(case.get("task_covariance", np.ones(d)))
    for _ in range(count):
        tasks = None if math.isinf(k) else draw_tasks(k, d, law, rng)
        fits = []
        for _ in range(2):
            used = rng.standard_normal((n, d)) * root if tasks is None else tasks[rng.integers(k, size=n)]
            prompts = summarise(*token_prompts(used, case["context_length"], case["rho"], rng))
            fits.append(dense_fit(*prompts, n / d * case["ridge"]))
        yield tasks, *fits


def brute_force(case, count, seed):
    """Return samples of (noise, bias, task variance, sample variance), shape (count, 4), of ICL and of IDG.

    From products of independent fits: E <Γ - Γ*, Γ' - Γ*> is the bias for fits on different tasks, bias plus task
    variance for fits on the same, and E |Γ - Γ'|^2/2 is the sample variance for fits on the same.
    """
    d, rho = case["d"], case["rho"]
    length = case.get("test_context_length", case["context_length"])
    law = case.get("tasks", "sphere")
    fresh = moments_of_law(law, d, covariance=case.get("test_task_covariance"))
    icl_samples, idg_samples, previous = [], [], None
    for tasks, one, two in pairs_of_fits(case, count, np.random.default_rng(seed)):
        seen = moments_of_law(law, d, covariance=case["task_covariance"]) if tasks is None else moments_of_tasks(tasks)
        for samples, moments in ((icl_samples, fresh), (idg_samples, seen)):
            a, b = prompt_moments(moments, length, rho)
            best = np.linalg.solve(b, a.T).T
            noise = moments.signal + rho - np.trace(best @ a.T) / d
            same = np.trace((one - best) @ b @ (two - best).T) / d
            sample = np.trace((one - two) @ b @ (one - two).T) / d / 2
            if samples is icl_samples and tasks is not None:
                if previous is not None:
                    apart = np.trace((one - best) @ b @ (previous - best).T) / d
                    samples.append([noise, apart, same - apart, sample])
            else:
                samples.append([noise, same, 0.0, sample])
        previous = one
    return np.array(icl_samples), np.array(idg_samples)


@pytest.mark.parametrize("name", SMALL)
def test_every_part_and_the_standard_error_are_unbiased(name):
    """At two draws of each kind the corrections are as large as the parts: without them this fails by far."""
    case, runs = SMALL[name], 300
    splits = [decompose(**case, task_draws=2, sample_draws=2, rng=seed) for seed in range(runs)]
    for kind, truth in zip(("icl", "idg"), brute_force(case, 2500, seed=1), strict=True):
        found = np.array([[getattr(getattr(split, kind), part) for part in PARTS] for split in splits])
        error = np.sqrt(found.var(axis=0) / runs + 2 * truth.var(axis=0) / len(truth))  # 2: neighbours share a fit
        for i, part in enumerate(PARTS):
            difference = abs(found[:, i].mean() - truth[:, i].mean())
            assert difference < 3.5 * error[i] + 1e-12, (kind, part)
        # what one forgotten correction would change: it must show
        sample, task = truth[:, 3].mean(), truth[:, 2].mean()
        draws = 2 if kind == "idg" or task else 1
        assert 3.5 * error[3] < 0.2 * sample
        if task:
            assert 3.5 * error[2] < 0.5 * sample / draws
        parts = [getattr(split, kind) for split in splits]
        predicted = np.mean([one.standard_error**2 for one in parts])  # unbiased, whatever the law of the errors
        assert predicted == pytest.approx(np.var([one.error for one in parts], ddof=1), rel=0.35)


def test_noise_is_the_known_value():
    """Tasks of mean zero decouple from the label energy: the closed forms for both laws."""
    d, length, rho = 10, 10, 0.1
    split = decompose(**POINT, task_draws=2, sample_draws=2, rng=0)
    assert split.icl.noise == pytest.approx(1 + rho - 1 / ((1 + rho) * d / length + 1 + 1 / length), rel=1e-12)
    c, length = power_law(d, 1.0), 25
    split = decompose(
        **POINT,
        tasks="gaussian",
        test_task_covariance=c,
        test_context_length=length,
        task_draws=2,
        sample_draws=2,
        rng=0,
    )
    spectrum = (1 + rho) * d / length + (1 + 1 / length) * c
    assert split.icl.noise == pytest.approx(1 + rho - np.mean(c**2 / spectrum), rel=1e-12)


def test_best_gamma_is_the_fit_of_endless_data():
    """Least squares on very many single-token prompts, tasks of nonzero mean."""
    rng = np.random.default_rng(0)
    seen, n, rho, length = np.array([[1.5, 0.2], [0.8, -1.0]]), 200_000, 0.3, 4
    best = best_gamma(moments_of_tasks(seen), length, rho)
    query, context, target = summarise(*token_prompts(seen[rng.integers(2, size=n)], length, rho, rng))
    design = features(query, context)
    fit, residual, _, _ = np.linalg.lstsq(design, target, rcond=None)
    # variance robust to the residual's dependence on the features
    bread = np.linalg.inv(design.T @ design)
    scored = design * (target - design @ fit)[:, None]
    error = np.sqrt(np.diag(bread @ (scored.T @ scored) @ bread))
    assert np.all(np.abs(fit - best.ravel()) < 4 * error)
    squares = (target - design @ fit) ** 2
    noise = exact_error(best, moments_of_tasks(seen), length, rho)
    assert abs(residual[0] / n - noise) < 4 * squares.std() / math.sqrt(n)
    assert 4 * squares.std() / math.sqrt(n) < 0.05 * noise


@pytest.mark.parametrize("rho", [0.0, 0.3, 1e9])
@pytest.mark.parametrize("length", [1, 7, 10**15])
@pytest.mark.parametrize("k", [1, 3, 50])
def test_best_gamma_is_a_minimum(rho, length, k):
    """Also where B is all but singular: one task, an endless context, or labels of another scale than tasks."""
    rng = np.random.default_rng(0)
    moments = moments_of_tasks(draw_tasks(k, 4, "sphere", rng))
    best = best_gamma(moments, length, rho)
    least = exact_error(best, moments, length, rho)
    assert rho * (1 - 1e-9) - 1e-9 < least < 1 + rho
    if length > 1e10 and k < 4 and rho < 1:
        assert least == pytest.approx(rho, abs=1e-9)  # the context reveals the task
    scale = np.sqrt(np.diag(prompt_moments(moments, length, rho)[1]))
    for size in (1e-3, 1.0):
        step = size * rng.standard_normal((4, 5)) / scale
        up, down = (exact_error(best + sign * step, moments, length, rho) for sign in (1, -1))
        assert min(up, down) > least - 1e-12 * (1 + rho)
        assert up == pytest.approx(down, rel=1e-6)  # no slope


def test_variances_vanish_where_they_must():
    """Much data leaves task variance only; many tasks then leave little of that; a strong ridge leaves bias only."""
    much = decompose(**{**POINT, "d": 4, "tau": 400.0}, task_draws=6, sample_draws=2, rng=0).icl
    assert 0 < much.sample_variance < 0.05 * much.task_variance
    many = decompose(**{**POINT, "d": 4, "tau": 400.0, "kappa": 100.0}, task_draws=6, sample_draws=2, rng=0).icl
    assert -0.01 * much.task_variance < many.task_variance < 0.05 * much.task_variance
    flat = decompose(**{**POINT, "ridge": 1e12}, task_draws=2, sample_draws=2, rng=0).icl
    assert flat.bias == pytest.approx(1.1 - flat.noise, rel=1e-6)
    assert abs(flat.sample_variance) + abs(flat.task_variance) < 1e-9


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"task_draws": 1}, ValueError, "task_draws must be one integer >= 2, got 1"),
        ({"sample_draws": 1}, ValueError, r"sample_draws must be one integer >= 2, got 1 \(a variance needs two draws"),
        ({"sample_draws": 0}, ValueError, "sample_draws must be an integer >= 1, got 0"),
        ({"sample_draws": 2.5}, ValueError, "sample_draws must be an integer >= 1, got 2.5"),
        ({"task_draws": [2, 3]}, ValueError, r"task_draws must be one integer >= 2, got \[2, 3\]"),
        ({"task_draws": "many"}, TypeError, "task_draws must be a number"),
        ({"task_draws": math.inf}, ValueError, "task_draws must be an integer >= 1, got inf"),
        ({"tasks": "cube"}, ValueError, "tasks must be one of .*, got 'cube'"),
        ({"assignment": "fair"}, ValueError, "assignment must be one of .*, got 'fair'"),
        ({"task_covariance": np.ones(10)}, ValueError, 'task_covariance must be None with tasks="sphere"'),
        ({"test_context_length": 0}, ValueError, "test_context_length must be an integer >= 1, got 0"),
        ({"method": "guess"}, ValueError, "method must be one of"),
        ({"rho": -1}, ValueError, "rho must be >= 0 and finite, got -1"),
        ({"d": 20_000}, MemoryError, "this simulation"),
    ],
)
def test_wrong_input(arguments, kind, message):
    with pytest.raises(kind, match=message):
        decompose(**{**POINT, **arguments})
