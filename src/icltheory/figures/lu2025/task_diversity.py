"""Task diversity, from memorisation to generalisation: Fig. 4 of Lu et al. 2025."""

from icltheory.figures.figure import Figure
from icltheory.figures.lu2025.task_diversity_claims import claims
from icltheory.figures.lu2025.task_diversity_data import TaskDiversity, jobs
from icltheory.figures.lu2025.task_diversity_plot import plot
from icltheory.figures.lu2025.task_diversity_rows import rows
from icltheory.figures.published import LU2025

task_diversity = Figure(
    name="lu2025/task-diversity",
    title="How many tasks it takes to learn to learn",
    source=f"{LU2025}, Fig. 4; theory at finite d and of the nearest task is this project's",
    about="The gap g between the errors on fresh and on pretraining tasks, against the number of tasks k = kappa d. "
    "Linear attention (circles; tasks on the sphere, ridge 1e-8) leaves memorisation at kappa = 1, the more sharply "
    "the longer its contexts, and its gap then falls like 1/kappa. The Bayes estimator that knows the pretraining "
    "tasks (dMMSE, diamonds; side by side where the context length hardly matters) puts its trust in the nearest of "
    "them, and its gap falls only like kappa^(-2/d). Lines: theory at the dimension of the simulation, and (dotted) as "
    "d goes to infinity; for dMMSE the exact distance to the nearest task, its limit for long contexts. Theory at "
    "finite d is left out where d changes g by more than half. Points: our simulation, mean and standard error. "
    "Crosses: published means.",
    scales={
        "smoke": TaskDiversity(
            d=24, seeds=4, far_seeds=4, published_seeds=1, lists=4, prompts=40, transition_d=16, transition_seeds=4
        ),
        "default": TaskDiversity(
            d=50, seeds=8, far_seeds=24, published_seeds=4, lists=16, prompts=64, transition_d=40, transition_seeds=5
        ),
        "paper": TaskDiversity(
            d=100,
            seeds=10,
            far_seeds=20,
            published_seeds=20,
            lists=20,
            prompts=256,
            transition_d=60,
            transition_seeds=10,
        ),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
