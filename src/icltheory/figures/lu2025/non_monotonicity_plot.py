"""Where a best context length exists (Lu et al. 2025, Fig. 3): the picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from icltheory.figures.lu2025.non_monotonicity_claims import ERRORS
from icltheory.figures.lu2025.non_monotonicity_data import KAPPA, MAPS, RHO, Map, MapRow, NonMonotonicity, axes, checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure as Picture

_SHOWN = (0.3, 1000.0)  # context lengths that the colours tell apart


def plot(parameters: NonMonotonicity, rows: Sequence[MapRow]) -> "Picture":
    """Draw the three maps."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    picture = Canvas(figsize=(13, 4.9), layout="constrained")
    panels = picture.subplots(1, 3, sharey=True)
    for ax, panel in zip(panels, MAPS, strict=True):
        mesh = _draw(ax, parameters, panel, rows)
    bar = picture.colorbar(mesh, ax=panels, extend="both", pad=0.01)
    bar.set_label(r"context length at the minimum, $\alpha^\star = l/d$")
    panels[0].set_ylabel(r"label-noise variance, $\rho$")
    marks = [
        Patch(color="0.82", label="no minimum"),
        Line2D([], [], color="black", lw=1.4, label="boundary of the minima"),
        Line2D([], [], color="black", lw=1, ls="--", label=r"$\kappa = \min(\tau, 1)$"),
        Line2D([], [], color="black", marker="o", ms=9, mfc="white", ls="", label="simulated: minimum"),
        Line2D([], [], color="black", marker="X", ms=9, mfc="white", ls="", label="none"),
        Line2D([], [], color="black", marker="$?$", ms=9, mfc="white", ls="", label="cannot tell"),
    ]
    picture.legend(handles=marks, loc="outside upper center", ncols=6, frameon=False)
    return picture


def _draw(ax: "Axes", parameters: NonMonotonicity, panel: Map, rows: Sequence[MapRow]) -> "QuadMesh":
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    mine = [row for row in rows if row.panel == panel.name]
    kappa, rho = axes(parameters)
    best = np.array([np.nan if row.alpha is None else row.alpha for row in mine if row.part == "map"])
    colours = colormaps["viridis"].with_extremes(bad="0.82")
    mesh = ax.pcolormesh(
        kappa,
        rho,
        np.ma.masked_invalid(best.reshape(len(rho), len(kappa))),
        norm=LogNorm(*_SHOWN),
        cmap=colours,
        shading="nearest",
        rasterized=True,
    )
    edge = [row for row in mine if row.part == "edge"]
    for few in (True, False):  # the lower and the upper boundary
        part = [row for row in edge if (row.kappa < min(panel.tau, 1.0)) == few]
        ax.plot([row.kappa for row in part], [row.rho for row in part], color="black", lw=1.4)
    ax.axvline(min(panel.tau, 1.0), color="black", lw=1, ls="--")
    for cell in checks(rows, panel.name):
        clear = cell.fall > ERRORS and abs(cell.rise) > ERRORS
        marker = ("o" if cell.rise > 0 else "X") if clear else "$?$"
        ax.plot(cell.kappa, cell.rho, marker=marker, ms=9, color="black", mfc="white", zorder=4)
    kind = "fresh tasks (ICL)" if panel.target == "icl" else "pretraining tasks (IDG)"
    ax.set_title(rf"{panel.name}   {kind}, $\tau$ = {panel.tau:g}", loc="left")
    ax.set(xlabel=r"pretraining tasks, $\kappa = k/d$", xlim=KAPPA, ylim=RHO)
    return mesh
