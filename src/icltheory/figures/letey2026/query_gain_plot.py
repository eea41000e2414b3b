"""Query gain (Letey et al. 2026): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.letey2026.drawing import COLOURS, QUERY_COLOURS, QUERY_LABELS, XI
from icltheory.figures.letey2026.query_gain_data import (
    EXPONENTIAL,
    POWER_LAW,
    QueryGain,
    curves,
    few_point,
    long_point,
    main_point,
)
from icltheory.figures.letey2026.rows import CorrelatedRow, pick
from icltheory.figures.letey2026.trials import QUERIES
from icltheory.figures.marks import crosses, line, points
from icltheory.figures.published import LETEY2026_D, LETEY2026_LIMIT_D

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_GAIN = r"query gain, $\Delta = e_\mathrm{independent} - e_\mathrm{next}$"


def plot(parameters: QueryGain, rows: Sequence[CorrelatedRow]) -> "Picture":
    """Draw the six panels."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(14.5, 9), layout="constrained")
    axes = picture.subplots(2, 3)
    main, few = main_point(parameters.d), few_point(parameters.few_d)
    same_d, same_few = parameters.d == LETEY2026_D, parameters.few_d == LETEY2026_LIMIT_D
    _draw_errors(axes[0, 0], parameters, rows, "A", published=same_d)
    axes[0, 0].set_title(rf"A   many tasks, $\kappa$ = {main.kappa:g}, d = {main.d}", loc="left")
    _draw_gain(axes[0, 1], parameters, rows, "A", published=same_d)
    axes[0, 1].set_title("B   its query gain", loc="left")
    _draw_errors(axes[1, 0], parameters, rows, "D", published=same_few)
    axes[1, 0].set_title(rf"D   few tasks, $\kappa$ = {few.kappa:g}, $\tau$ = {few.tau:g}, d = {few.d}", loc="left")
    _draw_gain(axes[1, 1], parameters, rows, "D", published=same_few)
    axes[1, 1].set_title("E   its query gain", loc="left")
    _draw_grid(axes[0, 2], rows)
    _draw_gain(axes[1, 2], parameters, rows, "F", published=False)
    long = long_point(parameters.long_d)
    axes[1, 2].set_xlabel(r"exponent of $K_{ab} = (1+|a-b|)^{-\gamma}$, $\gamma$")
    axes[1, 2].set_title(f"F   a long context, l = {long.context_length}, d = {long.d}", loc="left")
    for ax in axes.flat:
        ax.grid(alpha=0.25)
    marks = [
        Line2D([], [], color="0.3", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label="simulation"),
        Line2D([], [], color="black", marker="x", ls="", label="published"),
        *(Line2D([], [], color=QUERY_COLOURS[query], lw=4, label=QUERY_LABELS[query]) for query in QUERIES),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=5, frameon=False)
    return picture


def _draw_errors(
    ax: "Axes", parameters: QueryGain, rows: Sequence[CorrelatedRow], panel: str, *, published: bool
) -> None:
    for query in QUERIES:
        line(ax, pick(rows, panel, "theory", query=query, measured="icl"), QUERY_COLOURS[query])
        points(ax, pick(rows, panel, "simulation", query=query, measured="icl"), QUERY_COLOURS[query])
    if published:
        crosses(ax, _shown(parameters, rows, panel, "icl"))
    ax.set(xlabel=XI, ylabel="ICL error")


def _draw_gain(
    ax: "Axes", parameters: QueryGain, rows: Sequence[CorrelatedRow], panel: str, *, published: bool
) -> None:
    line(ax, pick(rows, panel, "theory", measured="gain"), "0.3")
    points(ax, pick(rows, panel, "simulation", measured="gain"), COLOURS[2])
    if published:
        crosses(ax, _shown(parameters, rows, panel, "gain"))
    ax.axhline(0, color="black", lw=0.8)
    ax.set(xlabel=XI, ylabel=_GAIN)


def _shown(parameters: QueryGain, rows: Sequence[CorrelatedRow], panel: str, measured: str) -> list[CorrelatedRow]:
    longest = max(curves(parameters)[panel][1])
    return [row for row in pick(rows, panel, "published", measured=measured) if row.x <= longest]


def _draw_grid(ax: "Axes", rows: Sequence[CorrelatedRow]) -> None:
    for curve, colour, label in (
        (POWER_LAW, COLOURS[3], "power laws, γ from .5 to 2"),
        (EXPONENTIAL, COLOURS[1], "exponential chains"),
    ):
        found = pick(rows, "C", "theory", curve=curve)
        ax.plot([r.x for r in found], [r.value for r in found], ".", ms=3, alpha=0.5, color=colour, label=label)
    ax.axvline(1, color="0.3", lw=1, ls="-.")
    ax.axhline(0, color="black", lw=0.8)
    ax.set(
        xscale="log",
        xlabel=r"$k_1\, /\, [(2 k_2 + \rho)\, k_0]$",
        ylabel=r"relative query gain, $\Delta / e_\mathrm{independent}$",
    )
    ticks = (0.3, 0.5, 1.0, 2.0)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_title("C   theory at random points", loc="left")
    ax.legend(frameon=False, fontsize=9, markerscale=4)
