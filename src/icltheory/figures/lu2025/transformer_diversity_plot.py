"""Task diversity of trained transformers (Fig. 6 of Lu et al. 2025): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icltheory.figures import marks
from icltheory.figures.lu2025.transformer_diversity_data import ERRORS, GAP, MODEL, TransformerDiversity
from icltheory.figures.trained import COLOURS, TrainedRow, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_MARKS = "oDs"


def plot(parameters: TransformerDiversity, rows: Sequence[TrainedRow]) -> "Picture":
    """Draw the gap, and the two errors."""
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(11, 4.4), layout="constrained")
    gap, errors = picture.subplots(1, 2)
    marks.line(gap, pick(rows, GAP, kind="theory"), "black", label="linear attention, theory, d → ∞")
    for d, mark in zip(parameters.ds, _MARKS, strict=False):
        found = pick(rows, GAP, kind="training", d=d)
        marks.line(gap, found, COLOURS[MODEL], width=0.7)
        marks.points(gap, found, COLOURS[MODEL], mark, hollow=mark != "o", label=f"2 × (softmax + MLP), d = {d}")
        for measured, colour, name in (("icl", "softmax", "fresh tasks"), ("idg", "linear", "pretraining tasks")):
            found = pick(rows, ERRORS, measured=measured, d=d)
            marks.line(errors, found, COLOURS[colour], width=0.7)
            marks.points(errors, found, COLOURS[colour], mark, hollow=mark != "o", label=f"{name}, d = {d}")
    gap.axhline(0.0, color="0.6", lw=0.8)
    for ax, title, label in ((gap, "A   gap", "g = ICL error − IDG error"), (errors, "B   errors", "error")):
        ax.axvline(1.0, color="0.6", lw=0.8)
        ax.set(xscale="log", xlabel=r"$\kappa = k/d$", ylabel=label)
        ax.set_xticks(parameters.kappas, [f"{kappa:g}" for kappa in parameters.kappas])
        ax.minorticks_off()
        ax.set_title(title, loc="left")
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    return picture
