"""Statements of Letey et al. 2025 (arXiv:2509.26551), each measured at fixed seeds; and that the figure's can fail."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest

import icltheory as icl
from icltheory.figures import reproduce, write
from icltheory.figures.letey2025 import alignment
from icltheory.figures.letey2025.alignment_trials import MATCHED, SEEN, UNSEEN, Alignment, Trial, family, training
from icltheory.points import Point
from icltheory.prompts.covariance import low_rank, power_law, spiked
from icltheory.simulate import exact_error
from icltheory.simulate.batch import run_all
from icltheory.theory import task_covariance

D = 40
POINT = {"d": D, "tau": 4.0, "alpha": 2.0, "rho": 0.01}


def errors(train, tests, kappa, seeds=10):
    """Return simulated ICL errors, seeds by tests: each seed's one model is tested on every covariance."""
    moments = [icl.prompts.moments_of_law("gaussian", D, covariance=b) for b in tests]
    found = []
    for seed in range(seeds):
        sim = icl.simulate.linear_attention(
            **POINT, kappa=kappa, tasks="gaussian", task_covariance=train, assignment="balanced", rng=seed
        )
        found.append([exact_error(sim.gamma, m, sim.point.context_length, 0.01) for m in moments])
    return np.array(found)


def above(first, second):
    """Return by how many standard errors the first exceeds the second, seed by seed."""
    difference = first - second
    return difference.mean() / (difference.std(ddof=1) / math.sqrt(len(difference)))


@pytest.mark.parametrize("kappa", [1.0, 4.0])
def test_theory_predicts_the_error_under_any_mismatch(kappa):
    """|simulation - theory| < 4 standard errors + c/d, with c = 8, the effect known at d = 40 (finite_size.md)."""
    c = power_law(D, 0.9)
    tests = [b for _, b in family(D).values()]
    simulated = errors(c, tests, kappa)
    predicted = np.array([float(task_covariance(**POINT, kappa=kappa, train=c, test=b).icl) for b in tests])
    error = simulated.std(axis=0, ddof=1) / math.sqrt(len(simulated))
    assert np.all(np.abs(simulated.mean(axis=0) - predicted) < 4 * error + 8 / D * predicted)


def test_the_derived_alignment_orders_the_errors_and_others_do_not():
    c = power_law(D, 0.9)
    tests = {name: b for name, (_, b) in family(D).items()}
    simulated = errors(c, list(tests.values()), 2.0).mean(axis=0)
    table = icl.theory.alignment_table(tau=4.0, alpha=2.0, kappa=2.0, rho=0.01, train=c, tests=tests)
    order = icl.theory.rank_correlations(table, simulated)
    assert order["misalignment"] > 0.98
    assert order["inverse"] > 0.95
    assert max(order[name] for name in ("cka", "cosine", "captured", "frobenius", "bures", "divergence")) < 0.9


def test_the_easiest_test_lies_in_the_strongest_direction_of_training():
    c = power_law(D, 0.9)
    same, strongest, weakest = errors(c, [c, spiked(D, 1e9), spiked(D, 1e9)[::-1]], 1.0).T
    assert above(same, strongest) > 4
    assert above(weakest, same) > 4


def test_few_tasks_want_a_steeper_training_spectrum():
    test = power_law(D, 0.9)
    few = [errors(power_law(D, exponent), [test], 0.4)[:, 0] for exponent in (0.9, 1.5)]
    many = [errors(power_law(D, exponent), [test], 4.0)[:, 0] for exponent in (0.9, 1.5)]
    assert above(few[0], few[1]) > 4
    assert above(many[1], many[0]) > 4


def test_more_tasks_help_where_they_reach_and_harm_where_they_do_not():
    c = low_rank(D, D // 2)
    few, many = (errors(c, [c, c[::-1]], kappa) for kappa in (0.5, 4.0))
    assert above(few[:, 0], many[:, 0]) > 4
    assert above(many[:, 1], few[:, 1]) > 4


def test_alignment_has_no_meaning_if_training_is_isotropic():
    """Errors on tests of equal signal variance are equal up to O(1/d), whatever the test."""
    simulated = errors(np.ones(D), [np.ones(D), power_law(D, 1.0), low_rank(D, 5)], 1.0).mean(axis=0)
    np.testing.assert_allclose(simulated, simulated[0], rtol=4 / D)


PARAMETERS = Alignment(d=64, seeds=12, half_seeds=40, diversity_seeds=12)


@pytest.fixture(scope="module")
def rows():
    """Rows of simulations as theory expects them: its error, 3/d more, and one per cent of noise a seed."""
    rng = np.random.default_rng(0)
    predicted = {}

    def outcome(trial):
        point, exponent = trial.point, trial.train_exponent
        if (point, exponent) not in predicted:
            train = training(point.d, exponent)
            laws = [task_covariance(**point.ratios(), train=train, test=b) for _, b in family(point.d).values()]
            predicted[point, exponent] = np.array([float(law.icl) for law in laws]) * (1 + 3 / point.d)
        mean = predicted[point, exponent]
        return tuple(mean * (1 + 0.01 * rng.standard_normal(len(mean))))

    trials = alignment.jobs(PARAMETERS)
    return alignment.rows(PARAMETERS, trials, [outcome(trial) for trial in trials])


def test_claims_hold_where_theory_does(rows):
    assert [claim.verdict for claim in alignment.claims(PARAMETERS, rows)] == ["holds"] * 6


def change(rows, panel, value, chosen=lambda row: True):
    return [
        replace(row, value=value(row)) if row.panel == panel and row.kind == "simulation" and chosen(row) else row
        for row in rows
    ]


FAULTS = {
    "a test that theory misses": (0, "error", lambda r: 1.1 * r.value, lambda r: r.d == 64 and r.test == MATCHED),
    "a constant off by 5 %": (0, "error", lambda r: 1.05 * r.value, lambda r: True),
    "an order no better": (1, "rank", lambda r: 1.0, lambda r: r.measure == "cosine"),
    "a poor order": (1, "rank", lambda r: 0.94, lambda r: r.measure == "misalignment"),
    "the inverse as good": (2, "rank", lambda r: 1.0, lambda r: r.measure == "inverse"),
    "the resolvent much worse": (2, "rank", lambda r: r.value - 0.05, lambda r: r.measure == "resolvent"),
    "the same is easiest": (3, "error", lambda r: 0.1, lambda r: r.test == MATCHED),
    "few tasks want the same": (4, "training", lambda r: 0.1, lambda r: r.train_exponent == 0.9),
    "few tasks want a flat spectrum": (4, "training", lambda r: 0.1, lambda r: r.train_exponent == 0.0),
    "many want a steeper one": (4, "training", lambda r: 0.1, lambda r: r.kappa > 3 and r.train_exponent == 1.4),
    "tasks do not help": (5, "diversity", lambda r: 0.5, lambda r: r.test == SEEN),
    "tasks do not harm": (5, "diversity", lambda r: 1.3, lambda r: r.test == UNSEEN),
}


@pytest.mark.parametrize(("which", "panel", "value", "chosen"), FAULTS.values(), ids=FAULTS)
def test_every_claim_can_fail(rows, which, panel, value, chosen):
    verdicts = [claim.verdict for claim in alignment.claims(PARAMETERS, change(rows, panel, value, chosen))]
    assert verdicts[which] == "fails"


def test_the_whole_figure_at_a_tiny_size(tmp_path):
    parameters = Alignment(d=12, seeds=2, half_seeds=2, diversity_seeds=2)
    result = reproduce(replace(alignment, scales={"smoke": parameters}), "smoke", seed=1)
    assert len(result.claims) == 6
    paths = write(result, tmp_path, {"commit": None})
    assert all(path.stat().st_size > 1000 for path in paths)
    with paths[2].open(newline="") as file:
        written = list(csv.DictReader(file))
    assert len(written) == len(result.rows)
    assert {row["panel"] for row in written} == {"error", "measure", "rank", "training", "diversity"}
    assert all(math.isfinite(float(row["value"])) for row in written)


def test_the_family_has_equal_signal_and_the_same_names_at_every_size():
    for d in (12, 40):
        for name, (_, covariance) in family(d).items():
            trace = np.trace(covariance) if covariance.ndim == 2 else covariance.sum()
            assert trace == pytest.approx(d), name
    assert list(family(12)) == list(family(40))


def test_a_trial_is_a_simulation_of_its_own_stream():
    trial = Trial(point=Point.of(d=12, tau=2, alpha=2, kappa=1, rho=0.1), train_exponent=0.9, seed=3)
    first, again, other = run_all([trial, trial, replace(trial, repetition=1)])
    assert first == again
    assert first != other
    assert len(first) == len(family(12))
    assert trial.price() > replace(trial, point=Point.of(d=10, tau=2, alpha=2, kappa=1, rho=0.1)).price()
