"""Statements of Lu et al. 2025 on the context length: measured at small sizes, each claim able to fail."""

from dataclasses import replace

import numpy as np
import pytest

import icltheory as icl
from icltheory.figures import Reproduction, write
from icltheory.figures.averages import by_point, mean_row
from icltheory.figures.lu2025 import context_length, non_monotonicity, non_monotonicity_claims
from icltheory.figures.lu2025.context_length_claims import _claim_published
from icltheory.figures.lu2025.context_length_data import PANELS, ContextLength
from icltheory.figures.lu2025.non_monotonicity_data import NonMonotonicity
from icltheory.simulate.batch import Outcome, run_all

LENGTHS = ContextLength(dimensions=(40, 20, 40), seeds=(8, 8, 8))
MAPS = NonMonotonicity(grid=16, edges=2, dimensions=(40, 20, 40), seeds=(8, 8, 8))


def as_if_simulated(figure, parameters):
    """Compute a figure with outcomes that scatter by two per cent around theory in place of simulations."""
    rng = np.random.default_rng(0)
    jobs = figure.jobs(parameters)
    outcomes = []
    for job in jobs:
        law = icl.theory.linear_attention(**job.point.ratios())
        noisy = [float(e * (1 + 0.02 * rng.standard_normal())) for e in (law.icl, law.idg)]
        outcomes.append(Outcome(icl=noisy[0], idg=noisy[1], train=0.0, solver="none", steps=0, residual=0.0))
    rows = figure.rows(parameters, jobs, outcomes)
    return Reproduction(
        figure=figure,
        scale="smoke",
        parameters=parameters,
        rows=rows,
        claims=figure.claims(parameters, rows),
        simulations=len(jobs),
        seconds=0.0,
    )


@pytest.fixture(scope="module")
def lengths():
    return as_if_simulated(context_length, LENGTHS)


@pytest.fixture(scope="module")
def maps():
    return as_if_simulated(non_monotonicity, MAPS)


def test_context_length_claims(lengths):
    assert [claim.verdict for claim in lengths.claims] == ["holds"] * 4 + ["not tested"]


def change(rows, where, **fields):
    """Replace fields of the rows for which `where` is true, each by a function of its row."""
    return [replace(row, **{k: f(row) for k, f in fields.items()}) if where(row) else row for row in rows]


def simulated(panel, kappa=None):
    return lambda row: (
        row.panel == panel and row.kind == "simulation" and (kappa is None or abs(row.kappa - kappa) < 0.03)
    )


@pytest.mark.parametrize(
    ("which", "where", "value"),
    [
        (0, simulated("A", 0.4), lambda row: 2 / row.alpha),  # no minimum where one is predicted
        (0, simulated("B", 2.0), lambda row: row.value * (4 if row.alpha > 500 else 1)),  # one where none is
        (1, simulated("C", 0.5), lambda row: 2 / row.alpha),
        (1, simulated("C", 2.0), lambda row: row.value * (4 if row.alpha > 500 else 1)),
        (2, simulated("A", 0.2), lambda row: 4 * row.value),
        (3, simulated("C"), lambda row: 2.5 * row.value),
    ],
)
def test_context_length_claims_can_fail(lengths, which, where, value):
    rows = change(lengths.rows, where, value=value)
    assert context_length.claims(LENGTHS, rows)[which].verdict == "fails"


def test_too_few_seeds_are_not_a_verdict(lengths):
    """With errors ten times as large no dip can be seen: not tested, rather than refuted."""
    rows = change(lengths.rows, simulated("C"), error=lambda row: 10 * row.error)
    assert context_length.claims(LENGTHS, rows)[1].verdict == "not tested"


def test_published_context_lengths():
    """At the published size, on the quickest of the points; a shift by a fifth is seen."""
    parameters = replace(LENGTHS, dimensions=(100, 10, 16), seeds=(4, 1, 1))
    wanted = [
        job
        for job in context_length.jobs(parameters)
        if job.point.d == 100 and job.point.alpha == 2.35 and job.point.kappa in (0.2, 1.5)
    ]
    groups = by_point(wanted, run_all(wanted))
    rows = [mean_row("A", point, group, "icl") for point, group in groups.items()]
    claim = _claim_published(rows)
    assert claim.verdict == "holds"
    assert claim.measured.startswith("2 of 20 values compared")
    assert _claim_published(change(rows, lambda row: True, value=lambda row: 1.2 * row.value)).verdict == "fails"


def test_non_monotonicity_claims(maps):
    assert [claim.verdict for claim in maps.claims] == ["holds"] * 7


def cell(panel, low, high):
    return lambda row: row.panel == panel and row.part == "map" and low < row.kappa < high and 0.4 < row.rho < 0.5


def check(panel):
    return lambda row: row.panel == panel and row.part == "check"


@pytest.mark.parametrize(
    ("which", "where", "fields"),
    [
        (0, cell("A", 0.7, 0.9), {"alpha": lambda row: None}),  # a hole
        (0, cell("B", 1.8, 2.2), {"alpha": lambda row: 3.0}),  # an island
        (1, cell("B", 0.1, 0.4), {"alpha": lambda row: None}),
        (3, cell("C", 0.4, 0.6), {"alpha": lambda row: None}),
        (3, cell("C", 2.0, 2.2), {"alpha": lambda row: 3.0}),
        (4, lambda row: row.part == "tuned" and row.kappa < 0.2, {"value": lambda row: 1e-6}),
        (4, lambda row: row.part == "tuned" and row.kappa < 0.2, {"certified": lambda row: False}),
        (5, check("A"), {"value": lambda row: 1 / row.alpha}),
        (5, check("B"), {"value": lambda row: row.value * (1 + row.alpha)}),
        (6, cell("A", 0.7, 0.9), {"certified": lambda row: False}),
    ],
)
def test_non_monotonicity_claims_can_fail(maps, which, where, fields):
    rows = change(maps.rows, where, **fields)
    assert rows != maps.rows
    assert non_monotonicity.claims(MAPS, rows)[which].verdict == "fails"


@pytest.mark.parametrize("rho", [0.5, 10.0])
def test_the_hole_can_be_missing(maps, monkeypatch, rho):
    """The claim about strong noise looks at theory alone: with less noise it fails."""
    boundary = icl.theory.non_monotone_boundary
    monkeypatch.setattr(non_monotonicity_claims, "non_monotone_boundary", lambda **k: boundary(**{**k, "rho": rho}))
    assert non_monotonicity.claims(MAPS, maps.rows)[2].holds == (rho == 10.0)


def test_simulation_is_not_tested_where_it_cannot_tell(maps):
    rows = change(maps.rows, lambda row: row.part == "check", error=lambda row: 10 * row.error)
    assert non_monotonicity.claims(MAPS, rows)[5].verdict == "not tested"


def test_files(lengths, maps, tmp_path):
    for result in (lengths, maps):
        paths = write(result, tmp_path, {})
        assert all(path.stat().st_size > 1000 for path in paths)
    assert {row.kind for row in lengths.rows} == {"theory", "simulation", "published"}
    assert {row.panel for row in lengths.rows} >= {panel.name for panel in PANELS}
    assert all(np.isfinite(row.value) for row in lengths.rows)


@pytest.mark.parametrize(
    ("target", "tau", "kappa", "rho", "lengths"),
    [
        ("icl", 0.5, 0.4, 0.1, (0.7, 7.0, 100.0)),
        ("icl", 20.0, 0.75, 0.5, (0.7, 20.0, 1000.0)),
        ("idg", 0.5, 0.5, 0.5, (1.0, 6.0, 100.0)),
    ],
)
def test_the_error_has_a_minimum_in_the_context_length(target, tau, kappa, rho, lengths):
    """It falls, and then rises by more than 4 standard errors."""
    d, seeds = (20, 8) if tau > 1 else (30, 16)
    runs = np.array(
        [
            [
                getattr(icl.simulate.linear_attention(d=d, tau=tau, alpha=a, kappa=kappa, rho=rho, rng=seed), target)
                for seed in range(seeds)
            ]
            for a in lengths
        ]
    )
    mean, error = runs.mean(axis=1), runs.std(axis=1, ddof=1) / np.sqrt(seeds)
    for end in (0, 2):
        assert mean[end] - mean[1] > 4 * np.hypot(error[end], error[1])


@pytest.mark.parametrize(
    ("tau", "kappa", "grows"), [(0.5, 0.3, True), (0.5, 0.8, False), (3.0, 0.6, True), (3.0, 1.6, False)]
)
def test_endless_contexts(tau, kappa, grows):
    """The error on fresh tasks grows in proportion to alpha for kappa < min(tau, 1), else it tends to its constant."""
    d, rho, seeds = 30, 0.3, 10
    far = icl.theory.limits.long_context(tau=tau, kappa=kappa, rho=rho)
    for alpha in (1e4, 1e5):
        runs = [
            icl.simulate.linear_attention(d=d, tau=tau, alpha=alpha, kappa=kappa, rho=rho, rng=seed).icl
            for seed in range(seeds)
        ]
        law = float(far.icl_growth * alpha + far.icl)
        assert (float(far.icl_growth) > 0) == grows
        assert abs(np.mean(runs) - law) < 4 * np.std(runs, ddof=1) / np.sqrt(seeds) + 8 / d * law
