"""Correlations that differ between training and test: what the figure shows, statement by statement."""

import math
from collections.abc import Sequence

from icltheory.figures.figure import Claim
from icltheory.figures.letey2026.other_correlation_data import OtherCorrelation, curve_of, lengths, panel_of
from icltheory.figures.letey2026.rows import CorrelatedRow, pick
from icltheory.figures.letey2026.trials import QUERIES, QueryName
from icltheory.figures.published import LETEY2026

LIMIT = 6.0  # finite-size effect of theory times d: up to 14 % at d = 32 where training and test differ most
SOURCE = f"{LETEY2026}, whose theory allows other statistics at test time; the comparisons are this project's"


def claims(parameters: OtherCorrelation, rows: Sequence[CorrelatedRow]) -> list[Claim]:
    """Measure every claim."""
    return [
        _claim_theory(parameters, rows),
        _claim_mismatch(parameters, rows),
        _claim_query(parameters, rows),
        _claim_other_query(parameters, rows),
    ]


def _claim_theory(parameters: OtherCorrelation, rows: Sequence[CorrelatedRow]) -> Claim:
    theory = {(row.panel, row.curve, row.x): row.value for row in rows if row.kind == "theory"}
    points = [row for row in rows if row.kind == "simulation"]

    def used(row: CorrelatedRow) -> float:
        law = theory[row.panel, row.curve, row.x]
        return abs(row.value - law) / (4 * row.error + LIMIT / parameters.d * law)

    worst = max(points, key=used)
    return Claim(
        statement="Theory predicts the error on prompts correlated otherwise than those of training",
        source=SOURCE,
        expected=f"|simulation - theory| < 4 standard errors + {LIMIT:g}/d theory, d = {parameters.d}",
        measured=f"worst of {len(points)} uses {used(worst):.0%} of that ({worst.curve}, {worst.query} query at xi = "
        f"{worst.x:g}: {worst.value:.3f}, theory {theory[worst.panel, worst.curve, worst.x]:.3f})",
        holds=used(worst) < 1,
    )


def _at(
    rows: Sequence[CorrelatedRow], train: QueryName, test: QueryName, train_xi: float, test_xi: float
) -> CorrelatedRow:
    return pick(rows, panel_of(train, test), "simulation", curve=curve_of(train_xi), x=test_xi)[0]


def _score(worse: CorrelatedRow, better: CorrelatedRow) -> float:
    return (worse.value - better.value) / math.hypot(worse.error, better.error)


def _claim_mismatch(parameters: OtherCorrelation, rows: Sequence[CorrelatedRow]) -> Claim:
    longest = max(lengths(parameters)[0])
    scores, ratios = {}, {}
    for query in QUERIES:
        plain, matched = (_at(rows, query, query, xi, longest) for xi in (0.0, longest))
        scores[query], ratios[query] = _score(plain, matched), plain.value / matched.value
    return Claim(
        statement="A model trained on independent tokens fails on correlated ones, and fails worst where "
        "correlations would have helped: when the query continues the context",
        source=SOURCE,
        expected=f"at xi = {longest:g} its error is above that of the model trained there by 4 standard errors for "
        "both queries, and for the next token by a larger factor",
        measured=", ".join(
            f"{query} query: {ratios[query]:.2f} times, {scores[query]:.0f} standard errors" for query in QUERIES
        ),
        holds=min(scores.values()) > 4 and ratios["next"] > ratios["independent"],
    )


def _claim_query(parameters: OtherCorrelation, rows: Sequence[CorrelatedRow]) -> Claim:
    longest = max(lengths(parameters)[0])
    worse, better = (_at(rows, query, "next", longest, longest) for query in QUERIES)
    return Claim(
        statement="To answer about the next token a model has to be trained on next tokens",
        source=SOURCE,
        expected=f"trained and tested at xi = {longest:g}, tested on next tokens: training on independent queries is "
        "worse by 4 standard errors",
        measured=f"{worse.value:.3f} against {better.value:.3f}, {_score(worse, better):.0f} standard errors",
        holds=_score(worse, better) > 4,
    )


def _claim_other_query(parameters: OtherCorrelation, rows: Sequence[CorrelatedRow]) -> Claim:
    longest = max(lengths(parameters)[0])
    matched, other = (_at(rows, query, "independent", longest, longest) for query in QUERIES)
    theory = {
        query: pick(rows, panel_of(query, "independent"), "theory", curve=curve_of(longest), x=longest)[0].value
        for query in QUERIES
    }
    return Claim(
        statement="Training on next tokens is the better training even for independent queries: what a query shares "
        "with its context takes noise out of the fit",
        source="this project",
        expected=f"trained and tested at xi = {longest:g}, tested on independent queries: training on independent "
        "queries is worse by 4 standard errors, and in theory",
        measured=f"{matched.value:.3f} against {other.value:.3f}, {_score(matched, other):.0f} standard errors; "
        f"theory {theory['independent']:.3f} against {theory['next']:.3f}",
        holds=_score(matched, other) > 4 and theory["independent"] > theory["next"],
    )
