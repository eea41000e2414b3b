"""Correlations that differ between training and test: the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.letey2026.drawing import COLOURS
from icltheory.figures.letey2026.other_correlation_data import MATCHED, OtherCorrelation, curve_of, lengths, panel_of
from icltheory.figures.letey2026.rows import CorrelatedRow, pick
from icltheory.figures.letey2026.trials import QUERIES
from icltheory.figures.marks import line, points

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_QUERIES = {"independent": "independent queries", "next": "next tokens"}


def plot(parameters: OtherCorrelation, rows: Sequence[CorrelatedRow]) -> "Picture":
    """Draw a panel for each pair of queries, of training and of the tests."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    picture = Canvas(figsize=(11.5, 9), layout="constrained")
    axes = picture.subplots(2, 2, sharex=True, sharey=True)
    trained = lengths(parameters)[0]
    for i, train in enumerate(QUERIES):
        for j, test in enumerate(QUERIES):
            ax, panel = axes[i, j], panel_of(train, test)
            for xi, colour in zip(trained, COLOURS, strict=False):
                line(ax, pick(rows, panel, "theory", curve=curve_of(xi)), colour)
                found = pick(rows, panel, "simulation", curve=curve_of(xi))
                points(ax, found, colour)
                same = [row for row in found if row.x == xi]
                ax.plot([row.x for row in same], [row.value for row in same], "o", ms=11, mfc="none", color=colour)
            line(ax, pick(rows, panel_of(test, test), "theory", curve=MATCHED), "black", "--", width=1.1)
            ax.set_title(f"{panel}   trained on {_QUERIES[train]}, tested on {_QUERIES[test]}", loc="left", fontsize=10)
            ax.set_yscale("log")
            ax.grid(alpha=0.25)
    ticks = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    axes[0, 0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0, 0].minorticks_off()
    for ax in axes[1]:
        ax.set_xlabel(r"correlation length of the tests, $\xi$ (tokens)")
    for ax in axes[:, 0]:
        ax.set_ylabel("ICL error")
    marks = [
        *(
            Line2D([], [], color=colour, marker="o", label=rf"trained at $\xi$ = {xi:g}")
            for xi, colour in zip(trained, COLOURS, strict=False)
        ),
        Line2D([], [], color="0.3", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label=f"simulation, d = {parameters.d} (ringed: its own ξ)"),
        Line2D([], [], color="black", ls="--", label="theory, trained as tested"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=4, frameon=False)
    return picture
