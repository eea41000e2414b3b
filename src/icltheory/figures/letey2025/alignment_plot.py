"""Alignment of pretraining and test tasks (Letey et al. 2025): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icltheory.figures.letey2025.alignment_claims import extrapolations
from icltheory.figures.letey2025.alignment_data import AlignmentRow, main_point, pick
from icltheory.figures.letey2025.alignment_trials import (
    EXPONENT,
    GROUPS,
    SEEN,
    UNSEEN,
    Alignment,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_COLOURS = dict(
    zip(
        GROUPS,
        ("#0b6e99", "#d1622b", "#5b8c2a", "#8c6bb1", "#111111", "#c2a300", "#c0392b", "#7f8c8d"),
        strict=True,
    )
)
_MARKERS = dict(zip(GROUPS, "os^Dv<P*", strict=True))
_LABELS = {
    "misalignment": r"$\mathrm{trd}\,BK$",
    "resolvent": r"$\mathrm{trd}\,BF$",
    "inverse": r"$\mathrm{trd}\,BC^{-1}$",
    "cka": "CKA(B, C)",
    "cosine": "cos(B, C)",
    "captured": "captured variance",
    "bures": "Bures distance",
    "frobenius": "Frobenius distance",
    "divergence": "KL(B || C)/d",
}
_DERIVED = ("misalignment", "resolvent", "inverse")
_PANELS = ("misalignment", "resolvent", "inverse", "cka", "cosine", "captured", "bures")


def plot(parameters: Alignment, rows: Sequence[AlignmentRow]) -> "Picture":
    """Draw theory against simulation, the error against seven measures, their order, and two consequences."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(15, 11.4), layout="constrained")
    upper, lower = list(picture.subfigures(2, 1, squeeze=False, height_ratios=(2.15, 1)).flat)
    axes = upper.subplots(2, 4).flat
    _draw_theory(axes[0], parameters, rows)
    for ax, measure, letter in zip(axes[1:], _PANELS, "BCDEFGH", strict=True):
        _draw_measure(ax, parameters, rows, measure, letter)
    grid = lower.add_gridspec(2, 4, height_ratios=(1, 1.5))
    _draw_ranks(lower.add_subplot(grid[0, :2]), lower.add_subplot(grid[1, :2]), rows)
    _draw_training(lower.add_subplot(grid[:, 2]), rows)
    _draw_diversity(lower.add_subplot(grid[:, 3]), rows)
    for ax in picture.axes:
        ax.grid(alpha=0.25)
    marks = [Line2D([], [], color=_COLOURS[group], marker=_MARKERS[group], ls="", label=group) for group in GROUPS]
    marks += [
        Line2D([], [], color="0.3", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label=f"simulation, d = {parameters.d}"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=5, frameon=False)
    return picture


def _draw_theory(ax: "Axes", parameters: Alignment, rows: Sequence[AlignmentRow]) -> None:
    from matplotlib import colormaps

    checks = extrapolations(parameters, rows)
    kappas = sorted({check.row.kappa for check in checks})
    for i, kappa in enumerate(kappas):
        chosen = [check for check in checks if check.row.kappa == kappa]
        law = np.array([check.row.value / check.full for check in chosen])
        colour = colormaps["viridis"](0.9 * i / max(1, len(kappas) - 1))
        ax.errorbar(
            law,
            [check.row.value for check in chosen],
            yerr=[check.row.error for check in chosen],
            fmt="o",
            ms=3.5,
            lw=0.8,
            color=colour,
            label=rf"$\kappa$ = {kappa:g}",
        )
        ax.plot(law, [check.limit for check in chosen] * law, "D", ms=4, mew=0.7, mfc="none", color=colour)
    span = np.array([min(check.row.value for check in checks) * 0.8, max(check.row.value for check in checks) * 1.1])
    ax.plot(span, span, color="0.3", lw=1, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="ICL error, theory", ylabel="ICL error, simulation")
    _plain_ticks(ax, (0.2, 0.3, 0.5, 0.7, 1.0, 1.5), (0.2, 0.3, 0.5, 0.7, 1.0, 1.5))
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles, labels, frameon=False, fontsize=8, loc="upper left", title="open: extrapolated", title_fontsize=8
    )
    ax.set_title("A   every test, every number of tasks", loc="left", fontsize=10)


def _plain_ticks(ax: "Axes", across: Sequence[float], upwards: Sequence[float] = ()) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

    for axis, ticks in ((ax.xaxis, across), (ax.yaxis, upwards)):
        if ticks:
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())


def _draw_measure(ax: "Axes", parameters: Alignment, rows: Sequence[AlignmentRow], measure: str, letter: str) -> None:
    kappa = main_point(parameters).kappa
    for group in GROUPS:
        points = pick(rows, "measure", "simulation", measure=measure, group=group)
        ax.errorbar(
            [row.x or 0.0 for row in points],
            [row.value for row in points],
            yerr=[row.error for row in points],
            fmt=_MARKERS[group],
            ms=5,
            lw=0.8,
            color=_COLOURS[group],
        )
    line = sorted(pick(rows, "measure", "theory", measure=measure), key=lambda row: row.x or 0.0)
    ax.plot([row.x or 0.0 for row in line], [row.value for row in line], color="0.3", lw=1, zorder=0)
    if measure == "misalignment":
        limits = {
            c.row.test: c.limit / c.full * c.row.value for c in extrapolations(parameters, rows) if c.row.kappa == kappa
        }
        for row in pick(rows, "measure", "simulation", measure=measure):
            ax.plot(row.x or 0.0, limits[row.test], "D", ms=4, mew=0.7, mfc="none", color=_COLOURS[row.group])
    order = next(row.value for row in pick(rows, "rank", "simulation", measure=measure, kappa=kappa))
    ax.set(xlabel=_LABELS[measure], ylabel="ICL error")
    if measure == "inverse":
        ax.set_xscale("log")
        _plain_ticks(ax, (0.3, 0.5, 1.0, 2.0, 4.0))
    ax.set_title(rf"{letter}   $\kappa$ = {kappa:g}:  $\rho_S$ = {order:.3f}", loc="left", fontsize=10)


def _draw_ranks(upper: "Axes", lower: "Axes", rows: Sequence[AlignmentRow]) -> None:
    from matplotlib import colormaps

    ends: dict[Axes, list[tuple[float, str, Any]]] = {upper: [], lower: []}
    for i, (measure, label) in enumerate(_LABELS.items()):
        ax = upper if measure in _DERIVED else lower
        line = pick(rows, "rank", "theory", measure=measure)
        points = pick(rows, "rank", "simulation", measure=measure)
        colour = colormaps["tab10"](i)
        ax.plot([row.kappa for row in line], [row.value for row in line], color=colour, lw=1.2)
        ax.errorbar(
            [row.kappa for row in points],
            [row.value for row in points],
            yerr=[row.error for row in points],
            fmt="o",
            ms=4.5,
            capsize=2,
            color=colour,
        )
        ends[ax].append((line[-1].value, label, colour))
    upper.set_ylim(top=1.0 + 0.12 * (1.0 - upper.get_ylim()[0]))
    for ax, spacing in ((upper, 0.16), (lower, 0.105)):
        ax.set(xscale="log", xlim=(0.8 * line[0].kappa, 2.4 * line[-1].kappa))
        _plain_ticks(ax, [row.kappa for row in line])
        _label_ends(ax, line[-1].kappa, ends[ax], spacing)
    upper.tick_params(labelbottom=False)
    lower.set(xlabel=r"pretraining tasks, $\kappa = k/d$", ylabel=r"rank correlation, $\rho_S$")
    upper.set_title("I   which measure orders the errors (two scales)", loc="left", fontsize=10)


def _label_ends(ax: "Axes", x: float, ends: Sequence[tuple[float, str, Any]], spacing: float) -> None:
    """Write the names of the lines to the right of their ends, one above the other where they meet."""
    low, high = ax.get_ylim()
    height = 2.0
    for value, label, colour in sorted(ends, key=lambda end: -end[0]):
        height = min((value - low) / (high - low), height - spacing)
        ax.annotate(
            label,
            (1.1 * x, height),
            xycoords=("data", "axes fraction"),
            color=colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
        )


def _draw_training(ax: "Axes", rows: Sequence[AlignmentRow]) -> None:
    kappas = sorted({row.kappa for row in pick(rows, "training", "simulation")})
    for kappa, colour in zip(kappas, ("#d1622b", "#0b6e99"), strict=True):
        line = pick(rows, "training", "theory", kappa=kappa)
        points = pick(rows, "training", "simulation", kappa=kappa)
        _draw_line(ax, line, points, "train_exponent", colour, rf"$\kappa$ = {kappa:g}")
    ax.axvline(EXPONENT, color="0.6", lw=0.9, ls=":", label="exponent of the test")
    ax.set(xlabel="exponent of the pretraining spectrum", ylabel="ICL error")
    ax.legend(frameon=False, fontsize=8)
    ax.set_title("J   what to pretrain on", loc="left", fontsize=10)


def _draw_diversity(ax: "Axes", rows: Sequence[AlignmentRow]) -> None:
    for test, label, colour in ((UNSEEN, "the other half", "#d1622b"), (SEEN, "the same half", "#0b6e99")):
        line = pick(rows, "diversity", "theory", test=test)
        _draw_line(ax, line, pick(rows, "diversity", "simulation", test=test), "kappa", colour, f"tested on {label}")
    ax.set(xscale="log", xlabel=r"pretraining tasks, $\kappa = k/d$", ylabel="ICL error", ylim=(0, None))
    _plain_ticks(ax, (0.25, 0.5, 1.0, 2.0, 4.0))
    ax.legend(frameon=False, fontsize=8, loc="center right")
    ax.set_title("K   tasks in half of the directions", loc="left", fontsize=10)


def _draw_line(
    ax: "Axes", line: Sequence[AlignmentRow], points: Sequence[AlignmentRow], across: str, colour: str, label: str
) -> None:
    ax.plot([getattr(row, across) for row in line], [row.value for row in line], color=colour, lw=1.3, label=label)
    ax.errorbar(
        [getattr(row, across) for row in points],
        [row.value for row in points],
        yerr=[row.error for row in points],
        fmt="o",
        ms=5,
        capsize=2,
        color=colour,
    )
