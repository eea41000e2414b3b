"""One-pass training: the picture."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.extensions.online_data import (
    DECAY_TIME,
    EARLY,
    EDGE,
    KAPPAS,
    LATE,
    RHO,
    STEPS,
    TIMES,
    Online,
    OnlineRow,
    pick,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_COLOURS = ("#0b6e99", "#d1622b", "#5b8c2a")
_GREY = "0.35"
_TIME = r"training time, $t$ = sequences seen$/d^2$"


def plot(parameters: Online, rows: Sequence[OnlineRow]) -> "Picture":
    """Draw the six panels."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(14, 8.4), layout="constrained")
    axes = picture.subplots(2, 3)
    few = rf"$\kappa$ = {KAPPAS[0]:g}"
    for ax, panel, name, tasks in (
        (axes[0, 0], "A", "ICL", rf"fresh tasks, {few}"),
        (axes[0, 1], "B", "IDG", rf"pretraining tasks, {few}"),
        (axes[0, 2], "C", "ICL = IDG", r"endless tasks, $\kappa = \infty$"),
    ):
        for eta, colour in zip(STEPS, _COLOURS, strict=True):
            label = rf"$\eta$ = {eta:g} ({eta / EDGE:.2f} of the edge)"
            _line(ax, pick(rows, panel, "theory", step_size=eta, d=parameters.d), colour, label=label)
            _limit(ax, pick(rows, panel, "theory", step_size=eta, d=None), colour)
            _points(ax, pick(rows, panel, "simulation", step_size=eta), colour)
        ax.set(xlabel=_TIME, ylabel=f"{name} error", xlim=(0, TIMES[-1] + 0.2))
        ax.set_title(f"{panel}   {tasks}", loc="left")
    _draw_steps(axes[1, 0], parameters, rows)
    _draw_comparison(axes[1, 1], rows)
    _draw_schedule(axes[1, 2], rows)
    for ax in axes.flat:
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    marks = [
        Line2D([], [], color="0.3", lw=1.4, label=f"one-pass theory, d = {parameters.d}"),
        Line2D([], [], color="0.3", lw=0.9, ls=":", label="in the limit d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label=f"one-pass simulation, d = {parameters.d}"),
        Line2D([], [], color="0.3", marker="s", mfc="white", ls="", label=f"fit, d = {parameters.fit_d}"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=4, frameon=False)
    return picture


def _draw_steps(ax: "Axes", parameters: Online, rows: Sequence[OnlineRow]) -> None:
    """Panel D: the error against the step size."""
    for t, colour in zip((EARLY, LATE), _COLOURS, strict=False):
        for d, width, style, label in ((parameters.d, 1.4, "-", f"$t$ = {t:g}"), (None, 0.9, ":", None)):
            line = pick(rows, "D", "theory", t=t, d=d)
            steps, values = [row.step_size or 0 for row in line], [row.value for row in line]
            ax.plot(steps, values, style, color=colour, lw=width, label=label)
        points = [row for row in pick(rows, "D", "simulation") if abs(row.t - t) < 0.01 * t]
        ax.errorbar(
            [row.step_size or 0 for row in points],
            [row.value for row in points],
            yerr=[row.error for row in points],
            fmt="o",
            ms=5,
            capsize=2,
            color=colour,
            zorder=3,
        )
    limit = pick(rows, "D", "theory", t=math.inf)
    steps, values = [row.step_size or 0 for row in limit], [row.value for row in limit]
    ax.plot(steps, values, color=_GREY, lw=0.9, ls="--", label=r"$t \to \infty$, $d \to \infty$")
    ax.axvline(EDGE, color="0.2", lw=1.2, ls="-.", label=rf"edge of stability, {EDGE:.2f}")
    ax.set(xlabel=r"step size, $\eta$", ylabel="IDG error", yscale="log", ylim=(0.1, 6), xlim=(0, 2.1))
    _plain_ticks(ax, (0.1, 0.2, 0.5, 1, 2, 5))
    ax.set_title(rf"D   step size, $\kappa$ = {KAPPAS[0]:g}", loc="left")


def _draw_comparison(ax: "Axes", rows: Sequence[OnlineRow]) -> None:
    """Panel E: the same sequences seen once, or kept and fitted."""
    schedule = rf"one pass, $\eta$ = {STEPS[-1]:g}/(1 + t/{DECAY_TIME:g})"
    for method, colour, style, label in (
        ("ridgeless fit", _COLOURS[1], "-", r"fit, ridgeless, $d \to \infty$"),
        ("best ridge fit", _COLOURS[2], "-", r"fit, best $\lambda$, $d \to \infty$"),
        ("best constant step", _GREY, "--", r"one pass, best constant step, $d \to \infty$"),
        ("one pass", _COLOURS[0], "-", schedule),
        ("best schedule", "black", ":", r"one pass, best schedule, $d \to \infty$"),
    ):
        line = pick(rows, "E", "theory", method=method)
        pole = method == "ridgeless fit"
        for part in ([row for row in line if row.t < 1], [row for row in line if row.t > 1]) if pole else (line,):
            _line(ax, part, colour, style, label if part is line or part[0].t > 1 else None)
        points = [row for row in pick(rows, "E", "simulation", method=method) if _shown(row)]
        _points(ax, points, colour, "s" if "fit" in method else "o")
    ax.set(xlabel=r"sequences, $t = \tau = n/d^2$", ylabel="ICL error", yscale="log", ylim=(0.18, 3))
    ax.set_xlim(0, TIMES[-1] + 0.2)
    _plain_ticks(ax, (0.2, 0.3, 0.5, 1, 2, 3))
    ax.axvline(1, color="0.6", lw=0.8, ls=":")
    ax.set_title(r"E   one pass against a fit, $\kappa = \infty$", loc="left")


def _shown(row: OnlineRow) -> bool:
    """Leave out the run with the best constant step for the last time: it serves a claim."""
    return row.method != "one pass" or not math.isinf(row.decay_time)


def _draw_schedule(ax: "Axes", rows: Sequence[OnlineRow]) -> None:
    """Panel F: a constant step size against one that decreases."""
    for target, colour in (("icl", _COLOURS[0]), ("idg", _COLOURS[1])):
        for decay_time, style, word in ((math.inf, "--", f"{STEPS[-1]:g}"), (DECAY_TIME, "-", "schedule")):
            label = (
                rf"{target.upper()}, $\eta$ = {word}"
                if word != "schedule"
                else (rf"{target.upper()}, $\eta$ = {STEPS[-1]:g}/(1 + t/{DECAY_TIME:g})")
            )
            _line(ax, pick(rows, "F", "theory", target=target, decay_time=decay_time), colour, style, label)
            points = pick(rows, "F", "simulation", target=target, decay_time=decay_time)
            _points(ax, points, colour, "o", hollow=math.isinf(decay_time))
    ax.axhline(RHO, color="0.6", lw=0.8, ls=":", label=r"label noise, $\rho$")
    ax.set(xlabel=_TIME, ylabel="error", xlim=(0, TIMES[-1] + 0.2), ylim=(0, 1.15))
    ax.set_title(rf"F   a step-size schedule, $\kappa$ = {KAPPAS[0]:g}", loc="left")


def _plain_ticks(ax: "Axes", values: Sequence[float]) -> None:
    """Label a logarithmic axis of less than two decades with plain numbers."""
    ax.set_yticks(values, [f"{value:g}" for value in values])
    ax.set_yticks([], minor=True)


def _line(ax: "Axes", line: Sequence[OnlineRow], colour: str, style: str = "-", label: str | None = None) -> None:
    ax.plot([row.t for row in line], [row.value for row in line], style, color=colour, lw=1.4, label=label)


def _limit(ax: "Axes", line: Sequence[OnlineRow], colour: str) -> None:
    ax.plot([row.t for row in line], [row.value for row in line], ":", color=colour, lw=0.9)


def _points(ax: "Axes", points: Sequence[OnlineRow], colour: str, mark: str = "o", *, hollow: bool = False) -> None:
    ax.errorbar(
        [row.t for row in points],
        [row.value for row in points],
        yerr=[row.error for row in points],
        fmt=mark,
        ms=5,
        capsize=2,
        color=colour,
        mfc="white" if hollow or mark == "s" else colour,
        zorder=3,
    )
