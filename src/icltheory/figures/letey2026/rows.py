"""Correlated prompts (Letey et al. 2026): plotted numbers, from simulation and from theory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from icltheory.figures.letey2026.trials import Prompts, QueryName, Trial
from icltheory.points import Floats, Point
from icltheory.theory import correlated_context

Measured = Literal["icl", "gain", "spread", "weak", "strong", "ridge", "length"]


@dataclass(frozen=True, kw_only=True)
class CorrelatedRow:
    """One plotted number.

    `value` is the ICL error, or what `measured` says: the query "gain", the relative "spread" of trd Gamma over seeds,
    the error that the formula for "weak" or "strong" correlations gives for the fitted Gamma, the error of classical
    "ridge" regression, or an effective context "length". `x` is what it is plotted against, `curve` tells the curves of
    a panel apart. `error` is the standard error over seeds (0 for theory), `spread` their standard deviation.
    """

    panel: str
    kind: Literal["theory", "simulation", "published"]
    curve: str
    x: float
    value: float
    measured: Measured = "icl"
    query: QueryName = "independent"
    error: float = 0.0
    spread: float = 0.0
    tau: float
    alpha: float
    kappa: float
    rho: float
    k0: float | None = None
    k1: float | None = None
    k2: float | None = None
    d: int | None = None
    seeds: int | None = None


def simulated(
    panel: str,
    trial: Trial,
    values: ArrayLike,
    *,
    curve: str,
    x: float,
    measured: Measured = "icl",
    query: QueryName | None = None,
) -> CorrelatedRow:
    """Return the mean over repetitions with its standard error."""
    found = np.asarray(values, dtype=np.float64)
    spread = float(found.std(ddof=1)) if len(found) > 1 else math.nan
    return _row(
        panel,
        "simulation",
        trial.point,
        trial.prompts if query is None else None,
        curve=curve,
        x=x,
        value=float(found.mean()),
        measured=measured,
        query=trial.prompts.query if query is None else query,
        error=spread / math.sqrt(len(found)),
        spread=spread,
        d=trial.point.d,
        seeds=len(found),
    )


def predicted(
    panel: str, point: Point, train: Prompts, test: Prompts | None = None, *, curve: str, x: float
) -> CorrelatedRow:
    """Return the prediction for a model trained on one kind of prompts and tested on another, as d goes to infinity."""
    return _row(
        panel,
        "theory",
        point,
        train if test is None else None,
        curve=curve,
        x=x,
        value=float(law(point, train, test)),
        measured="icl",
        query=(train if test is None else test).query,
    )


def law(point: Point, train: Prompts, test: Prompts | None = None) -> Floats:
    """Return the ICL error of theory, which is asked here beyond the weak correlations that it takes for granted."""
    s = train.statistics
    t = s if test is None else test.statistics
    alpha = None if test is None else test.kernel.context_length / point.d
    return correlated_context(
        **point.ratios(), k0=s.k0, k1=s.k1, k2=s.k2, test_alpha=alpha, test_k0=t.k0, test_k1=t.k1, test_k2=t.k2
    ).icl


def quoted(
    panel: str, point: Point, *, curve: str, x: float, value: float, measured: Measured = "icl", query: QueryName
) -> CorrelatedRow:
    """Return a published number."""
    return _row(panel, "published", point, None, curve=curve, x=x, value=value, measured=measured, query=query)


def other(
    panel: str,
    point: Point,
    prompts: Prompts | None = None,
    *,
    curve: str,
    x: float,
    value: float,
    measured: Measured,
    query: QueryName = "independent",
    d: int | None = None,
) -> CorrelatedRow:
    """Return a number of theory other than `predicted`."""
    return _row(panel, "theory", point, prompts, curve=curve, x=x, value=value, measured=measured, query=query, d=d)


def _row(
    panel: str,
    kind: Literal["theory", "simulation", "published"],
    point: Point,
    prompts: Prompts | None,
    *,
    curve: str,
    x: float,
    value: float,
    measured: Measured,
    query: QueryName,
    error: float = 0.0,
    spread: float = 0.0,
    d: int | None = None,
    seeds: int | None = None,
) -> CorrelatedRow:
    found = None if prompts is None else prompts.statistics
    return CorrelatedRow(
        panel=panel,
        kind=kind,
        curve=curve,
        x=x,
        value=value,
        measured=measured,
        query=query,
        error=error,
        spread=spread,
        tau=point.tau,
        alpha=point.alpha,
        kappa=point.kappa,
        rho=point.rho,
        k0=None if found is None else found.k0,
        k1=None if found is None else found.k1,
        k2=None if found is None else found.k2,
        d=d,
        seeds=seeds,
    )


def pick(rows: Sequence[CorrelatedRow], panel: str, kind: str, **fields: object) -> list[CorrelatedRow]:
    """Return the rows of one panel and kind with the given fields, in order of x."""
    chosen = [
        row
        for row in rows
        if row.panel == panel and row.kind == kind and all(getattr(row, name) == v for name, v in fields.items())
    ]
    return sorted(chosen, key=lambda row: row.x)
