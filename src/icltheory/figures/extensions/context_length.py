"""Whether an optimal context length is peculiar to linear attention: trained models."""

from icltheory.figures.extensions.context_length_claims import claims
from icltheory.figures.extensions.context_length_data import KAPPA, PATIENCE, RHO, TAU, TrainedContextLength, jobs, rows
from icltheory.figures.extensions.context_length_plot import plot
from icltheory.figures.figure import Figure

context_length = Figure(
    name="extensions/context-length",
    title="Is the optimal context length an artefact of linear attention?",
    source="this project; the question is that of Lu et al.'s outlook",
    about="ICL error of trained one-layer models against the context length in units of the dimension, alpha = l/d, "
    f"each trained and tested at its own, at tau = {TAU:g}, kappa = {KAPPA:g}, rho = {RHO:g}, where linear attention "
    "has a best length in theory. A: after all steps. B: at the least validation error (pretraining tasks, fresh "
    f"tokens), training being stopped after {PATIENCE} evaluations without a new one. C: by how much the error at the "
    "longest context exceeds that at alpha, paired by seeds. Mean and standard error over seeds, which share their "
    "tasks. Black: theory of ridgeless linear attention as d goes to infinity. Answering 0 has an error of 1 + rho "
    "(dotted).",
    scales={
        "smoke": TrainedContextLength(d=5, alphas=(1.0, 4.0, 16.0), seeds=2, steps=200, learning_rate=0.01),
        "default": TrainedContextLength(
            d=8, alphas=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0), seeds=16, steps=8000, learning_rate=0.01
        ),
        "paper": TrainedContextLength(
            d=20, alphas=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), seeds=20, steps=100_000, learning_rate=0.003
        ),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
    needs="torch",
)
