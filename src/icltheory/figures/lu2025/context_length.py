"""Non-monotone error in the context length: Fig. 2 of Lu et al. 2025."""

from icltheory.figures.figure import Figure
from icltheory.figures.lu2025.context_length_claims import claims
from icltheory.figures.lu2025.context_length_data import ContextLength, jobs, rows
from icltheory.figures.lu2025.context_length_plot import plot
from icltheory.figures.published import LU2025

context_length = Figure(
    name="lu2025/context-length",
    title="Longer contexts can do harm",
    source=f"{LU2025}, Fig. 2; the minima and the growth rate are derived here",
    about="Error of linear attention, trained and tested at the same context length l = alpha d, for several numbers "
    "of pretraining tasks kappa d. Lines: theory as d goes to infinity; white triangles point at its minima. Points: "
    "our simulation at ridge 1e-8, mean and standard error over seeds. Crosses: published means. With few tasks the "
    "error on fresh tasks has a minimum and then grows without bound; with as many tasks/d as sequences/d² it grows "
    "like a square root (tau = .5: even on the pretraining tasks).",
    scales={
        "smoke": ContextLength(dimensions=(30, 20, 20), seeds=(10, 6, 16)),
        "default": ContextLength(dimensions=(100, 40, 60), seeds=(5, 6, 8)),
        "paper": ContextLength(dimensions=(100, 100, 100), seeds=(10, 10, 10)),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
