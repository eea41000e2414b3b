"""Figures of Lu et al. 2025: in-context learning of linear regression by linear attention."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from icltheory.figures.figure import Claim, Figure, Row
from icltheory.figures.published import (
    LU2025,
    LU2025_FIG1,
    LU2025_FIG1_D,
    LU2025_FIG1_RUNS,
    LU2025_FIG1_SPREAD,
    LU2025_FIG1_TAU,
)
from icltheory.points import Point
from icltheory.simulate.batch import Job, Outcome
from icltheory.theory import linear_attention

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

Target = Literal["icl", "idg"]

RHO = 0.01
KAPPA = 0.5
ALPHAS = (1.0, 10.0, 100.0)
VANISHING = 1e-8  # the ridge of the paper's "ridgeless" runs
RIDGES = (1e-5, 0.1, 1.0)
RIDGE_ALPHA = 10.0
RIDGE_TAU = (0.2, 0.5, 0.85, 1.0, 1.15, 1.5, 2.0)
# the peak: sizes n = d(d+1) + step d, among them n = d^2
PEAK_STEPS = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0)
PEAK_ALPHA = 10.0

# Known size of the finite-d effect away from the peak: 20 % at d = 40 and 8 % at d = 80, hence about 8/d. Near the
# peak the error grows like 1/|tau - 1|, and at finite d like 1/|tau - 1 - 1/d|: another 1/(d |tau - 1| - 1). Closer to
# the peak than NEAREST of these shifts an expansion in 1/d says nothing.
FINITE_SIZE = 8.0
NEAREST = 5.0


@dataclass(frozen=True, kw_only=True)
class DoubleDescent:
    """Parameters: the dimension and seeds of panels A to C, of the peak, and which published points to check."""

    d: int
    seeds: int
    ridge_seeds: int
    peak_d: int
    peak_seeds: int
    published_tau: tuple[float, ...]


def _jobs(parameters: DoubleDescent) -> list[Job]:
    def repeat(seeds: int, points: Iterable[Point]) -> list[Job]:
        return [Job(point=point, assignment="balanced", repetition=i) for point in points for i in range(seeds)]

    def ridgeless(d: int, taus: Iterable[float]) -> list[Point]:
        return [
            Point.of(d=d, tau=tau, alpha=alpha, kappa=KAPPA, rho=RHO, ridge=VANISHING)
            for tau in taus
            for alpha in ALPHAS
        ]

    d = parameters.d
    jobs = repeat(parameters.seeds, ridgeless(d, LU2025_FIG1_TAU))
    if d != LU2025_FIG1_D:
        jobs += repeat(parameters.seeds, ridgeless(LU2025_FIG1_D, parameters.published_tau))
    jobs += repeat(
        parameters.ridge_seeds,
        [
            Point.of(d=d, tau=tau, alpha=RIDGE_ALPHA, kappa=math.inf, rho=RHO, ridge=ridge)
            for tau in RIDGE_TAU
            for ridge in RIDGES
        ],
    )
    return jobs + repeat(parameters.peak_seeds, _peak_points(parameters.peak_d))


def _peak_points(d: int) -> list[Point]:
    sizes = [d * (d + 1) + round(step * d) for step in PEAK_STEPS]
    return [Point.of(d=d, n_sequences=n, alpha=PEAK_ALPHA, kappa=KAPPA, rho=RHO) for n in sizes]


def _rows(parameters: DoubleDescent, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> list[Row]:
    by_point: dict[Point, list[Outcome]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        by_point.setdefault(job.point, []).append(outcome)
    peak = set(_peak_points(parameters.peak_d))
    rows: list[Row] = []
    for point, group in by_point.items():
        if point in peak:
            rows += [_median_row(point, group, target) for target in ("icl", "idg")]
        elif math.isinf(point.kappa):
            rows.append(_mean_row("C", point, group, "icl"))
        elif point.d == parameters.d:
            rows += [_mean_row("A", point, group, "icl"), _mean_row("B", point, group, "idg")]
        if point.d == LU2025_FIG1_D and point not in peak and not math.isinf(point.kappa):
            rows += [_mean_row("published check", point, group, target) for target in ("icl", "idg")]
    return rows + _theory_rows(parameters) + _published_rows()


def _mean_row(panel: str, point: Point, group: Sequence[Outcome], target: Target) -> Row:
    values = np.array([getattr(outcome, target) for outcome in group])
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Row(
        panel=panel,
        kind="simulation",
        target=target,
        **point.ratios(),
        value=float(values.mean()),
        error=spread / math.sqrt(len(values)),
        spread=spread,
        d=point.d,
        n_sequences=point.n_sequences,
        seeds=len(values),
    )


def _median_row(point: Point, group: Sequence[Outcome], target: Target) -> Row:
    """At the peak the mean over draws does not exist: report the median, and half the central half as its spread."""
    low, median, high = np.quantile([getattr(outcome, target) for outcome in group], [0.25, 0.5, 0.75])
    return Row(
        panel="D",
        kind="simulation",
        target=target,
        **point.ratios(),
        value=float(median),
        error=1.858 * float(high - low) / 2 / math.sqrt(len(group)),  # sqrt(pi/2)/0.6745: that of a normal median
        spread=float(high - low) / 2,
        d=point.d,
        n_sequences=point.n_sequences,
        seeds=len(group),
    )


def _theory_rows(parameters: DoubleDescent) -> list[Row]:
    # the curve is dense near tau = 1, and skips it: the ridgeless error is infinite there
    near = np.geomspace(1e-3, 0.9, 120)
    tau = np.concatenate([1 - near[::-1], 1 + near, np.linspace(1.95, 2.4, 20)])
    tau = tau[tau > 0.1]
    rows: list[Row] = []

    def add(panel: str, target: Target, taus: np.ndarray, alpha: float, kappa: float, ridge: float) -> None:
        law = linear_attention(tau=taus, alpha=alpha, kappa=kappa, rho=RHO, ridge=ridge)
        rows.extend(
            Row(
                panel=panel,
                kind="theory",
                target=target,
                tau=float(t),
                alpha=alpha,
                kappa=kappa,
                rho=RHO,
                ridge=ridge,
                value=float(value),
            )
            for t, value in zip(taus, getattr(law, target), strict=True)
        )

    for alpha in ALPHAS:
        point = Point.of(d=parameters.d, tau=1, alpha=alpha, kappa=KAPPA, rho=RHO)
        add("A", "icl", tau, point.alpha, point.kappa, 0.0)
        add("B", "idg", tau, point.alpha, point.kappa, 0.0)
    for ridge in RIDGES:
        add("C", "icl", np.sort(np.append(tau, 1.0)), RIDGE_ALPHA, math.inf, ridge)
    d = parameters.peak_d
    point = Point.of(d=d, tau=1, alpha=PEAK_ALPHA, kappa=KAPPA, rho=RHO)
    window = 1 + np.linspace(-4.5 / d, 5.5 / d, 200)
    add("D", "icl", window[window != 1], point.alpha, point.kappa, 0.0)
    add("D", "idg", window[window != 1], point.alpha, point.kappa, 0.0)
    return rows


def _published_rows() -> list[Row]:
    return [
        Row(
            panel="A" if target == "icl" else "B",
            kind="published",
            target=target,  # type: ignore[arg-type]
            tau=tau,
            alpha=alpha,
            kappa=KAPPA,
            rho=RHO,
            ridge=VANISHING,
            value=value,
            d=LU2025_FIG1_D,
            seeds=LU2025_FIG1_RUNS,
        )
        for (target, alpha), values in LU2025_FIG1.items()
        for tau, value in zip(LU2025_FIG1_TAU, values, strict=True)
    ]


def _pick(rows: Sequence[Row], panel: str, kind: str, **fields: float | str) -> list[Row]:
    chosen = [
        row
        for row in rows
        if row.panel == panel and row.kind == kind and all(getattr(row, k) == v for k, v in fields.items())
    ]
    return sorted(chosen, key=lambda row: row.tau)


def _claims(parameters: DoubleDescent, rows: Sequence[Row]) -> list[Claim]:
    return [
        _claim_rise_and_fall(rows),
        _claim_peak(parameters, rows),
        _claim_theory(
            parameters, [*_pick(rows, "A", "simulation"), *_pick(rows, "B", "simulation")], "A, B: ridgeless"
        ),
        _claim_theory(parameters, _pick(rows, "C", "simulation"), "C: with a ridge"),
        _claim_ridge(rows),
        _claim_published(rows),
    ]


def _claim_rise_and_fall(rows: Sequence[Row]) -> Claim:
    """Descent is claimed beyond the threshold, ascent before it, for each context length."""
    margins = []
    for alpha in {row.alpha for row in _pick(rows, "A", "simulation")}:
        curve = _pick(rows, "A", "simulation", alpha=alpha)
        before, after = [row for row in curve if row.tau < 1], [row for row in curve if row.tau > 1]
        for peak, foot in ((before[-1], before[-2]), (after[0], after[-1])):
            margins.append((peak.value - foot.value) / math.hypot(peak.error, foot.error))
    return Claim(
        statement="The ICL error of nearly ridgeless linear attention rises towards tau = 1 and falls again beyond "
        "it, for short and long contexts: double descent",
        source=f"{LU2025}, Fig. 1A",
        expected="error at tau .85 above that at .5, and at 1.15 above that at 2, by more than 4 standard errors",
        measured=f"smallest of {len(margins)} differences: {min(margins):.0f} standard errors",
        holds=min(margins) > 4,
    )


def _claim_peak(parameters: DoubleDescent, rows: Sequence[Row]) -> Claim:
    d = parameters.peak_d
    words, holds = [], True
    for target in ("icl", "idg"):
        curve = _pick(rows, "D", "simulation", target=target)
        top = max(curve, key=lambda row: row.value)
        at_square = next(row for row in curve if row.n_sequences == d * d)
        holds &= top.n_sequences == d * (d + 1) and top.value > 2 * at_square.value
        words.append(
            f"{target.upper()}: peak at n = {top.n_sequences}, median {top.value:.3g} "
            f"against {at_square.value:.3g} at d² = {d * d}"
        )
    return Claim(
        statement="At finite d the ridgeless peak sits at n = d(d+1), the number of parameters, not at d²",
        source="counting parameters; the paper's limit n/d² = 1 does not tell the two apart",
        expected=f"largest median over {len(PEAK_STEPS)} sizes at n = {d * (d + 1)}, above twice that at n = {d * d}",
        measured="; ".join(words),
        holds=holds,
    )


def _claim_theory(parameters: DoubleDescent, points: Sequence[Row], which: str) -> Claim:
    worst, worst_row, largest = -math.inf, points[0], 0.0
    tested = [row for row in points if row.ridge > 1e-3 or parameters.d * abs(row.tau - 1) > NEAREST]
    for row in tested:
        law = linear_attention(tau=row.tau, alpha=row.alpha, kappa=row.kappa, rho=row.rho, ridge=row.ridge)
        predicted = float(getattr(law, row.target))
        pole = 0.0 if row.ridge > 1e-3 else 1 / (parameters.d * abs(row.tau - 1) - 1)
        allowed = 4 * row.error + (FINITE_SIZE / parameters.d + pole) * predicted
        excess = abs(row.value - predicted) / allowed
        if excess > worst:
            worst, worst_row = excess, row
        largest = max(largest, abs(row.value / predicted - 1))
    return Claim(
        statement=f"Asymptotic theory predicts the simulation ({which})",
        source=f"{LU2025}, its main theorem and Fig. 1",
        expected="|simulation - theory| < 4 standard errors + c theory; c = 8/d, the known size of the finite-d "
        "effect, and without a ridge 1/(d|tau - 1| - 1) more, since the peak moves from d² to d(d+1); "
        f"d = {parameters.d}, points more than {NEAREST:g}/d from an unregularised peak",
        measured=f"worst of {len(tested)} points uses {worst:.0%} of the allowance "
        f"({worst_row.target.upper()}, tau = {worst_row.tau:.3g}, alpha = {worst_row.alpha:.3g}); "
        f"largest deviation {largest:.1%}",
        holds=worst < 1,
    )


def _claim_ridge(rows: Sequence[Row]) -> Claim:
    words, holds = [], True
    for ridge in RIDGES:
        curve = _pick(rows, "C", "simulation", ridge=ridge)
        middle = next(row for row in curve if row.tau == 1)
        before = next(row for row in curve if abs(row.tau - 0.5) < 0.02)
        ratios = middle.value / before.value, middle.value / curve[-1].value
        holds &= min(ratios) > 2 if ridge < 1e-3 else ratios[0] < 1 < ratios[1]
        words.append(f"ridge {ridge:g}: {ratios[0]:.2f}, {ratios[1]:.2f}")
    return Claim(
        statement="A positive ridge removes the divergence at tau = 1",
        source=f"{LU2025}, Fig. 1C",
        expected="error at tau = 1 over those at .5 and at 2: both above 2 at ridge 1e-5; at ridges .1 and 1 below 1 "
        "and above 1, the error falling with tau all the way",
        measured="; ".join(words),
        holds=holds,
    )


def _claim_published(rows: Sequence[Row]) -> Claim:
    checks = [_compare(row) for row in _pick(rows, "published check", "simulation")]
    statement = "The published means are reproduced at the published sizes"
    expected = "no difference is significant at 1 %, Bonferroni-corrected, in a t test with the spread of our seeds"
    if not checks:
        return Claim(
            statement=statement,
            source=f"{LU2025}, Fig. 1A, B",
            expected=expected,
            measured=f"no point at d = {LU2025_FIG1_D} at this scale",
            holds=None,
        )
    p, t, ours, theirs = min(checks, key=lambda check: check[0])
    size = math.sqrt(sum(check[1] ** 2 for check in checks) / len(checks))
    return Claim(
        statement=statement,
        source=f"{LU2025}, Fig. 1A, B",
        expected=expected,
        measured=f"{len(checks)} of {len(LU2025_FIG1) * len(LU2025_FIG1_TAU)} values compared, root mean square "
        f"{size:.2f} standard errors; least probable: {ours.target.upper()}, tau = {ours.tau:g}, "
        f"alpha = {ours.alpha:g}, {ours.value:.4g} against {theirs:.4g}, t = {t:+.1f}, "
        f"corrected p = {min(1.0, p * len(checks)):.2g}",
        holds=p * len(checks) > 0.01,
    )


def _compare(ours: Row) -> tuple[float, float, Row, float]:
    """Return (p value, t, our row, their mean) of a two-sample t test; their spread is used too where it is printed."""
    from scipy.special import stdtr

    position = [round(tau, 6) for tau in LU2025_FIG1_TAU].index(round(ours.tau, 6))
    theirs = LU2025_FIG1[ours.target, ours.alpha][position]
    seeds = ours.seeds or 1
    freedom, squares = seeds - 1, (seeds - 1) * ours.spread**2
    if (ours.target, ours.alpha) in LU2025_FIG1_SPREAD:
        freedom += LU2025_FIG1_RUNS - 1
        squares += (LU2025_FIG1_RUNS - 1) * LU2025_FIG1_SPREAD[ours.target, ours.alpha][position] ** 2
    t = (ours.value - theirs) / math.sqrt(squares / freedom * (1 / LU2025_FIG1_RUNS + 1 / seeds))
    return 2 * float(stdtr(freedom, -abs(t))), t, ours, theirs


_COLOURS = ("#0b6e99", "#d1622b", "#5b8c2a")


def _plot(parameters: DoubleDescent, rows: Sequence[Row]) -> "Picture":
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(11, 8.6), layout="constrained")
    axes = picture.subplots(2, 2)
    tau_label = r"pretraining sequences, $\tau = n/d^2$"
    for ax, panel, name in ((axes[0, 0], "A", "ICL"), (axes[0, 1], "B", "IDG")):
        for i, alpha in enumerate(sorted({row.alpha for row in _pick(rows, panel, "simulation")})):
            _draw(ax, rows, panel, rf"$\alpha$ = {alpha:g}", _COLOURS[i], alpha=alpha)
            nominal = ALPHAS[i]
            crosses = _pick(rows, panel, "published", alpha=nominal)
            ax.plot([r.tau for r in crosses], [r.value for r in crosses], "x", color="black", ms=5, mew=1, zorder=4)
        ax.set(ylabel=f"{name} error", xlabel=tau_label, yscale="log")
        ax.set_title(f"{panel}   {'fresh tasks' if name == 'ICL' else 'pretraining tasks'}, ridgeless", loc="left")
    axes[0, 0].set_ylim(0.5, 40)
    axes[0, 1].set_ylim(0.02, 20)
    ax = axes[1, 0]
    for i, ridge in enumerate(RIDGES):
        _draw(ax, rows, "C", rf"$\lambda$ = {ridge:g}", _COLOURS[i], ridge=ridge)
    ax.set(xlabel=tau_label, ylabel="ICL error", yscale="log")
    ax.set_title(rf"C   a ridge removes the peak ($\alpha$ = {RIDGE_ALPHA:g}, $\kappa = \infty$)", loc="left")
    _draw_peak(axes[1, 1], parameters, rows)
    for ax in axes.flat:
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    for ax in axes.flat[:3]:
        ax.axvline(1, color="0.6", lw=0.8, ls=":")
        ax.set_xlim(0.1, 2.4)
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color="0.3", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label=f"simulation, d = {parameters.d}"),
        Line2D([], [], color="black", marker="x", ls="", label=f"published, d = {LU2025_FIG1_D}"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False)
    return picture


def _draw(ax: "Axes", rows: Sequence[Row], panel: str, label: str, colour: str, **fields: float) -> None:
    line = _pick(rows, panel, "theory", **fields)
    points = _pick(rows, panel, "simulation", **fields)
    # a gap at tau = 1 where the curve diverges
    tau = np.array([row.tau for row in line])
    value = np.array([row.value for row in line])
    value[np.abs(tau - 1) < 1.5e-3] = np.nan if line[0].ridge == 0 else value[np.abs(tau - 1) < 1.5e-3]
    ax.plot(tau, value, color=colour, lw=1.4, label=label)
    ax.errorbar(
        [row.tau for row in points],
        [row.value for row in points],
        yerr=[row.error for row in points],
        fmt="o",
        ms=6.5,
        capsize=2,
        color=colour,
        zorder=3,
    )


def _draw_peak(ax: "Axes", parameters: DoubleDescent, rows: Sequence[Row]) -> None:
    d = parameters.peak_d
    for target, colour in (("icl", _COLOURS[0]), ("idg", _COLOURS[1])):
        line = _pick(rows, "D", "theory", target=target)
        points = _pick(rows, "D", "simulation", target=target)
        for part in ([row for row in line if row.tau < 1], [row for row in line if row.tau > 1]):
            ax.plot([row.tau * d * d for row in part], [row.value for row in part], color=colour, lw=1, alpha=0.6)
        ax.errorbar(
            [row.n_sequences or 0 for row in points],
            [row.value for row in points],
            yerr=[row.error for row in points],
            fmt="o-",
            lw=0.8,
            ms=4.5,
            capsize=2,
            color=colour,
            label=f"{target.upper()}, median of {parameters.peak_seeds}",
        )
    ax.axvline(d * d, color="0.6", lw=0.9, ls=":", label=f"$d^2$ = {d * d}")
    ax.axvline(d * (d + 1), color="0.2", lw=0.9, ls="--", label=f"$d(d+1)$ = {d * (d + 1)}")
    ax.set(xlabel="pretraining sequences, $n$", ylabel="error", yscale="log")
    ax.set_title(rf"D   where the peak sits: d = {d}, $\alpha$ = {PEAK_ALPHA:g}, ridgeless", loc="left")


double_descent = Figure(
    name="lu2025/double-descent",
    title="Double descent in the number of pretraining sequences",
    source=f"{LU2025}, Fig. 1; panel D is an extension",
    about=f"Error of linear attention against tau = n/d² at kappa = {KAPPA:g} tasks/d (panel C: a fresh task for every "
    f"sequence) and label-noise variance rho = {RHO:g}. Lines: theory as d goes to infinity. Points: our simulation, "
    "mean and standard error over seeds (panel D: median and its standard error). Crosses: published means of 10 runs. "
    "With tokens x ~ N(0, I/d) and |w|² = d the signal has variance 1; the penalty is (n/d) lambda |Gamma|²; every "
    "task has equally many sequences, as in the published runs.",
    scales={
        "smoke": DoubleDescent(d=40, seeds=6, ridge_seeds=4, peak_d=14, peak_seeds=60, published_tau=(0.2,)),
        "default": DoubleDescent(d=100, seeds=5, ridge_seeds=3, peak_d=30, peak_seeds=60, published_tau=()),
        "paper": DoubleDescent(d=100, seeds=10, ridge_seeds=10, peak_d=40, peak_seeds=200, published_tau=()),
    },
    jobs=_jobs,
    rows=_rows,
    plot=_plot,
    claims=_claims,
)
