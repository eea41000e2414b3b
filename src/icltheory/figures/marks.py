"""How theory, simulation and published values look: a line, points with error bars, and crosses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Marked(Protocol):
    """A row of a figure's data: a value with its error, at some x that is another of its fields."""

    @property
    def value(self) -> float:
        """What is plotted."""

    @property
    def error(self) -> float:
        """Its standard error, 0 for theory."""


def line(
    ax: "Axes",
    rows: Sequence[Marked],
    colour: str,
    style: str = "-",
    width: float = 1.4,
    *,
    label: str | None = None,
    across: str = "x",
) -> None:
    """Draw theory, against the field `across`."""
    ax.plot(_field(rows, across), _field(rows, "value"), style, color=colour, lw=width, label=label)


def points(
    ax: "Axes",
    rows: Sequence[Marked],
    colour: str,
    mark: str = "o",
    size: float = 5.0,
    *,
    hollow: bool = False,
    label: str | None = None,
    across: str = "x",
) -> None:
    """Draw simulations with their standard errors."""
    ax.errorbar(
        _field(rows, across),
        _field(rows, "value"),
        yerr=_field(rows, "error"),
        fmt=mark,
        ms=size,
        capsize=2,
        color=colour,
        mfc="white" if hollow else colour,
        label=label,
        zorder=3,
    )


def crosses(ax: "Axes", rows: Sequence[Marked], *, label: str | None = None, across: str = "x") -> None:
    """Draw published values."""
    ax.plot(_field(rows, across), _field(rows, "value"), "x", color="black", ms=7, mew=1.3, label=label, zorder=5)


def _field(rows: Sequence[Marked], name: str) -> list[float]:
    return [getattr(row, name) for row in rows]
