"""Finite-size theory: the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.averages import pick
from icltheory.figures.extensions.finite_size_claims import deviations
from icltheory.figures.extensions.finite_size_data import FiniteSize
from icltheory.figures.figure import Row
from icltheory.theory import linear_attention

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_COLOURS = ("#d1622b", "#0b6e99", "#5b8c2a")


def plot(parameters: FiniteSize, rows: Sequence[Row]) -> "Picture":
    """Draw the four panels."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(11, 8.6), layout="constrained")
    axes = picture.subplots(2, 2)
    for ax, panel, name in ((axes[0, 0], "A", "ICL"), (axes[0, 1], "B", "IDG")):
        _limit(ax, rows, panel, "tau")
        for d, colour in zip(parameters.sizes, _COLOURS, strict=False):
            _finite(ax, rows, panel, "tau", d, colour)
        ax.set(xlabel=r"pretraining sequences, $\tau = n/d^2$", ylabel=f"{name} error", xscale="log", yscale="log")
        ax.set_title(f"{panel}   {'fresh tasks' if name == 'ICL' else 'pretraining tasks'}", loc="left")
        _plain_ticks(ax, (0.2, 0.5, 1, 2, 4))
        ax.set_ylim(0.3 if name == "ICL" else 0.15, 40)
    ax = axes[1, 0]
    _limit(ax, rows, "C", "alpha")
    _finite(ax, rows, "C", "alpha", parameters.context_d, _COLOURS[0])
    ax.set(xlabel=r"context length, $\alpha = l/d$", ylabel="ICL error", xscale="log")
    ax.set_title("C   fresh tasks, against context length", loc="left")
    _plain_ticks(ax, (0.5, 1, 2, 4, 8, 16, 32, 64))
    _rate(axes[1, 1], rows)
    for ax in axes.flat:
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    marks = [
        Line2D([], [], color="0.3", label="finite-size theory"),
        Line2D([], [], color="black", ls="--", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label="simulation"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False)
    return picture


def _limit(ax: "Axes", rows: Sequence[Row], panel: str, across: str) -> None:
    line = pick(rows, panel, "theory", across=across, d=None)
    ax.plot([getattr(r, across) for r in line], [r.value for r in line], "--", color="black", lw=1, label="d → ∞")


def _finite(ax: "Axes", rows: Sequence[Row], panel: str, across: str, d: int, colour: str) -> None:
    line, points = (pick(rows, panel, kind, across=across, d=d) for kind in ("theory", "simulation"))
    ax.plot([getattr(r, across) for r in line], [r.value for r in line], color=colour, lw=1.4, label=f"d = {d}")
    ax.errorbar(
        [getattr(r, across) for r in points],
        [r.value for r in points],
        yerr=[r.error for r in points],
        fmt="o",
        ms=5,
        capsize=2,
        color=colour,
        zorder=3,
    )


def _rate(ax: "Axes", rows: Sequence[Row]) -> None:
    for target, colour in (("icl", _COLOURS[1]), ("idg", _COLOURS[2])):
        line, points = (pick(rows, "D", kind, across="d", target=target) for kind in ("theory", "simulation"))
        limits = [float(getattr(linear_attention(**r.ratios()), target)) for r in line]
        ax.plot(
            [r.d or 0 for r in line],
            [r.value / limit - 1 for r, limit in zip(line, limits, strict=True)],
            color=colour,
            lw=1.4,
            label=target.upper(),
        )
        distance = [deviations(r)[1] for r in points]
        ax.errorbar(
            [r.d or 0 for r in points],
            distance,
            yerr=[r.error / r.value * (1 + off) for r, off in zip(points, distance, strict=True)],
            fmt="o",
            ms=5,
            capsize=2,
            color=colour,
        )
    sizes = sorted({r.d or 0 for r in rows if r.panel == "D"})
    ax.plot(sizes, [2.0 / d for d in sizes], ":", color="0.5", lw=1, label="2/d")
    ax.set(xlabel="token dimension, $d$", ylabel="error / its limit − 1", xscale="log", yscale="log")
    ax.set_title("D   the distance from the limit falls like 1/d", loc="left")
    _plain_ticks(ax, sorted({r.d or 0 for r in rows if r.panel == "D" and r.kind == "simulation"}))
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
    ax.set_yticks(ticks, [f"{tick:.0%}" for tick in ticks])


def _plain_ticks(ax: "Axes", ticks: Sequence[float]) -> None:
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
