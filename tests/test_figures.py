"""Figures: every claim can fail, data and pictures are complete, numbers do not depend on the workers."""

import csv
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from icltheory.figures import FIGURES, Figure, find, reproduce, write
from icltheory.figures.lu2025 import double_descent
from icltheory.figures.lu2025.double_descent_data import DoubleDescent
from icltheory.points import Point
from icltheory.report import write_report
from icltheory.simulate import linear_attention
from icltheory.simulate.batch import Job, run_all

TINY = DoubleDescent(d=16, seeds=6, ridge_seeds=4, peak_d=8, peak_seeds=60, published_tau=())


@pytest.fixture(scope="module")
def tiny():
    return reproduce(replace(double_descent, scales={"smoke": TINY}), "smoke", seed=3)


def verdicts(rows, parameters=TINY):
    return [claim.verdict for claim in double_descent.claims(parameters, rows)]


def test_claims_hold_or_are_not_tested(tiny):
    assert [claim.verdict for claim in tiny.claims] == ["holds"] * 5 + ["not tested"]
    assert not tiny.failed
    assert re.search(r"no point at d = 100", tiny.claims[-1].measured)


def change(rows, panel, **fields):
    """Replace fields of the simulated points of one panel, each by a function of its row."""
    return [
        replace(row, **{name: f(row) for name, f in fields.items()})
        if row.panel == panel and row.kind == "simulation"
        else row
        for row in rows
    ]


@pytest.mark.parametrize(
    ("which", "panel", "fault"),
    [
        (0, "A", {"value": lambda row: 1.0}),
        (1, "D", {"n_sequences": lambda row: row.n_sequences - 8}),
        (2, "A", {"value": lambda row: 4 * row.value}),
        (2, "B", {"value": lambda row: 0.2 * row.value}),
        (3, "C", {"value": lambda row: 3 * row.value}),
        (4, "C", {"value": lambda row: 1.0}),
        (4, "C", {"value": lambda row: row.value * (10 if row.tau == 1 else 1)}),
        (4, "C", {"value": lambda row: row.value * (2 if row.ridge == 0.1 and 1.1 < row.tau < 1.2 else 1)}),
    ],
)
def test_every_claim_can_fail(tiny, which, panel, fault):
    rows = change(tiny.rows, panel, **fault)
    if which == 1:  # a peak at d^2, and no other size there
        rows = [row for row in rows if row.panel != "D" or row.n_sequences is None or row.n_sequences > 56]
    assert verdicts(rows)[which] == "fails"


def test_a_claim_without_points_is_not_tested(tiny):
    """At d = 2 every ridgeless point lies within 5/d of the peak."""
    assert verdicts(tiny.rows, replace(TINY, d=2))[2] == "not tested"


def test_the_published_comparison():
    """At the published sizes, on the quickest of the points; a shift by five per cent is seen."""
    parameters = replace(TINY, published_tau=(0.2,), seeds=3)
    jobs = [job for job in double_descent.jobs(parameters) if job.point.d == 100]
    assert {job.point.n_sequences for job in jobs} == {2000}
    others = [job for job in double_descent.jobs(TINY) if job.repetition < 3]
    rows = double_descent.rows(parameters, jobs + others, run_all(jobs + others))
    claim = double_descent.claims(parameters, rows)[-1]
    assert claim.verdict == "holds"
    assert claim.measured.startswith("6 of 36 values compared")
    shifted = change(rows, "published check", value=lambda row: 1.05 * row.value)
    assert verdicts(shifted, parameters)[-1] == "fails"


def test_files(tiny, tmp_path):
    paths = write(tiny, tmp_path, {"commit": None})
    assert [path.suffix for path in paths] == [".png", ".pdf", ".csv", ".json"]
    assert all(path.stat().st_size > 1000 for path in paths)
    with paths[2].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(tiny.rows)
    assert {row["kind"] for row in rows} == {"theory", "simulation", "published"}
    assert {row["panel"] for row in rows} == {"A", "B", "C", "D"}
    assert all(math.isfinite(float(row["value"])) for row in rows)
    record = json.loads(paths[3].read_text())
    assert record["scale"] == "smoke"
    assert record["parameters"]["d"] == 16
    assert [claim["verdict"] for claim in record["claims"]] == [claim.verdict for claim in tiny.claims]


def test_report_is_one_self_contained_page(tiny, tmp_path):
    provenance = {"icltheory": "0", "commit": None, "time": "t", "processor": "<b>", "cores": 2, "command": "icl x"}
    write(tiny, tmp_path, provenance)
    page = write_report([tiny], tmp_path, provenance).read_text()
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert page.count('class="verdict holds"') == 5
    assert page.count('class="verdict not-tested"') == 1
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_numbers_do_not_depend_on_workers_or_company():
    jobs = [
        Job(point=Point.of(d=8, tau=tau, alpha=1, kappa=1, rho=0.1, ridge=0.01), seed=5, repetition=i)
        for tau in (0.5, 1.5)
        for i in range(2)
    ]
    alone = [run_all([job])[0] for job in jobs]
    together = run_all(jobs, workers=2)
    for one, other in zip(alone, together, strict=True):
        assert (one.icl, one.idg, one.train) == pytest.approx((other.icl, other.idg, other.train), rel=1e-10)
    assert len({outcome.icl for outcome in alone}) == 4


def test_streams_are_named_by_the_whole_job():
    job = Job(point=Point.of(d=8, tau=1, alpha=1, kappa=1, rho=0.1))
    others = [
        job,
        replace(job, seed=1),
        replace(job, repetition=1),
        replace(job, tasks="gaussian"),
        replace(job, assignment="balanced"),
        replace(job, point=replace(job.point, ridge=0.1)),
        replace(job, point=replace(job.point, n_tasks=math.inf)),
        replace(job, task_covariance=(1.0,) * 8),
    ]
    states = {tuple(other.seed_sequence().generate_state(4)) for other in others}
    assert len(states) == len(others)
    same_training = replace(job, test_task_covariance=(1.0,) * 8, test_context_length=3)
    assert same_training.seed_sequence().entropy == job.seed_sequence().entropy


def test_jobs_pass_on_how_tasks_are_drawn_and_tested():
    spectrum, other = tuple(np.linspace(0.5, 1.5, 8)), tuple(np.linspace(1.9, 0.1, 8))
    job = Job(
        point=Point.of(d=8, tau=2, alpha=1, kappa=1, rho=0.1, ridge=0.1),
        tasks="gaussian",
        task_covariance=spectrum,
        test_task_covariance=other,
        test_context_length=20,
    )
    sim = linear_attention(
        d=8,
        tau=2,
        alpha=1,
        kappa=1,
        rho=0.1,
        ridge=0.1,
        tasks="gaussian",
        task_covariance=spectrum,
        test_task_covariance=other,
        test_context_length=20,
        rng=job.seed_sequence(),
    )
    outcome = job.run()
    assert (outcome.icl, outcome.idg, outcome.train) == (sim.icl, sim.idg, sim.train)


def test_a_dead_worker_is_explained(monkeypatch):
    import icltheory.simulate.batch as batch

    jobs = [Job(point=Point.of(d=4, tau=1, alpha=1, kappa=1, rho=0.1), repetition=i) for i in range(2)]
    monkeypatch.setattr(batch, "_one_thread", batch.os.abort)
    with pytest.raises(RuntimeError, match="a worker process died, most likely for want of memory"):
        run_all(jobs, workers=2)


def test_names():
    assert find("lu2025/double-descent") is double_descent
    assert all(isinstance(figure, Figure) and name == figure.name for name, figure in FIGURES.items())
    with pytest.raises(ValueError, match="no figure is called 'double-descent'; there are lu2025/double-descent"):
        find("double-descent")
    with pytest.raises(ValueError, match="scale must be one of"):
        reproduce(double_descent, "huge")
