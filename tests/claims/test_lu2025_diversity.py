"""Statements of Lu et al. 2025 on task diversity: dMMSE against a slow twin, and the figure's claims, able to fail."""

import math
from dataclasses import replace

import numpy as np
import pytest

import icltheory as icl
from icltheory.figures import Reproduction, write
from icltheory.figures.lu2025 import task_diversity as figure
from icltheory.figures.lu2025.task_diversity_claims import power_law
from icltheory.figures.lu2025.task_diversity_data import TaskDiversity, diversity_points, published_points
from icltheory.figures.published import LU2025_FIG4_LINEAR, LU2025_FIG4_RUNS, LU2025_FIG4_SPREAD
from icltheory.prompts.tasks import draw_tasks
from icltheory.simulate.batch import Job, Outcome
from icltheory.simulate.discrete import DiscreteJob, bayes_discrete, short_contexts
from icltheory.theory.nearest_task import nearest_task


def token_by_token(law, *, d, length, k, rho, prompts, rng):
    """Draw every token, the query too, and let the estimator predict its noisy label: (icl, idg)."""
    known = draw_tasks(k, d, law, rng)
    fresh, seen = draw_tasks(prompts, d, law, rng), known[rng.integers(k, size=prompts)]
    errors = []
    for w in (fresh, seen):
        x = rng.standard_normal((prompts, length + 1, d)) / math.sqrt(d)
        y = np.einsum("bld,bd->bl", x, w) + math.sqrt(rho) * rng.standard_normal((prompts, length + 1))
        predicted = icl.bayes.discrete(x[:, :-1], y[:, :-1], x[:, -1], known, rho)
        errors.append(np.mean((y[:, -1] - predicted) ** 2))
    return errors


def mean_and_error(runs):
    values = np.asarray(runs)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
@pytest.mark.parametrize(("length", "rho"), [(4, 0.2), (8, 1.0), (20, 1.0)])
def test_short_prompts_are_worth_long_ones(law, length, rho):
    """So noisy, or so short, that the estimator often takes one task for another."""
    d, k = 8, 12
    rng = np.random.default_rng(5)
    slow, slow_error = mean_and_error(
        [token_by_token(law, d=d, length=length, k=k, rho=rho, prompts=400, rng=rng) for _ in range(60)]
    )
    runs = [
        bayes_discrete(d=d, context_length=length, n_tasks=k, rho=rho, tasks=law, prompts=400, rng=[7, seed])
        for seed in range(60)
    ]
    fast, fast_error = mean_and_error([(run.icl, run.idg) for run in runs])
    assert np.all(np.abs(fast - slow) < 4 * np.hypot(fast_error, slow_error))
    assert np.all(np.hypot(fast_error, slow_error) < 0.02 * slow)
    assert slow[1] > 1.05 * rho
    assert all(run.gap == run.icl - run.idg for run in runs)


def test_contexts_have_the_moments_of_a_wishart_matrix():
    """E X^T X = l/d; E tr (X^T X)^2 and E det X^T X as l tokens give them."""
    d, length = 5, 9
    r = short_contexts(200_000, d, length, np.random.default_rng(0))
    assert np.all(r[:, *np.tril_indices(d, -1)] == 0)
    gram = np.einsum("bij,bik->bjk", r, r)
    np.testing.assert_allclose(gram.mean(axis=0), length / d * np.eye(d), atol=0.01)
    square = np.einsum("bij,bij->b", gram, gram).mean()
    assert square == pytest.approx(length * (length + 1 + d) / d, rel=5e-3)
    determinant = math.prod(range(length - d + 1, length + 1)) / d**d
    assert np.linalg.det(gram).mean() == pytest.approx(determinant, rel=0.03)
    assert short_contexts(3, d, 2, np.random.default_rng(0)).shape == (3, 2, d)
    assert short_contexts(3, d, length, np.random.default_rng(0)).shape == (3, d, d)


@pytest.mark.parametrize("length", [20, 40])
def test_two_tasks(length):
    """The log-odds of the true task are normal of mean m/2 and variance m, with m = |X (w_1 - w_2)|^2/rho."""
    d, rho = 30, 0.125 * length
    rng = np.random.default_rng(2)
    one, rest = rng.standard_normal(10**6), rng.chisquare(d - 1, 10**6)
    cosine = one / np.sqrt(one**2 + rest)
    distance = 2 * (1 - cosine)
    m = distance * rng.chisquare(length, 10**6) / rho
    odds = m / 2 + np.sqrt(m) * rng.standard_normal(10**6)
    exact = np.mean(distance / (1 + np.exp(odds)) ** 2)
    runs = [
        bayes_discrete(d=d, context_length=length, n_tasks=2, rho=rho, tasks="sphere", prompts=200, rng=[3, seed])
        for seed in range(200)
    ]
    mean, error = mean_and_error([run.idg - rho for run in runs])
    assert abs(mean - exact) < 4 * error
    assert error < 0.05 * exact


def test_what_is_known_exactly():
    one = [bayes_discrete(d=6, context_length=9, n_tasks=1, rho=0.3, prompts=500, rng=[1, seed]) for seed in range(200)]
    mean, error = mean_and_error([run.icl for run in one])
    assert abs(mean - 2.3) < 4 * error
    assert error < 0.05
    assert all(run.idg == pytest.approx(0.3, abs=1e-14) for run in one)
    for law in ("gaussian", "sphere"):
        runs = [
            bayes_discrete(d=6, alpha=500, n_tasks=40, rho=0.0, tasks=law, prompts=100, rng=seed) for seed in range(100)
        ]
        mean, error = mean_and_error([run.icl for run in runs])
        law_ = float(nearest_task(d=6, n_tasks=40, tasks=law))
        assert abs(mean - law_) < 4 * error + law_ / 500
        assert error < 0.03 * law_
        assert all(run.idg == 0 for run in runs)


def test_sizes_and_seeds():
    run = bayes_discrete(d=10, alpha=2.04, kappa=0.57, rho=0.1, prompts=8, rng=0)
    assert (run.d, run.context_length, run.n_tasks) == (10, 20, 6)
    assert run == bayes_discrete(d=10, context_length=20, n_tasks=6, rho=0.1, prompts=8, rng=0)
    assert run != bayes_discrete(d=10, context_length=20, n_tasks=6, rho=0.1, prompts=8, rng=1)
    job = DiscreteJob(d=10, context_length=20, n_tasks=6, rho=0.1, tasks="sphere", prompts=8)
    assert job.run() == job.run()
    assert len({replace(job, **change).run().icl for change in ({}, {"seed": 1}, {"repetition": 1})}) == 3
    assert replace(job, n_tasks=60).price() > job.price() > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kappa": math.inf}, "kappa must be finite here, got inf"),
        ({"kappa": -1.0}, "kappa must be > 0, got -1"),
        ({"prompts": 0}, "prompts must be an integer >= 1, got 0"),
        ({"tasks": "cube"}, "tasks must be one of"),
        ({"rho": -0.1}, "rho must be >= 0"),
        ({"n_tasks": 5}, "give kappa or n_tasks, not both"),
    ],
)
def test_errors_name_the_argument(change, message):
    with pytest.raises(ValueError, match=message):
        bayes_discrete(**{"d": 4, "alpha": 2.0, "kappa": 2.0, "rho": 0.1, "rng": 0, **change})


@pytest.mark.parametrize("which", [0, 4, 7, 10])
def test_the_published_gap_of_linear_attention(which):
    """One run at the published sizes; floor(kappa d) tasks, not the nearest number."""
    point = published_points()[which]
    run = Job(point=point, assignment="balanced").run()
    gap, spread = LU2025_FIG4_LINEAR[which], LU2025_FIG4_SPREAD[which]
    assert abs(run.icl - run.idg - gap) < 3 * spread * math.sqrt(1 + 1 / LU2025_FIG4_RUNS)
    assert [int(point.n_tasks) for point in published_points()[:4]] == [12, 25, 38, 51]


TINY = TaskDiversity(
    d=24, seeds=4, far_seeds=4, published_seeds=2, lists=4, prompts=24, transition_d=20, transition_seeds=4
)


@pytest.fixture(scope="module")
def tiny():
    """Fits scatter by two per cent about the finite-size theory; dMMSE is simulated."""
    rng = np.random.default_rng(0)
    jobs = figure.jobs(TINY)
    laws, outcomes = {}, []
    for job in jobs:
        if isinstance(job, DiscreteJob):
            outcomes.append(job.run())
            continue
        if job.point not in laws:
            laws[job.point] = icl.theory.finite_size(d=job.point.d, **job.point.ratios())
        law = laws[job.point]
        gap = float(law.gap) * (1 + 0.02 * rng.standard_normal())
        idg = float(law.idg)
        outcomes.append(Outcome(icl=idg + gap, idg=idg, train=0.0, solver="none", steps=0, residual=0.0))
    rows = figure.rows(TINY, jobs, outcomes)
    claims = figure.claims(TINY, rows)
    return Reproduction(
        figure=figure, scale="smoke", parameters=TINY, rows=rows, claims=claims, simulations=len(jobs), seconds=0.0
    )


def test_claims_hold(tiny, tmp_path):
    assert [claim.verdict for claim in tiny.claims] == ["holds"] * 9
    assert all(path.stat().st_size > 1000 for path in write(tiny, tmp_path, {}))
    assert {row.panel for row in tiny.rows} == {"A", "B", "C", "D", "D inset"}
    assert {row.kind for row in tiny.rows} == {"theory", "simulation", "published"}
    assert all(math.isfinite(row.value) and math.isfinite(row.error) for row in tiny.rows)
    assert len(set(figure.jobs(TINY))) == len(figure.jobs(TINY))
    # two sequences a task, at least
    assert max(point.kappa for point in diversity_points(TINY) if point.alpha == 10) == 20


def bayes(panel, law="gaussian"):
    return lambda row: row.panel == panel and row.estimator == "dMMSE" and row.tasks == law


def linear(panel, kind="simulation"):
    return lambda row: row.panel == panel and row.kind == kind and row.estimator == "linear attention"


@pytest.mark.parametrize(
    ("which", "where", "value"),
    [
        (0, bayes("B"), lambda row: row.value / 1.2),
        (0, linear("B"), lambda row: max(row.value, 0.06)),
        (0, linear("B"), lambda row: min(row.value, 0.3)),
        (1, linear("A"), lambda row: row.value * row.kappa**0.1),
        (2, bayes("C"), lambda row: row.value * row.kappa**-0.03),
        (2, bayes("C"), lambda row: row.value * row.kappa**0.06),
        (3, bayes("C"), lambda row: 1.25 * row.value),
        (3, bayes("A"), lambda row: 0.8 * row.value),
        (4, linear("D"), lambda row: row.value * (1.4 if row.kappa > 1 else 1)),
        (4, linear("D"), lambda row: 0.1 if row.kappa > 1 else 0.6),
        (5, linear("D inset", "theory"), lambda row: 1.02 * row.value),
        (5, linear("D inset", "theory"), lambda row: row.value * row.alpha**-0.01),
        (6, linear("A"), lambda row: 1.4 * row.value),
        (6, linear("D"), lambda row: 0.6 * row.value),
        (7, linear("B"), lambda row: 1.08 * row.value),
        (7, linear("B", "published"), lambda row: 0.93 * row.value),
        (8, bayes("B"), lambda row: row.value * (1.06 if row.kind == "simulation" else 1)),
        (8, bayes("B"), lambda row: row.value * (row.kappa**0.06 if row.kind == "simulation" else 1)),
        (8, bayes("B"), lambda row: row.value + (0.25 if row.kind == "published" and row.kappa == 1 else 0)),
    ],
)
def test_claims_can_fail(tiny, which, where, value):
    rows = [replace(row, value=value(row)) if where(row) else row for row in tiny.rows]
    assert figure.claims(TINY, rows)[which].verdict == "fails"


@pytest.mark.parametrize(("change", "which"), [({"rho": 0.012}, 5), ({"tau": 5e5}, 5), ({"alpha": 1.1e5}, 5)])
def test_the_limit_can_fail(tiny, monkeypatch, change, which):
    """It looks at theory alone."""
    law = icl.theory.linear_attention
    monkeypatch.setattr(
        "icltheory.figures.lu2025.task_diversity_claims.linear_attention", lambda **k: law(**{**k, **change})
    )
    assert figure.claims(TINY, tiny.rows)[which].verdict == "fails"


def test_a_power_law_is_found_with_its_error(tiny):
    points = [row for row in tiny.rows if row.panel == "C" and row.kind == "simulation"][:7]
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        noisy = [replace(row, value=row.kappa**-0.7 * (1 + 0.03 * rng.standard_normal())) for row in points]
        found.append(power_law(noisy, [0.03 * row.value for row in noisy]))
    slopes, errors = np.transpose(found)
    assert abs(slopes.mean() + 0.7) < 4 * slopes.std() / 20
    assert slopes.std() == pytest.approx(errors.mean(), rel=0.15)
