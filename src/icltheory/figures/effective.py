"""What a correlated context is worth, in a picture, for `icl effective-length --plot`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from icltheory.conventions import print_on
from icltheory.prompts.kernels import Kernel
from icltheory.tables import Table
from icltheory.theory import linear_attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


def plot_worth(
    table: Table, kernels: Mapping[str, Kernel], d: int, tau: float, kappa: float, rho: float, ridge: float
) -> "Picture":
    """Draw correlations, and errors beside the curve of independent tokens, with arrows to what a context is worth."""
    from matplotlib.figure import Figure as Canvas

    picture = Canvas(figsize=(10, 4.4), layout="constrained")
    left, right = picture.subplots(1, 2)
    rows = table.rows()
    length = next(iter(kernels.values())).context_length
    shortest = min(row["effective_length"] for row in rows)
    span = np.unique(np.round(np.geomspace(max(1.0, 0.7 * shortest), 1.4 * length, 80)))
    curve = linear_attention(d=d, tau=tau, kappa=kappa, rho=rho, ridge=ridge, context_length=span)
    right.plot(span, curve.icl, color="0.3", lw=1.4, label="independent tokens")
    for i, (row, kernel) in enumerate(zip(rows, kernels.values(), strict=True)):
        colour, worth = f"C{i}", row["effective_length"]
        shown = np.arange(min(kernel.context_length, 1 + int(np.ceil(4 * length / worth)) + 8))
        first = np.zeros(kernel.context_length)
        first[0] = 1.0
        left.plot(shown, kernel.correlations.times(first)[: len(shown)], ".-", color=colour, lw=1, label=row["kernel"])
        right.annotate("", (worth, row["icl"]), (length, row["icl"]), arrowprops={"arrowstyle": "->", "color": colour})
        right.errorbar(worth, row["icl"], xerr=row["effective_length_se"], fmt="o", color=colour, ms=5, capsize=2)
        doubt = "" if row["regime"] == "weak" else f" ({row['regime']} correlations)"
        right.plot(length, row["icl"], "s", color=colour, ms=5, label=f"{row['kernel']}: worth {worth:.3g}{doubt}")
        if np.isfinite(row["icl_next"]):
            right.plot(length, row["icl_next"], "s", mfc="none", color=colour, ms=5)
    left.axhline(0.0, color="0.7", lw=0.8)
    left.set(xlabel="distance between tokens, $j$", ylabel="correlation, $K_{a,a+j}$", title="tokens")
    left.legend(frameon=False, fontsize=8)
    right.set(
        xlabel="context length, $l$ (arrows: to the effective length)",
        ylabel="ICL error (hollow: the query is the next token)",
        xscale="log",
        title=f"tau = {tau:g}, kappa = {kappa:g}, rho = {rho:g}, d = {d}",
    )
    right.legend(frameon=False, fontsize=8)
    for ax in (left, right):
        ax.grid(alpha=0.25)
    print_on(picture)
    return picture
