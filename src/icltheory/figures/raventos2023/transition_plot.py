"""The transition of a small decoder: the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures import marks
from icltheory.figures.raventos2023.transition_data import BETWEEN, DMMSE, RIDGE, Transition
from icltheory.figures.trained import TrainedRow, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_COLOURS = {RIDGE: "#0b6e99", DMMSE: "#d1622b", "icl": "#0b6e99", "idg": "#d1622b"}
_NAMES = {RIDGE: "from ridge", DMMSE: "from dMMSE", "icl": "fresh tasks (ICL)", "idg": "pretraining tasks (IDG)"}


def plot(parameters: Transition, rows: Sequence[TrainedRow]) -> "Picture":
    """Draw the three panels."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(14, 4.4), layout="constrained")
    axes = picture.subplots(1, 3)
    marks.line(axes[0], pick(rows, "A", measured=BETWEEN), "0.6", "--", label="ridge and dMMSE apart")
    for ax, panel, names in ((axes[0], "A", (DMMSE, RIDGE)), (axes[1], "B", ("idg", "icl"))):
        for name in names:
            found = pick(rows, panel, measured=name)
            marks.line(ax, found, _COLOURS[name], width=0.8)
            marks.points(ax, found, _COLOURS[name], label=_NAMES[name])
        ax.set(xscale="log", xlabel="pretraining tasks k")
    axes[0].set(ylabel="mean squared distance on fresh tasks", yscale="log")
    axes[1].set(ylabel="error")
    for i, k in enumerate(parameters.ks):
        found = [row for row in pick(rows, "C", n_tasks=float(k)) if row.x > 0]
        marks.line(axes[2], found, to_hex(colormaps["viridis"](i / len(parameters.ks))), label=f"k = {k}")
    for level, name in ((0.0, "dMMSE"), (1.0, "ridge")):
        axes[2].axhline(level, color="0.6", lw=0.8)
        axes[2].annotate(name, (1.0, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="0.4")
    axes[2].set(xlabel="training steps", ylabel="position on fresh tasks", ylim=(-0.7, 1.7))
    for ax, title in zip(axes, ("A   distances", "B   errors", "C   along training"), strict=True):
        ax.set_title(title, loc="left")
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    return picture
