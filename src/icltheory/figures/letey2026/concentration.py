"""Where correlations are too strong for the theory: the concentration figure of Letey et al. 2026."""

from icltheory.figures.figure import Figure
from icltheory.figures.letey2026.concentration_claims import claims
from icltheory.figures.letey2026.concentration_data import ALPHA, KAPPA, RHO, TAU, Concentration, jobs, rows
from icltheory.figures.letey2026.concentration_plot import plot
from icltheory.figures.published import LETEY2026

concentration = Figure(
    name="letey2026/concentration",
    title="Weak and strong correlations",
    source=f"{LETEY2026}, its concentration figure; the limit at fixed xi/l is this project's",
    about="Ridgeless linear attention on prompts with correlations exp(-|a-b|/xi) (above) and (1+|a-b|)^(-gamma) "
    f"(below), at alpha = {ALPHA:g}, kappa = {KAPPA:g}, tau = {TAU:g}, rho = {RHO:g}, Gaussian tasks. Left: the "
    "standard deviation over seeds of trd Gamma, over its mean. Middle and right: ICL error with an independent "
    "query and with the next token. Theory takes k0, k1 and k2 to be of order 1. It is right to the left of xi = l "
    "(to the right of gamma = 1/2), up to 1/d, and wrong beyond, where a prompt's own statistics do not "
    "concentrate. Points: our simulation, mean and standard error over seeds. Triangles: the error of the fitted "
    "Gamma by the formula for either regime.",
    scales={
        "smoke": Concentration(sizes=(8, 16), seeds=(12, 7)),
        "default": Concentration(sizes=(16, 32, 64), seeds=(60, 30, 12)),
        "paper": Concentration(sizes=(16, 32, 64, 128), seeds=(400, 200, 100, 24)),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
