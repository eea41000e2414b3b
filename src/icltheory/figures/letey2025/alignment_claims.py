"""Alignment of pretraining and test tasks (Letey et al. 2025): what the figure shows, statement by statement."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icltheory.figures.figure import Claim
from icltheory.figures.letey2025.alignment_data import AlignmentRow, pick
from icltheory.figures.letey2025.alignment_trials import (
    EXPONENT,
    MATCHED,
    SEEN,
    STEEPEST,
    TRAINING_KAPPAS,
    UNSEEN,
    Alignment,
)

LETEY2025 = (
    "Letey, Zavatone-Veth, Lu, Pehlevan, Pretrain-test task alignment governs generalization in in-context learning, "
    "2025 (arXiv:2509.26551)"
)
# distances and similarities of the two covariances, which know nothing of the learner
PURE = ("cka", "cosine", "captured", "frobenius", "bures", "divergence")
FEW = 0.5  # kappa; with fewer tasks than that the effect of more of them drowns in that of finite d


def claims(parameters: Alignment, rows: Sequence[AlignmentRow]) -> list[Claim]:
    """Measure every claim."""
    return [
        _claim_theory(parameters, rows),
        _claim_order(rows),
        _claim_resolution(rows),
        _claim_easiest(parameters, rows),
        _claim_training(rows),
        _claim_diversity(rows),
    ]


@dataclass(frozen=True, kw_only=True)
class Extrapolation:
    """Simulation over theory of one test covariance, at d/2, at d, and with the term in 1/d eliminated."""

    row: AlignmentRow
    half: float
    full: float
    limit: float
    error: float


def extrapolations(parameters: Alignment, rows: Sequence[AlignmentRow]) -> list[Extrapolation]:
    r"""Return :math:`2 r(d) - r(d/2)` for every test and kappa, with r the ratio of simulation and theory at that d."""

    def ratios(d: int) -> list[tuple[AlignmentRow, float, float]]:
        theory = {(row.test, row.kappa): row.value for row in pick(rows, "error", "theory", d=d)}
        found = [(row, theory[row.test, row.kappa]) for row in pick(rows, "error", "simulation", d=d)]
        return [(row, row.value / law, row.error / law) for row, law in found]

    return [
        Extrapolation(row=row, half=half, full=full, limit=2 * full - half, error=math.hypot(2 * error, half_error))
        for (row, full, error), (_, half, half_error) in zip(
            ratios(parameters.d), ratios(parameters.d // 2), strict=True
        )
    ]


def _claim_theory(parameters: Alignment, rows: Sequence[AlignmentRow]) -> Claim:
    from scipy.special import stdtrit

    checks = extrapolations(parameters, rows)
    freedom = min(parameters.seeds, parameters.half_seeds) - 1
    quantile = float(stdtrit(freedom, 1 - 0.01 / len(checks) / 2))
    used = [abs(c.limit - 1) / (quantile * c.error + (c.half - 1) ** 2) for c in checks]
    worst = checks[int(np.argmax(used))]
    typical = [float(np.median([abs(getattr(c, name) - 1) for c in checks])) for name in ("half", "full", "limit")]
    return Claim(
        statement="Theory predicts the ICL error on every test covariance, up to a term in 1/d",
        source=f"{LETEY2025}, its result for the ICL error and Fig. 1",
        expected=f"simulation/theory at d = {parameters.d // 2} and {parameters.d}, extrapolated to d = infinity as "
        f"2 r(d) - r(d/2), is 1 to within {quantile:.1f} standard errors (Student, 1 % for all {len(checks)} together) "
        "plus the square of r(d/2) - 1, the size of a next term, in 1/d²",
        measured=f"worst of {len(checks)} uses {max(used):.0%} of the allowance ({worst.row.test}, "
        f"kappa = {worst.row.kappa:g}: {worst.half:.3f}, {worst.full:.3f}, extrapolated {worst.limit:.3f} "
        f"± {worst.error:.3f}); median deviation {typical[0]:.1%}, {typical[1]:.1%}, extrapolated {typical[2]:.1%}",
        holds=max(used) < 1,
    )


def _lead(rows: Sequence[AlignmentRow], measure: str) -> tuple[float, float, float]:
    """Return by how much trd BK has the higher rank correlation: mean over kappa, its error, and at the least kappa."""
    best = {row.kappa: row.value for row in pick(rows, "rank", "simulation", measure="misalignment")}
    points = pick(rows, "rank", "simulation", measure=measure)
    leads = [best[row.kappa] - row.value for row in points]
    error = math.sqrt(sum(row.error**2 for row in points)) / len(points)  # the draws of each kappa are independent
    return float(np.mean(leads)), error, leads[0]


def _claim_order(rows: Sequence[AlignmentRow]) -> Claim:
    orders = {m: [row.value for row in pick(rows, "rank", "simulation", measure=m)] for m in ("misalignment", *PURE)}
    mean = {measure: float(np.mean(values)) for measure, values in orders.items()}
    scores = {measure: lead / error for measure, (lead, error, _) in ((m, _lead(rows, m)) for m in PURE)}
    best, closest = max(PURE, key=lambda m: mean[m]), min(PURE, key=lambda m: scores[m])
    return Claim(
        statement="trd BK, the alignment that theory derives, orders the simulated errors better than any distance or "
        "similarity of the two covariances",
        source=f"{LETEY2025}, Fig. 2, which has CKA; the other measures are added here",
        expected="in the mean over kappa a rank correlation with the simulated error above .95, and above that of "
        f"{', '.join(PURE)} by 4 standard errors (seeds resampled, both on the same draws)",
        measured=f"trd BK {mean['misalignment']:.3f} (at the smallest kappa {orders['misalignment'][0]:.3f}); best of "
        f"the others {best}, {mean[best]:.3f} ({orders[best][0]:.3f}); smallest lead {scores[closest]:.0f} standard "
        f"errors ({closest})",
        holds=mean["misalignment"] > 0.95 and scores[closest] > 4,
    )


def _claim_resolution(rows: Sequence[AlignmentRow]) -> Claim:
    words, score = [], {}
    for measure, name in (("inverse", "trd BC⁻¹"), ("resolvent", "trd BF")):
        mean, error, first = _lead(rows, measure)
        score[measure] = mean / error
        words.append(f"over {name}: {mean:+.4f} ± {error:.4f}, {first:+.3f} at the smallest kappa")
    return Claim(
        statement="It does better than trd BC⁻¹, which does not know that noise and few tasks leave weak directions "
        "unresolved; against trd BF, which knows, the difference is small",
        source=f"{LETEY2025}, Figs. 2 and 3",
        expected="mean lead in rank correlation over all kappa: above 4 standard errors over trd BC⁻¹, below .01 over "
        "trd BF",
        measured="; ".join(words),
        holds=score["inverse"] > 4 and abs(_lead(rows, "resolvent")[0]) < 0.01,
    )


def _claim_easiest(parameters: Alignment, rows: Sequence[AlignmentRow]) -> Claim:
    matched, steepest = (pick(rows, "error", "simulation", d=parameters.d, test=test) for test in (MATCHED, STEEPEST))
    gains = [one.value - other.value for one, other in zip(matched, steepest, strict=True)]
    error = math.sqrt(sum(row.error**2 for row in (*matched, *steepest))) / len(gains)
    words = [
        f"kappa = {one.kappa:g}: {one.value:.3f}, {other.value:.3f}"
        for one, other in zip(matched, steepest, strict=True)
    ]
    return Claim(
        statement="The tasks of pretraining are not the easiest to be tested on: those that lie in its strongest "
        "directions are easier",
        source=f"{LETEY2025}, Section 4",
        expected=f"the error on the covariance of pretraining is above that on {STEEPEST}, of the same signal "
        "variance, at every kappa, and by 4 standard errors in the mean over kappa",
        measured="; ".join(words) + f"; mean difference {np.mean(gains):.3f} ± {error:.3f}",
        holds=min(gains) > 0 and float(np.mean(gains)) > 4 * error,
    )


def _claim_training(rows: Sequence[AlignmentRow]) -> Claim:
    gains: list[float] = []
    words = []
    for kappa in TRAINING_KAPPAS:
        points = [row for row in pick(rows, "training", "simulation") if abs(row.kappa / kappa - 1) < 0.2]
        matched = next(row for row in points if row.train_exponent == EXPONENT)
        best = min((row for row in points if row.train_exponent != EXPONENT), key=lambda row: row.value)
        gains.append((matched.value - best.value) / math.hypot(matched.error, best.error))
        words.append(
            f"kappa = {kappa:g}: {matched.value:.3f} at the test's exponent, {best.value:.3f} at "
            f"{best.train_exponent:g}, {gains[-1]:+.1f} standard errors"
        )
        steeper = (best.train_exponent or 0.0) > EXPONENT
        if kappa == min(TRAINING_KAPPAS):
            holds = steeper and gains[-1] > 4
    return Claim(
        statement="With few tasks it pays to pretrain on a steeper spectrum than the test's; with many it does not",
        source=f"{LETEY2025}, Fig. 4",
        expected=f"tests with exponent {EXPONENT:g}: at kappa = {min(TRAINING_KAPPAS):g} a steeper training spectrum "
        f"is better by 4 standard errors; at kappa = {max(TRAINING_KAPPAS):g} none is",
        measured="; ".join(words),
        holds=holds and gains[-1] < 4,
    )


def _claim_diversity(rows: Sequence[AlignmentRow]) -> Claim:
    changes = {}
    for test in (SEEN, UNSEEN):
        points = [row for row in pick(rows, "diversity", "simulation", test=test) if row.kappa > 0.9 * FEW]
        few, many = points[0], points[-1]
        changes[test] = (few, many, (many.value - few.value) / math.hypot(few.error, many.error))
    words = [
        f"{name}: {few.value:.3f} to {many.value:.3f}, {score:+.0f} standard errors"
        for name, (few, many, score) in zip(("seen half", "unseen half"), changes.values(), strict=True)
    ]
    return Claim(
        statement="More pretraining tasks help on tests like them and harm on tests in directions they never reach",
        source=f"{LETEY2025}, abstract and Fig. 1",
        expected="pretraining in the leading half of the directions, from the fewest tasks (kappa at least "
        f"{FEW:g}) to the most: the error falls on that half and rises on the other, each by 4 standard errors",
        measured="; ".join(words),
        holds=changes[SEEN][2] < -4 and changes[UNSEEN][2] > 4,
    )
