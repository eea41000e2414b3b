"""What a query that continues its context is worth: the query gain of Letey et al. 2026."""

from icltheory.figures.figure import Figure
from icltheory.figures.letey2026.query_gain_claims import claims
from icltheory.figures.letey2026.query_gain_data import QueryGain, jobs, rows
from icltheory.figures.letey2026.query_gain_plot import plot
from icltheory.figures.published import LETEY2026, LETEY2026_ALPHA, LETEY2026_KAPPA, LETEY2026_RHO, LETEY2026_TAU

GAMMAS = (0.5, 0.55, 0.6, 0.7, 0.8, 1.0, 1.5)

query_gain = Figure(
    name="letey2026/query-gain",
    title="The gain of a query that continues the context",
    source=f"{LETEY2026}; panels C and F, where the gain is negative, are this project's",
    about="ICL error of ridgeless linear attention with a query that is independent of the context or its next "
    "token, training and test alike, and the difference of the two. A and B: exponential correlations, tau = "
    f"{LETEY2026_TAU:g}, alpha = {LETEY2026_ALPHA:g}, kappa = {LETEY2026_KAPPA:g}, rho = {LETEY2026_RHO:g}; D and E: "
    "few tasks, where the published values are those of theory. C: random points of theory; the dashed line is k1 = "
    "(2 k2 + rho) k0, up to which no gain is negative. F: power-law correlations in a long context, where it is. "
    "Lines: theory as d goes to infinity. Points: our simulation (Gaussian tasks), mean and standard error over "
    "seeds; both queries share their random numbers.",
    scales={
        "smoke": QueryGain(
            d=16, seeds=6, few_d=16, few_seeds=20, long_d=16, long_seeds=18, gammas=(0.5, 0.6, 1.0), grid=150
        ),
        "default": QueryGain(d=32, seeds=40, few_d=64, few_seeds=8, long_d=32, long_seeds=12, gammas=GAMMAS, grid=1500),
        "paper": QueryGain(d=32, seeds=200, few_d=64, few_seeds=50, long_d=64, long_seeds=24, gammas=GAMMAS, grid=5000),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
