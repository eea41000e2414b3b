"""Effective context length (Letey et al. 2026): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures.letey2026.drawing import COLOURS, XI
from icltheory.figures.letey2026.effective_length_data import CORRELATED, SHORTER, EffectiveLength, levels, point_of
from icltheory.figures.letey2026.rows import CorrelatedRow, pick
from icltheory.figures.letey2026.same_k2 import FAMILIES
from icltheory.figures.marks import crosses, line, points
from icltheory.figures.published import LETEY2026_D

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_MARKS = ("o", "s", "D", "^")
_K2 = r"$k_2 = \mathrm{tr}\,K^2/l$"


def plot(parameters: EffectiveLength, rows: Sequence[CorrelatedRow]) -> "Picture":
    """Draw the four panels."""
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(11.5, 9), layout="constrained")
    axes = picture.subplots(2, 2)
    _draw_lengths(axes[0, 0], parameters, rows)
    _draw_ruler(axes[0, 1], parameters, rows)
    _draw_kernels(axes[1, 0], parameters, rows)
    _draw_ridge(axes[1, 1], parameters, rows)
    for ax in axes.flat:
        ax.grid(alpha=0.25)
    return picture


def _draw_lengths(ax: "Axes", parameters: EffectiveLength, rows: Sequence[CorrelatedRow]) -> None:
    d = parameters.d
    line(ax, pick(rows, "A", "theory", curve=CORRELATED, d=None), "black", "--", width=1.1, label="theory, d → ∞")
    line(ax, pick(rows, "A", "theory", curve=CORRELATED, d=d), COLOURS[0], label=f"theory at d = {d}")
    line(ax, pick(rows, "A", "theory", curve=SHORTER), COLOURS[1], label=rf"theory at d = {d}, $l_\mathrm{{eff}}$")
    short, long = (pick(rows, "A", "simulation", curve=curve) for curve in (SHORTER, CORRELATED))
    label = r"independent tokens, $l_\mathrm{eff}$ of them (rounded)"
    points(ax, short, COLOURS[1], "s", size=9, hollow=True, label=label)
    points(ax, long, COLOURS[0], size=4.5, label=f"correlated tokens, l = {point_of(d).context_length}")
    if d == LETEY2026_D:
        published = pick(rows, "A", "published", curve=CORRELATED)
        crosses(ax, [row for row in published if row.x <= long[-1].x], label="published, correlated tokens")
    ax.set(xlabel=XI, ylabel="ICL error, independent query")
    ax.set_title(f"A   linear attention, d = {d}", loc="left")
    ax.legend(frameon=False, fontsize=9, loc="lower right")


def _draw_ruler(ax: "Axes", parameters: EffectiveLength, rows: Sequence[CorrelatedRow]) -> None:
    line(
        ax,
        pick(rows, "B", "theory"),
        COLOURS[0],
        label=r"$l_\mathrm{eff} = l\,\frac{1+\rho}{k_2+\rho}$",
    )
    points(ax, pick(rows, "B", "simulation"), COLOURS[0], label="length of independent context with the same error")
    ax.set(xlabel=XI, ylabel=r"effective context length, $l_\mathrm{eff}$", yscale="log")
    ticks = [tick for tick in (8, 16, 32, 64, 128) if tick <= point_of(parameters.d).context_length]
    ax.set_yticks(ticks, [f"{tick}" for tick in ticks])
    ax.minorticks_off()
    ax.set_title("B   how much the correlated context is worth", loc="left")
    ax.legend(frameon=False, fontsize=10, loc="upper right")


def _draw_kernels(ax: "Axes", parameters: EffectiveLength, rows: Sequence[CorrelatedRow]) -> None:
    line(ax, pick(rows, "C", "theory", curve=CORRELATED), "black", "--", width=1.1, label="theory, d → ∞")
    line(
        ax,
        pick(rows, "C", "theory", curve=SHORTER),
        "0.4",
        label=f"theory at d = {parameters.d} and $l_\\mathrm{{eff}}$",
    )
    for i, (family, colour, mark) in enumerate(zip(FAMILIES, COLOURS, _MARKS, strict=True)):
        # side by side, or they would hide each other
        shift = 0.012 * (i - 1.5) * max(levels(parameters))
        _shifted(ax, pick(rows, "C", "simulation", curve=family), colour, mark, shift, label=family)
    ax.set(xlabel=_K2, ylabel="ICL error, independent query")
    ax.set_title("C   linear attention: four kernels, one curve", loc="left")
    ax.legend(frameon=False, fontsize=9, loc="lower right")


def _draw_ridge(ax: "Axes", parameters: EffectiveLength, rows: Sequence[CorrelatedRow]) -> None:
    for i, (family, colour, mark) in enumerate(zip(FAMILIES, COLOURS, _MARKS, strict=True)):
        shift = 0.012 * (i - 1.5) * max(levels(parameters))
        line(ax, pick(rows, "D", "theory", curve=family), colour)
        _shifted(ax, pick(rows, "D", "simulation", curve=family), colour, mark, shift, label=family)
    same = pick(rows, "D", "theory", curve=SHORTER)
    line(ax, same, "0.4", ":", label=r"independent tokens, $l_\mathrm{eff}$ of them")
    rho = same[0].rho
    ax.axhline(rho, color="0.6", lw=0.9, ls="-.", label=rf"label noise, $\rho$ = {rho:g}")
    ax.set(xlabel=_K2, ylabel="error, independent query", yscale="log")
    ax.set_title("D   ridge regression within the prompt: four curves", loc="left")
    ax.legend(frameon=False, fontsize=9, loc="upper left")


def _shifted(
    ax: "Axes", rows: Sequence[CorrelatedRow], colour: str, mark: str, shift: float, label: str | None = None
) -> None:
    from dataclasses import replace

    points(ax, [replace(row, x=row.x + shift) for row in rows], colour, mark, label=label)
