"""Alignment of pretraining and test tasks (Letey et al. 2025): every plotted number."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from icltheory.figures.letey2025.alignment_trials import (
    ALPHA,
    EXPONENT,
    MAIN_KAPPA,
    MATCHED,
    RHO,
    SEEN,
    TAU,
    TRAINING_KAPPAS,
    UNSEEN,
    Alignment,
    Trial,
    family,
    point_at,
    training,
)
from icltheory.points import Floats, Point
from icltheory.prompts.covariance import power_law
from icltheory.theory.alignment import MEASURES, AlignmentTable, Measure, alignment_table, rank_correlations
from icltheory.theory.task_covariance import task_covariance

_BOOTSTRAP = 300


@dataclass(frozen=True, kw_only=True)
class AlignmentRow:
    """One plotted number.

    `panel` is "error" (of a test covariance), "measure" (error against `x`, the value of a measure), "rank" (rank
    correlation of a measure with the error), "training" (error on power-law tasks against the exponent of training)
    or "diversity" (error against the number of pretraining tasks, all of them in the leading half of the directions).
    `error` is the standard error over seeds. For a rank correlation it comes from resampled seeds, and is that of
    its distance from the rank correlation of trd BK (of trd BK itself: its own). `train_exponent` is None for tasks in
    the leading half of the directions.
    """

    panel: Literal["error", "measure", "rank", "training", "diversity"]
    kind: Literal["theory", "simulation"]
    group: str = ""
    test: str = ""
    measure: str = ""
    kappa: float
    train_exponent: float | None = EXPONENT
    value: float
    error: float = 0.0
    x: float | None = None
    d: int | None = None
    seeds: int | None = None


def rows(parameters: Alignment, done: Sequence[Trial], outcomes: Sequence[tuple[float, ...]]) -> list[AlignmentRow]:
    """Return every plotted number."""
    groups: dict[tuple[Point, float | None], list[tuple[float, ...]]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        groups.setdefault((job.point, job.train_exponent), []).append(outcome)
    found: list[AlignmentRow] = []
    for (point, exponent), values in groups.items():
        errors = np.array(values)
        if exponent == EXPONENT:
            table = table_of(point)
            found += _error_rows(point, table, errors)
            if point.d == parameters.d:
                found += _rank_rows(point, table, errors)
            if point == main_point(parameters):
                found += _measure_rows(point, table, errors)
        if exponent is None:
            found += [_point_row("diversity", point, exponent, errors, name) for name in (SEEN, UNSEEN)]
        elif point.d == parameters.d and point in [point_at(parameters.d, kappa) for kappa in TRAINING_KAPPAS]:
            found.append(_point_row("training", point, exponent, errors, MATCHED))
    return found + _training_lines(parameters) + _diversity_lines(parameters)


def main_point(parameters: Alignment) -> Point:
    """Return the point of the panels that show the error against each measure."""
    return point_at(parameters.d, MAIN_KAPPA)


def table_of(point: Point) -> AlignmentTable:
    """Return the predictions and the measures of the family at a point."""
    tests: Mapping[str, Floats] = {name: covariance for name, (_, covariance) in family(point.d).items()}
    return alignment_table(**point.ratios(), train=power_law(point.d, EXPONENT), tests=tests)


def _error_rows(point: Point, table: AlignmentTable, errors: Floats) -> list[AlignmentRow]:
    found = []
    for i, (name, (group, _)) in enumerate(family(point.d).items()):
        theory = AlignmentRow(
            panel="error",
            kind="theory",
            group=group,
            test=name,
            kappa=point.kappa,
            d=point.d,
            value=float(table.icl[i]),
        )
        found += [theory, _measured(theory, errors[:, i])]
    return found


def _measured(row: AlignmentRow, errors: Floats) -> AlignmentRow:
    """Return a row with its value replaced by that of simulations."""
    return replace(
        row,
        kind="simulation",
        value=float(errors.mean()),
        error=float(errors.std(ddof=1)) / math.sqrt(len(errors)),
        seeds=len(errors),
    )


def _measure_rows(point: Point, table: AlignmentTable, errors: Floats) -> list[AlignmentRow]:
    return [
        replace(row, panel="measure", measure=measure, x=float(table.measures[measure][table.tests.index(row.test)]))
        for row in _error_rows(point, table, errors)
        for measure in MEASURES
        if row.kind == "simulation" or measure == "misalignment"  # of which alone the error is a function
    ]


def _rank_rows(point: Point, table: AlignmentTable, errors: Floats) -> list[AlignmentRow]:
    """Return the rank correlations of every measure with predicted and with simulated errors."""
    predicted, simulated = rank_correlations(table), rank_correlations(table, errors.mean(axis=0))
    spreads = _bootstrap(table, errors)
    found = []
    for measure in MEASURES:
        theory = AlignmentRow(
            panel="rank", kind="theory", measure=measure, kappa=point.kappa, d=point.d, value=predicted[measure]
        )
        found += [
            theory,
            replace(theory, kind="simulation", value=simulated[measure], error=spreads[measure], seeds=len(errors)),
        ]
    return found


def _bootstrap(table: AlignmentTable, errors: Floats) -> dict[Measure, float]:
    rng = np.random.default_rng(0)
    draws = [
        rank_correlations(table, errors[rng.integers(len(errors), size=len(errors))].mean(axis=0))
        for _ in range(_BOOTSTRAP)
    ]
    values = {measure: np.array([draw[measure] for draw in draws]) for measure in MEASURES}
    best = values["misalignment"]
    return {
        measure: float(np.std(best if measure == "misalignment" else best - value, ddof=1))
        for measure, value in values.items()
    }


def _point_row(
    panel: Literal["training", "diversity"], point: Point, exponent: float | None, errors: Floats, test: str
) -> AlignmentRow:
    tests = family(point.d)
    row = AlignmentRow(
        panel=panel,
        kind="simulation",
        group=tests[test][0],
        test=test,
        kappa=point.kappa,
        train_exponent=exponent,
        d=point.d,
        value=math.nan,
    )
    return _measured(row, errors[:, list(tests).index(test)])


def _training_lines(parameters: Alignment) -> list[AlignmentRow]:
    d, lines = parameters.d, []
    for nominal in TRAINING_KAPPAS:
        point = point_at(d, nominal)
        for exponent in np.linspace(0.0, 3.0, 61).tolist():
            law = task_covariance(**point.ratios(), train=power_law(d, exponent), test=power_law(d, EXPONENT))
            lines.append(
                AlignmentRow(
                    panel="training",
                    kind="theory",
                    group="power law",
                    test=MATCHED,
                    kappa=point.kappa,
                    train_exponent=exponent,
                    d=d,
                    value=float(law.icl),
                )
            )
    return lines


def _diversity_lines(parameters: Alignment) -> list[AlignmentRow]:
    d, tests, kappas = parameters.d, family(parameters.d), np.geomspace(0.2, 5.0, 80)
    lines = []
    for name in (SEEN, UNSEEN):
        group, covariance = tests[name]
        law = task_covariance(tau=TAU, alpha=ALPHA, kappa=kappas, rho=RHO, train=training(d, None), test=covariance)
        lines += [
            AlignmentRow(
                panel="diversity",
                kind="theory",
                group=group,
                test=name,
                kappa=float(kappa),
                train_exponent=None,
                d=d,
                value=float(value),
            )
            for kappa, value in zip(kappas, law.icl, strict=True)
        ]
    return lines


def pick(rows: Sequence[AlignmentRow], panel: str, kind: str, **fields: float | str) -> list[AlignmentRow]:
    """Return the rows of one panel and kind with the given fields, in order of kappa and training exponent."""
    chosen = [
        row
        for row in rows
        if row.panel == panel and row.kind == kind and all(getattr(row, name) == v for name, v in fields.items())
    ]
    return sorted(chosen, key=lambda row: (row.kappa, row.train_exponent or 0.0))
