"""Correlated tokens are worth fewer independent ones: the effective context length of Letey et al. 2026."""

from icltheory.figures.figure import Figure
from icltheory.figures.letey2026.effective_length_claims import claims
from icltheory.figures.letey2026.effective_length_data import EffectiveLength, jobs, rows
from icltheory.figures.letey2026.effective_length_plot import plot
from icltheory.figures.published import (
    LETEY2026,
    LETEY2026_ALPHA,
    LETEY2026_KAPPA,
    LETEY2026_RHO,
    LETEY2026_TAU,
)

effective_length = Figure(
    name="letey2026/effective-length",
    title="The effective length of a correlated context",
    source=f"{LETEY2026}; classical ridge regression on the same prompts is added here",
    about="ICL error of ridgeless linear attention on prompts whose tokens are correlated with each other (in A and "
    f"B as exp(-|a-b|/xi)) but not with the query; tau = {LETEY2026_TAU:g}, alpha = {LETEY2026_ALPHA:g}, kappa = "
    f"{LETEY2026_KAPPA:g}, rho = {LETEY2026_RHO:g}, Gaussian tasks. Only k2 = tr K²/l matters: the error is that of "
    "l_eff = l (1+rho)/(k2+rho) independent tokens. In C and D four kernels have the same k2: an exponential, a "
    "power law, blocks of l/16 tokens with one correlation (copies of one token at the largest k2), and that of "
    "random vectors. Ridge regression within the prompt, the Bayes estimator of these tasks, tells them apart. "
    "Lines: theory. Points: our simulation, mean and standard error over seeds. Crosses: published means.",
    scales={
        "smoke": EffectiveLength(d=16, seeds=8, kernel_seeds=8, ridge_batches=3),
        "default": EffectiveLength(d=32, seeds=40, kernel_seeds=24, ridge_batches=8),
        "paper": EffectiveLength(d=32, seeds=200, kernel_seeds=100, ridge_batches=50),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
