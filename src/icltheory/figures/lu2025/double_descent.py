"""Double descent in the number of pretraining sequences: Fig. 1 of Lu et al. 2025."""

from icltheory.figures.figure import Figure
from icltheory.figures.lu2025.double_descent_claims import claims
from icltheory.figures.lu2025.double_descent_data import KAPPA, RHO, DoubleDescent, jobs, rows
from icltheory.figures.lu2025.double_descent_plot import plot
from icltheory.figures.published import LU2025

double_descent = Figure(
    name="lu2025/double-descent",
    title="Double descent in the number of pretraining sequences",
    source=f"{LU2025}, Fig. 1; panel D is an extension",
    about=f"Error of linear attention against tau = n/d² at kappa = {KAPPA:g} tasks/d (panel C: a fresh task for every "
    f"sequence) and label-noise variance rho = {RHO:g}. Lines: theory as d goes to infinity. Points: our simulation, "
    "mean and standard error over seeds (panel D: median and its standard error). Crosses: published means of 10 runs. "
    "With tokens x ~ N(0, I/d) and |w|² = d the signal has variance 1; the penalty is (n/d) lambda |Gamma|²; every "
    "task has equally many sequences, as in the published runs.",
    scales={
        "smoke": DoubleDescent(d=40, seeds=6, ridge_seeds=4, peak_d=14, peak_seeds=60, published_tau=(0.2,)),
        "default": DoubleDescent(d=100, seeds=5, ridge_seeds=3, peak_d=30, peak_seeds=60, published_tau=()),
        "paper": DoubleDescent(d=100, seeds=10, ridge_seeds=10, peak_d=40, peak_seeds=200, published_tau=()),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
