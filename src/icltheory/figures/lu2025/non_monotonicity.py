"""Where a best context length exists: Fig. 3 of Lu et al. 2025."""

from icltheory.figures.figure import Figure
from icltheory.figures.lu2025.non_monotonicity_claims import claims
from icltheory.figures.lu2025.non_monotonicity_data import NonMonotonicity, jobs, rows
from icltheory.figures.lu2025.non_monotonicity_plot import plot
from icltheory.figures.published import LU2025

non_monotonicity = Figure(
    name="lu2025/non-monotonicity",
    title="Where a best context length exists",
    source=f"{LU2025}, Fig. 3; map C, the exact boundaries and the simulated cells are extensions",
    about="Ridgeless linear attention, trained and tested at the same context length. Colour: the context length "
    "alpha = l/d of the local minimum of the error among all alpha in (0, infinity); grey: there is none. Black line: "
    "the boundary, by bisection; on it the minimum lies at alpha = infinity. Marks: cells that were simulated at a "
    "short, the predicted and a long context; a circle where the error falls and then rises by more than 4 standard "
    "errors, a cross where it falls twice, a question mark where the simulation cannot tell.",
    scales={
        "smoke": NonMonotonicity(grid=40, edges=8, dimensions=(24, 20, 24), seeds=(14, 6, 14)),
        "default": NonMonotonicity(grid=120, edges=25, dimensions=(60, 40, 60), seeds=(8, 8, 8)),
        "paper": NonMonotonicity(grid=200, edges=40, dimensions=(100, 100, 100), seeds=(10, 10, 10)),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
