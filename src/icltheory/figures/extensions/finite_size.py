"""The theory at the sizes that people simulate: extension of Lu et al. 2025."""

from icltheory.figures.extensions.finite_size_claims import claims
from icltheory.figures.extensions.finite_size_data import CONTEXT, CURVE, RATE, FiniteSize, jobs, rows
from icltheory.figures.extensions.finite_size_plot import plot
from icltheory.figures.figure import Figure
from icltheory.figures.published import LU2025
from icltheory.points import Ratios


def _words(ratios: Ratios, *without: str) -> str:
    names = {"ridge": "lambda"}
    return ", ".join(f"{names.get(name, name)} = {value:g}" for name, value in ratios.items() if name not in without)


finite_size = Figure(
    name="extensions/finite-size",
    title="A theory that is right at the size one simulates",
    source=f"this project; the limit is that of {LU2025}",
    about="Error of linear attention at finite d. Full lines: finite-size theory, in closed form but for one root, "
    "without random numbers. Dashed: d going to infinity. Points: simulation, mean and standard error over seeds, "
    f"every task with equally many sequences. A, B: {_words(CURVE, 'tau')}. C: ICL error against context length at "
    f"{_words(CONTEXT, 'alpha')}. D: relative distance of simulation (points) and finite-size theory (lines) from "
    f"the limit, at {_words(RATE)}.",
    scales={
        "smoke": FiniteSize(sizes=(16, 32), seeds=12, context_d=16, context_seeds=40, rate_sizes=(10, 20, 40)),
        "default": FiniteSize(
            sizes=(20, 40, 80), seeds=24, context_d=20, context_seeds=120, rate_sizes=(10, 20, 40, 80)
        ),
        "paper": FiniteSize(
            sizes=(20, 40, 100), seeds=100, context_d=20, context_seeds=400, rate_sizes=(10, 20, 40, 80, 160)
        ),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
