"""One-pass (online) training of linear attention: an extension of Lu et al. 2025."""

from icltheory.figures.extensions.online_claims import claims
from icltheory.figures.extensions.online_data import ALPHA, RHO, Online, jobs
from icltheory.figures.extensions.online_plot import plot
from icltheory.figures.extensions.online_rows import rows
from icltheory.figures.figure import Figure

online = Figure(
    name="extensions/online",
    title="Training in one pass: step size, stability and what a second look is worth",
    source="this project, after the model of Lu et al., PNAS 122(28), 2025 (arXiv:2405.11751)",
    about="Error of linear attention while stochastic gradient descent trains it from zero on sequences seen once, one "
    "a step: Gamma += (eta/d) (y - <Gamma, H>) H. Time t counts sequences over d², the tau of a fit to the same data; "
    f"alpha = {ALPHA:g} examples/d, label-noise variance rho = {RHO:g}, kappa = tasks/d. Lines: theory at the "
    "dimension of the simulation, and (dotted) as d goes to infinity. Points: our simulation, mean and standard error. "
    "A, B, C: learning curves. D: error against the step size. E: one pass against fits, a fresh task for every "
    "sequence. F: a decreasing step size.",
    scales={
        "smoke": Online(d=32, seeds=5, compared_seeds=20, fit_d=20, fit_seeds=16),
        "default": Online(d=100, seeds=6, compared_seeds=6, fit_d=50, fit_seeds=6),
        "paper": Online(d=200, seeds=10, compared_seeds=10, fit_d=100, fit_seeds=10),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
