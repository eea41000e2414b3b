"""One-pass training: what the figure shows, statement by statement."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from icltheory.figures.extensions.online_data import (
    ALPHA,
    BEYOND,
    DECAY_TIME,
    EDGE,
    LATE,
    RHO,
    STEPS,
    Online,
    OnlineJob,
    OnlineRow,
    best_ridge,
    pick,
)
from icltheory.figures.extensions.online_rows import best_schedule_error
from icltheory.figures.figure import Claim
from icltheory.theory import linear_attention, online

OWN = "this project's theory (icltheory.theory.online)"


def claims(parameters: Online, rows: Sequence[OnlineRow]) -> list[Claim]:
    """Measure every claim."""
    return [
        _claim_theory(rows),
        _claim_one_over_d(parameters, rows),
        _claim_edge(rows),
        _claim_no_peak(rows),
        _claim_schedule(rows),
        _claim_price(rows),
    ]


def _predict(rows: Sequence[OnlineRow], *, finite: bool) -> list[float]:
    """Return the theory for simulated numbers, at their own dimension or in the limit; a curve is solved once."""
    curves: dict[tuple[float, float, float, int | None], list[int]] = {}
    for i, row in enumerate(rows):
        key = (row.kappa, row.step_size or 0.0, row.decay_time, row.d if finite else None)
        curves.setdefault(key, []).append(i)
    laws = [math.nan] * len(rows)
    for (kappa, step_size, decay_time, d), members in curves.items():
        job = OnlineJob(d=d or 0, kappa=kappa, step_size=step_size, decay_time=decay_time)
        curve = online(
            t=[rows[i].t for i in members],
            step_size=step_size if math.isinf(decay_time) else job.schedule,
            alpha=ALPHA,
            kappa=kappa,
            rho=RHO,
            d=d,
        )
        for at, i in enumerate(members):
            laws[i] = float(getattr(curve, rows[i].target)[at])
    return laws


def _allowed(error: float, law: float, limit: float) -> float:
    """Return how far simulation may be from theory at the same d.

    The theory is of first order in 1/d: the square of what that order contributes stands for the next.
    """
    return 4.0 * error + (law / limit - 1.0) ** 2 * law


def _pooled(points: Sequence[OnlineRow]) -> list[float]:
    """Return each point's standard error, or what the relative error of all of them makes it if that is larger.

    With a handful of seeds an error is itself uncertain, and among a hundred points some look far too certain.
    """
    relative = math.sqrt(float(np.mean([(row.error / row.value) ** 2 for row in points])))
    return [max(row.error, row.value * relative) for row in points]


def _claim_theory(rows: Sequence[OnlineRow]) -> Claim:
    panels = [pick(rows, panel, "simulation", method="one pass") for panel in "ABCDEF"]
    points = [row for panel in panels for row in panel]
    standard = [error for panel in panels for error in _pooled(panel)]
    worst, worst_row, largest, from_limit = -math.inf, points[0], 0.0, 0.0
    laws = _predict(points, finite=True), _predict(points, finite=False)
    for row, error, law, limit in zip(points, standard, *laws, strict=True):
        used = abs(row.value - law) / _allowed(error, law, limit)
        if used > worst:
            worst, worst_row = used, row
        largest, from_limit = max(largest, abs(row.value / law - 1)), max(from_limit, abs(row.value / limit - 1))
    return Claim(
        statement="The learning curves of one-pass training follow two equations a mode of the task covariance, for "
        "constant step sizes up to .7 of the edge and for a schedule, few tasks or endlessly many",
        source=OWN,
        expected="|simulation - theory at this d| < 4 standard errors (its own, or its panel's) + c^2 theory, "
        "with c the relative difference that finite d makes in the theory (which is of first order in 1/d)",
        measured=f"worst of {len(points)} points uses {worst:.0%} of the allowance ({worst_row.target.upper()}, "
        f"t = {worst_row.t:.3g}, kappa = {worst_row.kappa:g}, step {worst_row.step_size:.3g}); largest deviation "
        f"{largest:.1%} (from the limit: {from_limit:.1%}) at d = {worst_row.d}",
        holds=worst < 1,
    )


def _claim_one_over_d(parameters: Online, rows: Sequence[OnlineRow]) -> Claim:
    """Extrapolate from d/2 and d to infinity: 2 e(d) - e(d/2)."""
    late = [row for row in _curve_points(rows) if row.t > 0.99 * LATE]
    worst, shrink = -math.inf, []
    halves = [_twin(rows, row) for row in late]
    errors = [math.hypot(2 * own, half) for own, half in zip(_pooled(late), _pooled(halves), strict=True)]
    for row, half, error, law in zip(late, halves, errors, _predict(late, finite=False), strict=True):
        deviation = row.value / law - 1
        extrapolated = 2 * row.value - half.value
        # the next order: a geometric series in the feedback, 1 + u/d + (u/d)^2 + ...
        worst = max(worst, abs(extrapolated - law) / (4 * error + 2 * deviation**2 * law))
        shrink.append((half.value / law - 1) / deviation)
    d = parameters.d
    return Claim(
        statement="The simulation's distance from the limit is of order 1/d: extrapolated to d = infinity they agree",
        source=OWN,
        expected=f"|2 e(d) - e(d/2) - limit| < 4 standard errors + 2 (deviation at d)^2, at d = {d}, t = {LATE:g}",
        measured=f"worst of {len(late)} uses {worst:.0%} of the allowance; deviation at d/2 over that at d: "
        f"median {np.median(shrink):.2f}",
        holds=worst < 1,
    )


def _curve_points(rows: Sequence[OnlineRow]) -> list[OnlineRow]:
    return [row for panel in "ABC" for row in pick(rows, panel, "simulation")]


def _twin(rows: Sequence[OnlineRow], row: OnlineRow) -> OnlineRow:
    """Return the same number at half the dimension (its time may differ by the rounding to whole sequences)."""
    twins = pick(rows, "half d", "simulation", target=row.target, kappa=row.kappa, step_size=row.step_size)
    return min(twins, key=lambda twin: abs(twin.t - row.t))


def _claim_edge(rows: Sequence[OnlineRow]) -> Claim:
    growth = {}
    for size in BEYOND:
        middle, end = pick(rows, "edge", "simulation", target="idg", step_size=size * EDGE)
        growth[size] = end.value / middle.value if math.isfinite(middle.value) else math.inf
    below, above = (growth[size] for size in BEYOND)
    return Claim(
        statement="Training is stable up to the step size 2/(1 + (1 + rho)/alpha), for few tasks too; beyond it the "
        "error grows without end",
        source=OWN,
        expected=f"IDG error at t = {LATE:g} over that at t = {LATE / 2:g}: below 1.5 at {BEYOND[0]:g} of the edge, "
        f"above 10 at {BEYOND[1]:g}",
        measured=f"{below:.3f} and {above:.3g}" + (" (given up)" if math.isinf(above) else ""),
        holds=below < 1.5 and above > 10,
    )


def _claim_no_peak(rows: Sequence[OnlineRow]) -> Claim:
    """Compare steps along each curve in standard errors."""
    fit = pick(rows, "E", "simulation", method="ridgeless fit")
    before = [row for row in fit if row.t < 1]
    after = [row for row in fit if row.t > 1]
    slopes, due = [], []
    for high, low in ((before[-1], before[-2]), (after[0], after[1])):
        error = math.hypot(high.error, low.error)
        law = linear_attention(tau=[high.t, low.t], alpha=ALPHA, kappa=math.inf, rho=RHO).icl
        slopes.append((high.value - low.value) / error)
        due.append(float(law[0] - law[1]) / error)
    once = [row for row in pick(rows, "E", "simulation", method="one pass") if not math.isinf(row.decay_time)]
    steps = [(b.value - a.value) / math.hypot(a.error, b.error) for a, b in itertools.pairwise(once)]
    return Claim(
        statement="The ridgeless fit to n sequences passes a peak at n = d^2; one pass over the same sequences with a "
        "decreasing step size has none (kappa = infinity)",
        source=OWN,
        expected="fit: rise towards tau = 1 and fall behind it, each by more than 4 standard errors; one pass: no step "
        "in t at which the error rises by 4",
        measured=f"fit: {slopes[0]:+.0f} and {slopes[1]:+.0f} ({due[0]:.0f} and {due[1]:.0f} in theory); one pass: "
        f"largest of {len(steps)} steps {max(steps):+.1f}" + ("" if min(due) > 8 else "; too few fits to tell"),
        holds=min(slopes) > 4 and max(steps) < 4 if min(due) > 8 else None,
    )


def _claim_schedule(rows: Sequence[OnlineRow]) -> Claim:
    schedule, constant = _late_pair(rows)
    error = math.hypot(constant.error, schedule.error)
    lead = (constant.value - schedule.value) / error
    slow, fast = _predict([constant, schedule], finite=True)
    due = (slow - fast) / error
    return Claim(
        statement="A step size that falls like 1/(1 + t/t0) beats every constant one in the end (kappa = infinity)",
        source=OWN,
        expected=f"at t = {LATE:g}: error below that of the constant step best for this t, by 4 standard errors",
        measured=f"{STEPS[-1]:g}/(1 + t/{DECAY_TIME:g}): {schedule.value:.4f}; constant {constant.step_size:.3g}: "
        f"{constant.value:.4f}; lead {lead:.1f} standard errors, {due:.1f} in theory"
        + ("" if due > 8 else ": less than 8, too few seeds to tell"),
        holds=lead > 4 if due > 8 else None,
    )


def _claim_price(rows: Sequence[OnlineRow]) -> Claim:
    schedule, _ = _late_pair(rows)
    best, fit = float(best_schedule_error(np.array([schedule.t]))[0]), best_ridge(schedule.t)[1]
    (law,), (limit,) = _predict([schedule], finite=True), _predict([schedule], finite=False)
    used = abs(schedule.value - law) / _allowed(schedule.error, law, limit)
    return Claim(
        statement="Seeing every sequence only once costs little in the end: that schedule comes within 1 % of the best "
        "possible one, and this within 10 % of the best ridge fit to the same sequences (kappa = infinity)",
        source=OWN,
        expected=f"at t = {LATE:g}, in the limit: best ridge fit < best schedule < 1.1 fits, schedule < 1.01 best; "
        "simulated error as predicted at this d (4 standard errors + c^2)",
        measured=f"best ridge fit {fit:.4f}, best schedule {best:.4f}, schedule {limit:.4f}; at d = {schedule.d} "
        f"{law:.4f} predicted, {schedule.value:.4f} +- {schedule.error:.4f} simulated",
        holds=fit < best < 1.1 * fit and best <= limit < 1.01 * best and used < 1,
    )


def _late_pair(rows: Sequence[OnlineRow]) -> tuple[OnlineRow, OnlineRow]:
    """Return the last simulated error of the schedule, and that of the best constant step, for endless tasks."""
    late = [row for row in pick(rows, "E", "simulation", method="one pass") if row.t > 0.99 * LATE]
    schedule = next(row for row in late if not math.isinf(row.decay_time))
    return schedule, next(row for row in late if math.isinf(row.decay_time))
