"""Double descent and interpolation thresholds of trained transformers: Fig. 5 of Lu et al. 2025."""

from icltheory.figures.figure import Figure
from icltheory.figures.lu2025.transformers_claims import claims
from icltheory.figures.lu2025.transformers_data import RHO, Curve, Search, Transformers, jobs, rows
from icltheory.figures.lu2025.transformers_plot import plot
from icltheory.figures.published import LU2025

TAUS = (0.4, 0.7, 0.9, 1.1, 1.3, 1.7, 2.5, 5.0)
FEWER = (0.4, 0.8, 1.2, 2.0, 4.0, 8.0)

transformers = Figure(
    name="lu2025/transformers",
    title="Trained transformers: double descent, and the interpolation threshold against d",
    source=f"{LU2025}, Fig. 5; dimensions, optimiser and steps are this project's",
    about=f"A to C: ICL error of trained models against tau = n/d^2 at alpha = 1, rho = {RHO:g}, a fresh task for each "
    "sequence, with the training error below (dashed). Lines through the points guide the eye; the black curve is the "
    "theory of ridgeless linear attention as d goes to infinity. D: the number of sequences n* at which the training "
    "error leaves zero (exceeds 0.02 of that of answering 0, after a number of steps in proportion to d^2), against d, "
    "with fitted exponents; the dashed line is d^2. Mean and standard error over seeds.",
    scales={
        "smoke": Transformers(
            linear=Curve(ds=(5,), taus=(0.5, 1.5, 8.0), seeds=2, steps=1500, batch_size=256, learning_rate=0.01),
            softmax=Curve(ds=(5,), taus=(0.5, 8.0), seeds=1, steps=400, batch_size=64, learning_rate=0.01),
            deep=Curve(ds=(5,), taus=(0.5, 8.0), seeds=1, steps=200, batch_size=64, learning_rate=0.003),
            linear_search=Search(ds=(3, 6), seeds=2, resolution=1.2, start=1.3, learning_rate=0.01),
            softmax_search=Search(ds=(3, 5), seeds=2, resolution=1.3, start=2.2, learning_rate=0.01),
        ),
        "default": Transformers(
            linear=Curve(ds=(10, 20), taus=TAUS, seeds=3, steps=10_000, batch_size=256, learning_rate=0.003),
            softmax=Curve(ds=(10, 20), taus=FEWER, seeds=2, steps=10_000, batch_size=64, learning_rate=0.01),
            deep=Curve(ds=(10,), taus=FEWER, seeds=2, steps=8_000, batch_size=64, learning_rate=0.003),
            linear_search=Search(ds=(5, 8, 12, 18), seeds=3, resolution=1.1, start=1.3, learning_rate=0.01),
            softmax_search=Search(ds=(5, 7, 10, 13), seeds=3, resolution=1.1, start=2.0, learning_rate=0.01),
        ),
        "paper": Transformers(
            linear=Curve(ds=(20, 40, 80), taus=TAUS, seeds=10, steps=100_000, batch_size=256, learning_rate=0.001),
            softmax=Curve(ds=(20, 40, 80), taus=TAUS, seeds=5, steps=300_000, batch_size=256, learning_rate=0.001),
            deep=Curve(ds=(20, 40, 80), taus=TAUS, seeds=5, steps=300_000, batch_size=256, learning_rate=0.001),
            linear_search=Search(ds=(10, 20, 40, 80), seeds=5, resolution=1.1, start=1.2, learning_rate=0.003),
            softmax_search=Search(ds=(10, 20, 40, 80), seeds=5, resolution=1.1, start=2.0, learning_rate=0.003),
        ),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
    needs="torch",
)
