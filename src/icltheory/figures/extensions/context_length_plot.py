"""Trained models against the context length: the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures import marks
from icltheory.figures.extensions.context_length_data import END, MODELS, PANELS, RHO, STOPPED, TrainedContextLength
from icltheory.figures.trained import COLOURS, TrainedRow, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_TITLES = {END: "trained to the end", STOPPED: "stopped by validation", "rise": "rise to the longest context"}
_MARKS = "oD^"


def plot(parameters: TrainedContextLength, rows: Sequence[TrainedRow]) -> "Picture":
    """Draw the three panels."""
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(14, 4.4), layout="constrained")
    for ax, (what, panel) in zip(picture.subplots(1, 3), PANELS.items(), strict=True):
        rise = what == "rise"
        theory = pick(rows, panel, kind="theory")
        if theory:
            marks.line(ax, theory, "black", label="linear, theory, d → ∞")
        for model, mark in zip(MODELS, _MARKS, strict=True):
            for when in (END, STOPPED) if rise else ("icl",):
                found = pick(rows, panel, kind="training", model=model, measured=when)
                stopped = when == STOPPED
                marks.line(ax, found, COLOURS[model], "--" if stopped else "-", width=0.7)
                label = None if rise else f"{model}, d = {parameters.d}"
                marks.points(ax, found, COLOURS[model], mark, hollow=stopped, label=label)
        ax.axhline(0.0 if rise else 1.0 + RHO, color="0.6", lw=0.8, ls="-" if rise else ":")
        label = "error at the longest − error" if rise else "ICL error"
        ax.set(xscale="log", xlabel=r"$\alpha = l/d$", ylabel=label)
        ax.set_xticks(parameters.alphas, [f"{alpha:g}" for alpha in parameters.alphas])
        ax.minorticks_off()
        ax.set_title(f"{panel}   {_TITLES[what]}", loc="left")
        if rise:
            ax.plot([], [], "-ok", lw=0.7, ms=5, label="trained to the end")
            ax.plot([], [], "--ok", lw=0.7, ms=5, mfc="white", label="stopped by validation")
            ax.margins(y=0.2)
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    return picture
