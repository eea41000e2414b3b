"""Double descent (Lu et al. 2025, Fig. 1): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icltheory.figures.averages import pick
from icltheory.figures.figure import Row
from icltheory.figures.lu2025.double_descent_data import ALPHAS, PEAK_ALPHA, RIDGE_ALPHA, RIDGES, DoubleDescent
from icltheory.figures.published import LU2025_FIG1_D

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_COLOURS = ("#0b6e99", "#d1622b", "#5b8c2a")


def plot(parameters: DoubleDescent, rows: Sequence[Row]) -> "Picture":
    """Draw the four panels."""
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(11, 8.6), layout="constrained")
    axes = picture.subplots(2, 2)
    tau_label = r"pretraining sequences, $\tau = n/d^2$"
    for ax, panel, name in ((axes[0, 0], "A", "ICL"), (axes[0, 1], "B", "IDG")):
        for i, alpha in enumerate(sorted({row.alpha for row in pick(rows, panel, "simulation")})):
            _draw(ax, rows, panel, rf"$\alpha$ = {alpha:g}", _COLOURS[i], alpha=alpha)
            nominal = ALPHAS[i]
            crosses = pick(rows, panel, "published", alpha=nominal)
            ax.plot([r.tau for r in crosses], [r.value for r in crosses], "x", color="black", ms=5, mew=1, zorder=4)
        ax.set(ylabel=f"{name} error", xlabel=tau_label, yscale="log")
        ax.set_title(f"{panel}   {'fresh tasks' if name == 'ICL' else 'pretraining tasks'}, ridgeless", loc="left")
    axes[0, 0].set_ylim(0.5, 40)
    axes[0, 1].set_ylim(0.02, 20)
    ax = axes[1, 0]
    for i, ridge in enumerate(RIDGES):
        _draw(ax, rows, "C", rf"$\lambda$ = {ridge:g}", _COLOURS[i], ridge=ridge)
    ax.set(xlabel=tau_label, ylabel="ICL error", yscale="log")
    ax.set_title(rf"C   a ridge removes the peak ($\alpha$ = {RIDGE_ALPHA:g}, $\kappa = \infty$)", loc="left")
    _draw_peak(axes[1, 1], parameters, rows)
    for ax in axes.flat:
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    for ax in axes.flat[:3]:
        ax.axvline(1, color="0.6", lw=0.8, ls=":")
        ax.set_xlim(0.1, 2.4)
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color="0.3", label="theory, d → ∞"),
        Line2D([], [], color="0.3", marker="o", ls="", label=f"simulation, d = {parameters.d}"),
        Line2D([], [], color="black", marker="x", ls="", label=f"published, d = {LU2025_FIG1_D}"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False)
    return picture


def _draw(ax: "Axes", rows: Sequence[Row], panel: str, label: str, colour: str, **fields: Any) -> None:
    line = pick(rows, panel, "theory", **fields)
    points = pick(rows, panel, "simulation", **fields)
    # a gap at tau = 1 where the curve diverges
    tau = np.array([row.tau for row in line])
    value = np.array([row.value for row in line])
    value[np.abs(tau - 1) < 1.5e-3] = np.nan if line[0].ridge == 0 else value[np.abs(tau - 1) < 1.5e-3]
    ax.plot(tau, value, color=colour, lw=1.4, label=label)
    ax.errorbar(
        [row.tau for row in points],
        [row.value for row in points],
        yerr=[row.error for row in points],
        fmt="o",
        ms=6.5,
        capsize=2,
        color=colour,
        zorder=3,
    )


def _draw_peak(ax: "Axes", parameters: DoubleDescent, rows: Sequence[Row]) -> None:
    d = parameters.peak_d
    for target, colour in (("icl", _COLOURS[0]), ("idg", _COLOURS[1])):
        line = pick(rows, "D", "theory", target=target)
        points = pick(rows, "D", "simulation", target=target)
        for part in ([row for row in line if row.tau < 1], [row for row in line if row.tau > 1]):
            ax.plot([row.tau * d * d for row in part], [row.value for row in part], color=colour, lw=1, alpha=0.6)
        ax.errorbar(
            [row.n_sequences or 0 for row in points],
            [row.value for row in points],
            yerr=[row.error for row in points],
            fmt="o-",
            lw=0.8,
            ms=4.5,
            capsize=2,
            color=colour,
            label=f"{target.upper()}, median of {parameters.peak_seeds}",
        )
    ax.axvline(d * d, color="0.6", lw=0.9, ls=":", label=f"$d^2$ = {d * d}")
    ax.axvline(d * (d + 1), color="0.2", lw=0.9, ls="--", label=f"$d(d+1)$ = {d * (d + 1)}")
    ax.set(xlabel="pretraining sequences, $n$", ylabel="error", yscale="log")
    ax.set_title(rf"D   where the peak sits: d = {d}, $\alpha$ = {PEAK_ALPHA:g}, ridgeless", loc="left")
