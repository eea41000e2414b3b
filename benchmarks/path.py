"""The price of ten ridges from one space against that of one fit, in CPU seconds.

OPENBLAS_NUM_THREADS=1 python benchmarks/path.py
"""

import time

import numpy as np

import icltheory as icl
from icltheory.prompts import sample_summaries

RIDGES = np.geomspace(1e-6, 10, 10)
POINTS = (
    (64, 1.5, 1.0, 1.0),
    (100, 1.5, 1.0, 1.0),
    (100, 2.0, 1.0, 1.0),
    (100, 4.0, 1.0, 1.0),
    (100, 1.5, 10.0, 0.5),
    (100, 0.5, 1.0, 1.0),
    (100, 0.5, 10.0, 0.5),
)


def main() -> None:
    print("d    tau  alpha kappa  one fit (s, steps)  ten ridges (s, steps of each)                    ratio  residual")
    for d, tau, alpha, kappa in POINTS:
        point = icl.Point.of(d=d, tau=tau, alpha=alpha, kappa=kappa, rho=0.01)
        data = sample_summaries(point, "sphere", np.random.default_rng(0))
        penalties = [point.n_sequences / d * float(ridge) for ridge in RIDGES]
        started = time.process_time()
        _, one = icl.simulate.ridge_regression(data.query, data.context, data.target, penalties[0])
        single = time.process_time() - started
        started = time.process_time()
        path = icl.simulate.ridge_path(data.query, data.context, data.target, penalties)
        ten = time.process_time() - started
        steps = " ".join(str(report.steps) for _, report in path)
        worst = max(report.residual for _, report in path)
        print(
            f"{d:<4} {tau:<4g} {alpha:<5g} {kappa:<5g}  {single:6.2f}  {one.steps:<9}  {ten:6.2f}  {steps:<40} "
            f"{ten / single:5.2f}  {worst:.0e}"
        )


if __name__ == "__main__":
    main()
