"""A plain picture of theory curves, for `icl curve --plot`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from icltheory.conventions import print_on
from icltheory.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_LABELS = {
    "tau": r"pretraining sequences, $\tau = n/d^2$",
    "alpha": r"context length, $\alpha = l/d$",
    "kappa": r"pretraining tasks, $\kappa = k/d$",
    "rho": r"label-noise variance, $\rho$",
    "ridge": r"ridge, $\lambda$",
}


def plot_curves(table: Table, parameters: Sequence[str]) -> "Picture":
    """Draw ICL (full) and IDG (dashed) error against the parameter with most values, a colour for every other one."""
    from matplotlib.figure import Figure as Canvas

    columns = table.columns
    counts = {name: len(np.unique(columns[name])) for name in parameters}
    across = max(parameters, key=lambda name: counts[name])
    others = [name for name in parameters if name != across and counts[name] > 1]
    picture = Canvas(figsize=(6.4, 4.4), layout="constrained")
    ax = picture.subplots()
    keys = np.column_stack([columns[name] for name in others]) if others else np.zeros((len(columns[across]), 0))
    for i, key in enumerate(np.unique(keys, axis=0)):
        chosen = np.flatnonzero((keys == key).all(axis=1))
        chosen = chosen[np.argsort(columns[across][chosen])]
        label = ", ".join(f"{name} = {value:g}" for name, value in zip(others, key, strict=True))
        for target, style in (("icl", "-"), ("idg", "--")):
            value = np.where(np.isfinite(columns[target]), columns[target], np.nan)[chosen]
            # one colour an entry; the style of the line is told by the axis
            text = (label or None) if target == "icl" else None
            ax.plot(
                columns[across][chosen],
                value,
                style,
                color=f"C{i}",
                marker="." if len(chosen) < 3 else None,
                label=text,
            )
    x = columns[across][np.isfinite(columns[across])]
    if len(x) and x.min() > 0 and x.max() > 30 * x.min():
        ax.set_xscale("log")
    fixed = ", ".join(f"{name} = {columns[name][0]:g}" for name in parameters if counts[name] == 1)
    ax.set(xlabel=_LABELS[across], ylabel="error (ICL full, IDG dashed)", yscale="log", title=fixed)
    ax.grid(alpha=0.25)
    if others:
        ax.legend(frameon=False, fontsize=8)
    print_on(picture)
    return picture
