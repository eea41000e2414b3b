"""Trained architectures on correlated tokens (Letey et al. 2026): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures import marks
from icltheory.figures.letey2026.architectures_data import MODELS, PANELS, Architectures
from icltheory.figures.trained import COLOURS, TrainedRow, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_TITLES = {"independent": "query independent", "next": "query the next token", "gain": "gain, A minus B"}
_MARKS = "Dos^v"


def plot(parameters: Architectures, rows: Sequence[TrainedRow]) -> "Picture":
    """Draw the three panels."""
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(14, 4.4), layout="constrained")
    for ax, (name, panel) in zip(picture.subplots(1, 3), PANELS.items(), strict=True):
        marks.line(ax, pick(rows, panel, kind="theory"), "black", label="theory, d → ∞")
        for model, mark in zip(MODELS, _MARKS, strict=True):
            found = pick(rows, panel, kind="training", model=model)
            marks.line(ax, found, COLOURS[model], width=0.7)
            marks.points(ax, found, COLOURS[model], mark, label=f"{model}, d = {parameters.d}")
        ax.set(xlabel=r"correlation length $\xi$", ylabel="gain" if name == "gain" else "ICL error")
        ax.set_title(f"{panel}   {_TITLES[name]}", loc="left")
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    return picture
