"""Correlated prompts (Letey et al. 2026): how lines, points and published values look in all four figures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.letey2026.rows import CorrelatedRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#d1622b", "#0b6e99", "#5b8c2a", "#6a3d9a")
QUERY_COLOURS = {"independent": COLOURS[0], "next": COLOURS[1]}
QUERY_LABELS = {"independent": "independent query", "next": "query continues the context"}
XI = r"correlation length, $\xi$ (tokens)"


def line(
    ax: "Axes",
    rows: Sequence[CorrelatedRow],
    colour: str,
    style: str = "-",
    *,
    width: float = 1.4,
    label: str | None = None,
) -> None:
    """Draw theory."""
    ax.plot([row.x for row in rows], [row.value for row in rows], style, color=colour, lw=width, label=label)


def points(
    ax: "Axes",
    rows: Sequence[CorrelatedRow],
    colour: str,
    mark: str = "o",
    *,
    size: float = 5.0,
    hollow: bool = False,
    label: str | None = None,
) -> None:
    """Draw simulations with their standard errors."""
    ax.errorbar(
        [row.x for row in rows],
        [row.value for row in rows],
        yerr=[row.error for row in rows],
        fmt=mark,
        ms=size,
        capsize=2,
        color=colour,
        mfc="none" if hollow else colour,
        label=label,
        zorder=3,
    )


def crosses(ax: "Axes", rows: Sequence[CorrelatedRow], *, label: str | None = None) -> None:
    """Draw published values."""
    x, y = [row.x for row in rows], [row.value for row in rows]
    ax.plot(x, y, "x", color="black", ms=7, mew=1.3, label=label, zorder=5)
