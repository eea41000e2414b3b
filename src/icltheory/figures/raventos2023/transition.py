"""From memorising to generalising with the number of pretraining tasks: a GPT-2 style decoder."""

from icltheory.figures.figure import Figure
from icltheory.figures.published import RAVENTOS2023
from icltheory.figures.raventos2023.transition_claims import claims
from icltheory.figures.raventos2023.transition_data import Transition, jobs, rows
from icltheory.figures.raventos2023.transition_plot import plot

transition = Figure(
    name="raventos2023/transition",
    title="A small transformer leaves memorisation",
    source=f"{RAVENTOS2023}; sizes and steps are this project's, but at paper scale",
    about="A decoder trained on fresh prompts of k Gaussian tasks, on the loss over all labels. A: mean squared "
    "distance of its prediction for the query from dMMSE and from ridge regression, on fresh tasks, against k; grey: "
    "the distance of these two from each other. B: its errors on fresh and on pretraining tasks. C: position on the "
    "line from dMMSE (0) to ridge (1) along training. Errors over test prompts (one seed), or over seeds; units of the "
    "signal variance.",
    scales={
        "smoke": Transition(
            d=3, context_length=4, noise=0.25, ks=(2, 256), seeds=1, width=16, layers=1, steps=200, batch_size=64
        ),
        "default": Transition(
            d=4,
            context_length=8,
            noise=0.25,
            ks=(4, 16, 64, 256, 1024),
            seeds=1,
            width=64,
            layers=2,
            steps=6000,
            batch_size=64,
        ),
        "paper": Transition(
            d=8,
            context_length=16,
            noise=0.25,
            ks=tuple(2**i for i in range(1, 21)),
            seeds=1,
            width=64,
            layers=4,
            steps=500_000,
            batch_size=256,
        ),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
    needs="torch",
)
