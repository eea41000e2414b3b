"""Concentration (Letey et al. 2026): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.letey2026.concentration_data import EDGE, FAMILIES, FIXED_RATIO, Concentration, Family
from icltheory.figures.letey2026.drawing import COLOURS
from icltheory.figures.letey2026.rows import CorrelatedRow, pick
from icltheory.figures.letey2026.trials import QueryName
from icltheory.figures.marks import line, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_ACROSS: dict[Family, str] = {
    "exponential": r"correlation length / context length, $\xi/l$",
    "power law": r"exponent of $K_{ab} = (1+|a-b|)^{-\gamma}$, $\gamma$",
}


def plot(parameters: Concentration, rows: Sequence[CorrelatedRow]) -> "Picture":
    """Draw the spread and the errors for both queries, a row of panels for each family of kernels."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(15, 9), layout="constrained")
    axes = picture.subplots(2, 3)
    letters = iter("ABCDEF")
    for i, family in enumerate(FAMILIES):
        _draw_spread(axes[i, 0], parameters, rows, family)
        _draw_errors(axes[i, 1], parameters, rows, family, "independent")
        _draw_errors(axes[i, 2], parameters, rows, family, "next")
        for ax, name in zip(
            axes[i],
            ("spread over seeds", "error, independent query", "error, query continues the context"),
            strict=True,
        ):
            ax.axvline(EDGE[family], color="0.3", lw=1, ls="-.")
            ax.set_xlabel(_ACROSS[family])
            if family == "exponential":
                ax.set_xscale("log")
            ax.set_title(f"{next(letters)}   {family}: {name}", loc="left", fontsize=11)
            ax.grid(alpha=0.25)
    marks = [
        *(
            Line2D([], [], color=colour, marker="o", label=f"d = {d}")
            for d, colour in zip(parameters.sizes, _colours(parameters), strict=True)
        ),
        Line2D([], [], color="0.3", marker="o", ls="", label="simulation"),
        Line2D([], [], color="0.3", label="theory for weak correlations"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=6, frameon=False)
    return picture


def _colours(parameters: Concentration) -> list[str]:
    return list(COLOURS[: len(parameters.sizes)])


def _draw_spread(ax: "Axes", parameters: Concentration, rows: Sequence[CorrelatedRow], family: Family) -> None:
    for d, colour in zip(parameters.sizes, _colours(parameters), strict=True):
        for query, style, hollow in (("independent", "-", False), ("next", ":", True)):
            found = pick(rows, family, "simulation", d=d, measured="spread", query=query)
            points(ax, found, colour, hollow=hollow)
            # a guide to the eye from point to point
            ax.plot([row.x for row in found], [row.value for row in found], style, color=colour, lw=0.8)
    ax.plot([], [], "o-", color="0.3", lw=0.8, label="independent query")
    ax.plot([], [], "o:", color="0.3", lw=0.8, mfc="none", label="query continues the context")
    ax.set(yscale="log", ylabel=r"relative spread of $\mathrm{trd}\,\Gamma$ over seeds")
    ax.legend(frameon=False, fontsize=9, loc="lower left" if family == "exponential" else "lower right")


def _draw_errors(
    ax: "Axes", parameters: Concentration, rows: Sequence[CorrelatedRow], family: Family, query: QueryName
) -> None:
    for d, colour in zip(parameters.sizes, _colours(parameters), strict=True):
        line(ax, pick(rows, family, "theory", curve=f"d = {d}", query=query), colour, width=1.1)
        points(ax, pick(rows, family, "simulation", d=d, measured="icl", query=query), colour)
    if query == "independent":
        if family == "exponential":
            line(
                ax,
                pick(rows, family, "theory", curve=FIXED_RATIO),
                "black",
                "--",
                label=r"limit at fixed $\xi/l$, d → ∞",
            )
            ax.legend(frameon=False, fontsize=9, loc="lower right")
        ax.set(ylabel="ICL error")
        return
    d = parameters.sizes[-1]
    for measured, mark, colour in (("weak", "v", "black"), ("strong", "^", "0.5")):
        found = pick(rows, family, "simulation", d=d, measured=measured, query=query)
        label = f"formula for {measured} correlations, fitted $\\Gamma$, d = {d}"
        ax.plot(
            [row.x for row in found],
            [row.value for row in found],
            mark,
            ls=":",
            lw=0.9,
            color=colour,
            mfc="none",
            label=label,
        )
    ax.set(yscale="log", ylabel="ICL error")
    ticks = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if family == "exponential" else (0.4, 0.6, 0.8, 1.0, 1.2)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    if family == "exponential":
        ax.set_ylim(bottom=0.025)
    ax.legend(frameon=False, fontsize=9, loc="lower left" if family == "exponential" else "lower right")
