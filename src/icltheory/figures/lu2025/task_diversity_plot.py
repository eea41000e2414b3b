"""The gap against task diversity (Lu et al. 2025, Fig. 4): the picture."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from icltheory.figures.lu2025.task_diversity_claims import pooled, power_law
from icltheory.figures.lu2025.task_diversity_data import (
    ALPHAS,
    RHO,
    SEQUENCES,
    SERIES,
    TRANSITION_ALPHAS,
    GapRow,
    TaskDiversity,
    pick,
)
from icltheory.figures.lu2025.task_diversity_rows import critical_gap
from icltheory.figures.marks import line, points
from icltheory.figures.published import LU2025_FIG4_D

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_LINEAR: dict[str, Any] = {"estimator": "linear attention"}
_COLOURS = ("#d1622b", "#0b6e99", "#5b8c2a")
_BAYES, _SPHERE = "#6a3d9a", "#b07cc6"
_LAST = 150.0  # kappa at which the guides of panel C end
_TASKS = r"pretraining tasks, $\kappa = k/d$"
_line, _points = partial(line, across="kappa"), partial(points, across="kappa")
_GAP = r"gap, $g = e_{\mathrm{ICL}} - e_{\mathrm{IDG}}$"


def plot(parameters: TaskDiversity, rows: Sequence[GapRow]) -> "Picture":
    """Draw the four panels."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(12.5, 10), layout="constrained")
    axes = picture.subplots(2, 2)
    _draw_diversity(axes[0, 0], parameters, rows)
    _draw_published(axes[0, 1], rows)
    _draw_exponents(axes[1, 0], rows)
    _draw_transition(axes[1, 1], parameters, rows)
    for ax in axes.flat:
        ax.grid(alpha=0.25)
    marks = [
        Line2D([], [], color="0.3", lw=1.4, label="linear attention: theory at this d"),
        Line2D([], [], color="0.3", lw=1, ls=":", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label="simulation"),
        Line2D([], [], color=_BAYES, lw=1.4, ls="--", label="dMMSE: nearest task, exact"),
        Line2D([], [], color=_BAYES, marker="D", ms=5, ls="", label="simulation"),
        Line2D([], [], color="black", marker="x", ls="", label="published"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=6, frameon=False)
    return picture


def _draw_diversity(ax: "Axes", parameters: TaskDiversity, rows: Sequence[GapRow]) -> None:
    """Panel A: both estimators at three context lengths."""
    for alpha, colour in zip(ALPHAS, _COLOURS, strict=True):
        _line(
            ax,
            pick(rows, "A", "theory", alpha=alpha, d=parameters.d, **_LINEAR),
            colour,
            label=rf"$\alpha$ = {alpha:g}",
        )
        _line(ax, pick(rows, "A", "theory", alpha=alpha, d=None, **_LINEAR), colour, ":", 1.0)
        _points(ax, pick(rows, "A", "simulation", alpha=alpha, **_LINEAR), colour)
        # side by side, as the context length hardly matters
        aside = 1.09 ** (ALPHAS.index(alpha) - 1)
        bayes = [
            replace(r, kappa=r.kappa * aside) for r in pick(rows, "A", "simulation", alpha=alpha, estimator="dMMSE")
        ]
        _points(ax, bayes, colour, "D", 4.0, hollow=True)
    _line(ax, pick(rows, "A", "theory", estimator="nearest task"), _BAYES, "--")
    _slope(ax, (9.0, 60.0), 0.045, -1.0, r"$\propto 1/\kappa$")
    ax.text(20, 1.35, "dMMSE", color=_BAYES, fontsize=9)
    ax.axvline(1, color="0.3", lw=1, ls="-.", label=r"$\kappa = 1$")
    ax.set(xscale="log", yscale="log", xlabel=_TASKS, ylabel=_GAP, xlim=(0.15, 70), ylim=(5e-5, 3.5))
    ax.set_title(
        rf"A   both estimators, $\tau$ = {SEQUENCES:g} $\alpha$, $\rho$ = {RHO:g}, d = {parameters.d}", loc="left"
    )
    ax.legend(frameon=False, fontsize=9, loc="lower left")


def _draw_published(ax: "Axes", rows: Sequence[GapRow]) -> None:
    """Panel B: the published values, and those of dMMSE again on an axis that tells them apart."""
    _line(ax, pick(rows, "B", "theory", d=LU2025_FIG4_D, **_LINEAR), _COLOURS[0], label="linear attention")
    _line(ax, pick(rows, "B", "theory", d=None, **_LINEAR), _COLOURS[0], ":", 1.0)
    _points(ax, pick(rows, "B", "simulation", **_LINEAR), _COLOURS[0], size=6.5, hollow=True)
    _crosses(ax, pick(rows, "B", "published", **_LINEAR))
    inset = ax.inset_axes((0.54, 0.44, 0.44, 0.36))
    for where, size in ((ax, 4.0), (inset, 5.0)):
        for law, colour in (("gaussian", _BAYES), ("sphere", _SPHERE)):
            name = "dMMSE, Gaussian tasks" if law == "gaussian" else "dMMSE, tasks on the sphere"
            _line(where, pick(rows, "B", "theory", estimator="nearest task", tasks=law), colour, "--", label=name)
            _points(where, pick(rows, "B", "simulation", estimator="dMMSE", tasks=law), colour, "D", size, hollow=True)
        _crosses(where, pick(rows, "B", "published", estimator="dMMSE"))
    inset.set(xscale="log", xlim=(0.15, 50), ylim=(0.95, 1.75))
    inset.set_title("dMMSE", fontsize=9, pad=3)
    inset.tick_params(labelsize=8)
    inset.grid(alpha=0.25)
    ax.axvline(1, color="0.3", lw=1, ls="-.")
    ax.set(xscale="log", yscale="log", xlabel=_TASKS, ylabel=_GAP, xlim=(0.15, 50), ylim=(4e-4, 3.5))
    ax.set_title(rf"B   the published setting, $\alpha = \tau$ = 10, d = {LU2025_FIG4_D}", loc="left")
    ax.legend(framealpha=1, edgecolor="white", fontsize=9, loc="lower left")


def _crosses(ax: "Axes", crosses: Sequence[GapRow]) -> None:
    ax.errorbar(
        [row.kappa for row in crosses],
        [row.value for row in crosses],
        yerr=[row.error for row in crosses],
        fmt="x",
        color="black",
        ms=6,
        mew=1.3,
        lw=0.8,
        zorder=5,
    )


def _draw_exponents(ax: "Axes", rows: Sequence[GapRow]) -> None:
    """Panel C: dMMSE at small dimensions, with fitted exponents."""
    looks = (("D", _BAYES, False), ("+", "black", False), ("s", _SPHERE, True), ("D", _COLOURS[1], False))
    for (d, law, alpha), (mark, colour, hollow) in zip(SERIES, looks, strict=True):
        points = pick(rows, "C", "simulation", d=d, tasks=law, alpha=alpha)
        slope, error = power_law(points, pooled(points))
        digits = max(0, -math.floor(math.log10(error)))
        name = "Gaussian" if law == "gaussian" else "sphere"
        label = rf"d = {d}, {name}, $\alpha$ = {alpha:g}: $\kappa^{{{slope:.{digits}f} \pm {error:.{digits}f}}}$"
        _points(ax, points, colour, mark, 9.0 if mark == "+" else 5.5, hollow=hollow, label=label)
        _line(ax, pick(rows, "C", "theory", d=d, tasks=law), colour if mark != "+" else _BAYES, "--")
    for d in (10, 20):
        # from the first point on
        start = pick(rows, "C", "simulation", d=d, tasks="gaussian", alpha=10.0)[0]
        end = start.value * _LAST ** (-2.0 / d)
        ax.plot((1.0, _LAST), (start.value, end), color="0.6", lw=1)
        ax.annotate(
            rf"$\kappa^{{-2/d}}$, d = {d}",
            (_LAST, end),
            xytext=(4, -3),
            textcoords="offset points",
            color="0.4",
            fontsize=9,
        )
    ax.set(xscale="log", yscale="log", xlabel=_TASKS, ylabel=_GAP, xlim=(0.7, 650), ylim=(0.22, 1.45))
    ticks = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.set_title("C   dMMSE: the curse of dimension", loc="left")
    ax.legend(frameon=False, fontsize=9, loc="lower left")


def _draw_transition(ax: "Axes", parameters: TaskDiversity, rows: Sequence[GapRow]) -> None:
    """Panel D: the transition on linear axes, and the gap at kappa = 1."""
    d = parameters.transition_d
    for alpha, colour in zip(TRANSITION_ALPHAS, _COLOURS, strict=True):
        for i, run in enumerate(_unbroken(pick(rows, "D", "theory", alpha=alpha, d=d))):
            _line(ax, run, colour, label=None if i else rf"$\alpha$ = {alpha:g}")
        _line(ax, pick(rows, "D", "theory", alpha=alpha, d=None), colour, ":", 1.0)
        _points(ax, pick(rows, "D", "simulation", alpha=alpha), colour)
    limit = pick(rows, "D", "theory", alpha=math.inf)
    _line(ax, limit, "black", "-", 1.0, label=r"$\alpha \to \infty$ (after d → ∞)")
    ax.set(xlabel=_TASKS, ylabel=_GAP, xlim=(0, 2.1), ylim=(0, 1.5))
    ax.set_title(rf"D   the transition, $\tau$ = {SEQUENCES:g} $\alpha$, d = {d}", loc="left")
    ax.legend(frameon=False, fontsize=9, loc="lower left")
    inset = ax.inset_axes((0.53, 0.46, 0.45, 0.45))
    _line(inset, pick(rows, "D inset", "theory", d=d), "0.3", across="alpha")
    line = pick(rows, "D inset", "theory", d=None)
    _line(inset, line, "0.3", ":", 1.0, across="alpha")
    power = [row for row in line if row.alpha > 30]
    inset.plot([r.alpha for r in power], [critical_gap(r.alpha) for r in power], color="0.7", lw=4, alpha=0.6, zorder=0)
    for row, colour in zip(pick(rows, "D inset", "simulation"), _COLOURS, strict=True):
        _points(inset, [row], colour, across="alpha")
    inset.text(2e4, 6e-3, r"$\propto \alpha^{-1/2}$", fontsize=9)
    inset.set(xscale="log", yscale="log", xlim=(6, 3e5), ylim=(8e-4, 1.2))
    inset.set_xlabel(r"context length, $\alpha$", fontsize=8, labelpad=1)
    inset.set_title(r"gap at $\kappa = 1$", fontsize=9, pad=3)
    inset.tick_params(labelsize=8)
    inset.grid(alpha=0.25)


def _unbroken(line: Sequence[GapRow]) -> list[list[GapRow]]:
    """Cut a line where theory leaves a number of tasks out."""
    runs: list[list[GapRow]] = []
    for row in line:
        if not runs or (row.n_tasks or 0) > (runs[-1][-1].n_tasks or 0) + 1:
            runs.append([])
        runs[-1].append(row)
    return runs


def _slope(ax: "Axes", span: tuple[float, float], start: float, exponent: float, text: str) -> None:
    """Draw a guide to the eye for a power law, named at its end."""
    end = start * (span[1] / span[0]) ** exponent
    ax.plot(span, (start, end), color="0.6", lw=1)
    ax.annotate(text, (span[0], start), xytext=(2, 4), textcoords="offset points", color="0.4", fontsize=9)
