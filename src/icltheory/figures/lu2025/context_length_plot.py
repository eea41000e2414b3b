"""Error against context length (Lu et al. 2025, Fig. 2): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.averages import pick
from icltheory.figures.figure import Row
from icltheory.figures.lu2025.context_length_data import PANELS, ContextLength, Panel, curves
from icltheory.figures.published import LU2025_FIG2_D

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

# few tasks warm, many tasks cold
_COLOURS = ("#8c2d04", "#d1622b", "#e0a030", "#5b8c2a", "#0b6e99")


def plot(parameters: ContextLength, rows: Sequence[Row]) -> "Picture":
    """Draw the three panels."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(13, 4.9), layout="constrained")
    axes = picture.subplots(1, 3)
    for ax, panel, d in zip(axes, PANELS, parameters.dimensions, strict=True):
        _draw(ax, rows, panel, d)
    axes[0].set_ylim(0.65, 100)
    axes[1].set_ylim(0.5, 40)
    axes[2].set_ylim(1, 20)
    marks = [
        Line2D([], [], color="0.3", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="v", ms=8, mfc="white", ls="", label="its minimum"),
        Line2D([], [], color="0.3", marker="o", ls="", label="simulation"),
        Line2D([], [], color="black", marker="x", ls="", label=f"published, d = {LU2025_FIG2_D}"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=4, frameon=False)
    return picture


def _draw(ax: "Axes", rows: Sequence[Row], panel: Panel, d: int) -> None:
    for curve, colour in zip(curves(rows, panel.name), _COLOURS, strict=True):
        kappa = curve[0].kappa
        line = pick(rows, panel.name, "theory", kappa=kappa, across="alpha")
        ax.plot(
            [row.alpha for row in line],
            [row.value for row in line],
            color=colour,
            lw=1.4,
            label=rf"$\kappa$ = {kappa:.3g}",
        )
        ax.errorbar(
            [row.alpha for row in curve],
            [row.value for row in curve],
            yerr=[row.error for row in curve],
            fmt="o",
            ms=5.5,
            capsize=2,
            color=colour,
            zorder=3,
        )
        for best in pick(rows, f"{panel.name} optimum", "theory", kappa=kappa, across="alpha"):
            # above the curve, pointing down at it
            ax.plot(
                best.alpha,
                best.value,
                marker=[(0, 0), (-0.6, 1.3), (0.6, 1.3), (0, 0)],
                ms=13,
                color=colour,
                mfc="white",
                zorder=4,
                clip_on=True,
            )
    crosses = pick(rows, panel.name, "published", across="alpha")
    ax.plot([r.alpha for r in crosses], [r.value for r in crosses], "x", color="black", ms=5, mew=1, zorder=5)
    kind = "fresh tasks" if panel.target == "icl" else "pretraining tasks"
    ax.set_title(
        rf"{panel.name}   {kind}, $\tau$ = {panel.tau:g}, $\rho$ = {panel.rho:g}, d = {d}", loc="left", fontsize=11
    )
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(0.4, 4000),
        xlabel=r"context length, $\alpha = l/d$",
        ylabel=f"{panel.target.upper()} error",
    )
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=8, title="tasks/d", title_fontsize=8)
