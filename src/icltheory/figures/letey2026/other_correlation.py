"""What a model makes of prompts that are correlated otherwise than those of its training."""

from icltheory.figures.figure import Figure
from icltheory.figures.letey2026.other_correlation_claims import SOURCE, claims
from icltheory.figures.letey2026.other_correlation_data import OtherCorrelation, jobs, rows
from icltheory.figures.letey2026.other_correlation_plot import plot
from icltheory.figures.published import LETEY2026_ALPHA, LETEY2026_KAPPA, LETEY2026_RHO, LETEY2026_TAU

test_correlation = Figure(
    name="letey2026/test-correlation",
    title="Other correlations at test time",
    source=SOURCE,
    about="ICL error of ridgeless linear attention, trained on prompts with correlations exp(-|a-b|/xi) and tested "
    f"on others: another correlation length, another kind of query, or both. tau = {LETEY2026_TAU:g}, alpha = "
    f"{LETEY2026_ALPHA:g}, kappa = {LETEY2026_KAPPA:g}, rho = {LETEY2026_RHO:g}, Gaussian tasks. Each model is "
    "trained once and tested on all. Lines: theory as d goes to infinity. Points: our simulation, mean and standard "
    "error over seeds. Dashed: theory for training on the prompts of the test, which the curves of A and D meet at "
    "their own xi; it is not always the best training.",
    scales={
        "smoke": OtherCorrelation(d=16, seeds=10),
        "default": OtherCorrelation(d=32, seeds=40),
        "paper": OtherCorrelation(d=64, seeds=40),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
