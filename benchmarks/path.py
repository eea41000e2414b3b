"""The price of ten ridges at once against that of one fit, in CPU seconds: the best of some rounds, by turns.

OPENBLAS_NUM_THREADS=1 python benchmarks/path.py
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import icltheory as icl
from icltheory.prompts import sample_summaries

RIDGES = np.geomspace(1e-6, 10, 10)
ROUNDS = 3
POINTS = (
    (64, 1.5, 1.0, 1.0),
    (100, 1.5, 1.0, 1.0),
    (100, 2.0, 1.0, 1.0),
    (100, 4.0, 1.0, 1.0),
    (100, 1.5, 10.0, 1.0),
    (100, 1.5, 10.0, 0.5),
    (100, 4.0, 10.0, 0.5),
    (100, 0.5, 1.0, 1.0),
    (100, 0.5, 10.0, 0.5),
)


def seconds(task: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    answer = task()
    return time.process_time() - started, answer


def main() -> None:
    print("d    tau  alpha kappa  one fit (s, steps)  ten ridges (s, steps of each)                    ratio  residual")
    for d, tau, alpha, kappa in POINTS:
        point = icl.Point.of(d=d, tau=tau, alpha=alpha, kappa=kappa, rho=0.01)
        data = sample_summaries(point, "sphere", np.random.default_rng(0))
        arrays = data.query, data.context, data.target
        penalties = [point.n_sequences / d * float(ridge) for ridge in RIDGES]
        one, ten = float("inf"), float("inf")
        for _ in range(ROUNDS):
            spent, (_, alone) = seconds(lambda: icl.simulate.ridge_regression(*arrays, penalties[0]))  # noqa: B023
            one = min(one, spent)
            spent, path = seconds(lambda: icl.simulate.ridge_path(*arrays, penalties))  # noqa: B023
            ten = min(ten, spent)
        reports = [report for _, report in path]
        shared = all(report.name == "path" for report in reports)
        steps = f"{reports[0].steps}, shared" if shared else " ".join(str(report.steps) for report in reports)
        worst = max(report.residual for report in reports)
        print(
            f"{d:<4} {tau:<4g} {alpha:<5g} {kappa:<5g}  {one:6.2f}  {alone.steps:<9}  {ten:6.2f}  {steps:<40} "
            f"{ten / one:5.2f}  {worst:.0e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
