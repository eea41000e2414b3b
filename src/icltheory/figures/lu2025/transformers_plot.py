"""Trained transformers (Fig. 5 of Lu et al. 2025): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from icltheory.figures import marks
from icltheory.figures.lu2025.transformers_data import PANELS, TITLES, Transformers
from icltheory.figures.trained import COLOURS, TrainedRow, pick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_MARKS = "osD^"
_TOP = 12.0  # of the errors that are shown
_TICKS = (0.5, 1.0, 2.0, 4.0, 8.0)


def plot(parameters: Transformers, rows: Sequence[TrainedRow]) -> "Picture":
    """Draw the four panels."""
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(12, 8.4), layout="constrained")
    axes = picture.subplots(2, 2).ravel()
    for ax, (model, panel) in zip(axes, PANELS.items(), strict=False):
        _draw_curves(ax, model, panel, parameters, rows)
    _draw_thresholds(axes[3], parameters, rows)
    for ax in axes:
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize=8)
    return picture


def _draw_curves(ax: "Axes", model: str, panel: str, parameters: Transformers, rows: Sequence[TrainedRow]) -> None:
    theory = pick(rows, panel, kind="theory")
    if theory:
        marks.line(ax, theory, COLOURS["theory"], label="theory, d → ∞, ridgeless")
    for d, mark in zip(parameters.curves()[model].ds, _MARKS, strict=False):
        errors = pick(rows, panel, kind="training", measured="icl", d=d)
        marks.line(ax, errors, COLOURS[model], width=0.7)
        marks.points(ax, errors, COLOURS[model], mark, hollow=mark != "o", label=f"ICL error, d = {d}")
        marks.line(
            ax,
            pick(rows, panel, kind="training", measured="train", d=d),
            COLOURS[model],
            "--" if mark == "o" else ":",
            label=f"training error, d = {d}",
        )
    ax.axvline(1.0, color="0.6", lw=0.8)
    ax.set(xscale="log", ylim=(0, _TOP if theory else None), xlabel=r"$\tau = n/d^2$", ylabel="error")
    taus = parameters.curves()[model].taus
    ticks = [tau for tau in _TICKS if min(taus) <= tau <= max(taus)]
    ax.set_xticks(ticks, [f"{tau:g}" for tau in ticks])
    ax.minorticks_off()
    ax.set_title(f"{panel}   {TITLES[model]}", loc="left")


def _draw_thresholds(ax: "Axes", parameters: Transformers, rows: Sequence[TrainedRow]) -> None:
    every: list[int] = []
    for (model, search), mark in zip(parameters.searches().items(), _MARKS, strict=False):
        (exponent,) = pick(rows, "D", model=model, measured="exponent")
        (prefactor,) = pick(rows, "D", model=model, measured="prefactor")
        label = f"{TITLES[model]}: exponent {exponent.value:.2f} ± {exponent.error:.2f}"
        marks.points(ax, pick(rows, "D", model=model, measured="threshold"), COLOURS[model], mark, label=label)
        ds = np.geomspace(min(search.ds), max(search.ds), 20)
        ax.plot(ds, prefactor.value * ds**exponent.value, color=COLOURS[model], lw=1)
        every += search.ds
    ds = np.geomspace(min(every), max(every), 20)
    ax.plot(ds, ds**2, "--", color="0.5", lw=1, label=r"$d^2$")
    ax.set(xscale="log", yscale="log", xlabel="d", ylabel="interpolation threshold n*")
    ticks = sorted(set(every))
    ax.set_xticks(ticks, [str(d) for d in ticks])
    ax.minorticks_off()
    ax.set_title("D   where the training error leaves zero", loc="left")
