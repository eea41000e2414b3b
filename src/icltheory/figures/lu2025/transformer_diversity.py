"""Task diversity of trained transformers: Fig. 6 of Lu et al. 2025."""

from icltheory.figures.figure import Figure
from icltheory.figures.lu2025.transformer_diversity_claims import claims
from icltheory.figures.lu2025.transformer_diversity_data import ALPHA, RHO, TAU, TransformerDiversity, jobs, rows
from icltheory.figures.lu2025.transformer_diversity_plot import plot
from icltheory.figures.published import LU2025

KAPPAS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)

transformer_diversity = Figure(
    name="lu2025/transformer-diversity",
    title="From memorising tasks to generalising: two blocks of softmax attention and a dense layer",
    source=f"{LU2025}, Fig. 6; dimensions, optimiser and steps are this project's",
    about="A: the gap g between the ICL error (fresh tasks) and the IDG error (pretraining tasks, fresh tokens) of "
    f"trained transformers of two blocks, against kappa = k/d, at alpha = {ALPHA:g}, tau = {TAU:g}, rho = {RHO:g}. B: "
    "both errors. Mean and standard error over seeds; lines guide the eye. Black: theory of ridgeless linear attention "
    "as d goes to infinity, which is another model.",
    scales={
        "smoke": TransformerDiversity(
            ds=(5,), kappas=(0.4, 2.0, 20.0), seeds=2, steps=300, batch_size=64, learning_rate=0.003
        ),
        "default": TransformerDiversity(
            ds=(10, 20), kappas=KAPPAS, seeds=3, steps=10_000, batch_size=64, learning_rate=0.003
        ),
        "paper": TransformerDiversity(
            ds=(20, 40, 80), kappas=KAPPAS, seeds=5, steps=300_000, batch_size=256, learning_rate=0.001
        ),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
    needs="torch",
)
