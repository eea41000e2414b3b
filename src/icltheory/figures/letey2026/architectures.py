"""Which architectures profit from correlated tokens (Letey et al. 2026)."""

from icltheory.figures.figure import Figure
from icltheory.figures.letey2026.architectures_claims import claims
from icltheory.figures.letey2026.architectures_data import ALPHA, KAPPA, RHO, TAU, Architectures, jobs, rows
from icltheory.figures.letey2026.architectures_plot import plot
from icltheory.figures.published import LETEY2026

architectures = Figure(
    name="letey2026/architectures",
    title="Query gain of trained linear and softmax attention",
    source=f"{LETEY2026}; dimensions, optimiser and steps are this project's",
    about="ICL error of trained one-layer models on tokens with correlations exp(-distance/xi), where the query is "
    "independent of the context (A) or its next token (B), training and test alike, and the gain, their difference "
    f"(C). Fixed data sets at tau = {TAU:g}, alpha = {ALPHA:g}, kappa = {KAPPA:g}, rho = {RHO:g}, Gaussian tasks; "
    "weights chosen by a validation set. All models of a seed see the same prompts. Mean and standard error over "
    "seeds; lines guide the eye. Black: theory of ridgeless linear attention as d goes to infinity, up to xi = l/12.",
    scales={
        "smoke": Architectures(d=5, xis=(0.0, 5.0), seeds=2, steps=150, learning_rate=0.01),
        "default": Architectures(d=16, xis=(0.0, 2.0, 4.0, 8.0), seeds=5, steps=6000, learning_rate=0.003),
        "paper": Architectures(
            d=32, xis=(0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0), seeds=10, steps=20_000, learning_rate=0.001
        ),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
    needs="torch",
)
