"""Repeat a published 73-minute run: the gap between ICL and IDG error against the number of tasks.

python benchmarks/gap.py        12 values of kappa x 20 seeds at d = 64, alpha = tau = 10, on all cores
"""

import math
import time

import numpy as np

import icltheory as icl
from icltheory.progress import progress
from icltheory.simulate.batch import Job, cores, run_all

D, SEEDS, PUBLISHED_RUNS = 64, 20, 20
# kappa: (published mean of g, its standard deviation over 20 runs), Lu et al. 2025 (arXiv:2405.11751)
PUBLISHED = {
    0.2: (0.9259, 0.016),
    0.4: (0.6823, 0.0087),
    0.6: (0.4730, 0.0066),
    0.8: (0.2974, 0.0063),
    1.0: (0.1757, 0.0066),
    1.2: (0.1102, 0.0047),
    1.6: (0.0527, 0.0024),
    2.0: (0.0317, 0.0017),
    4.0: (0.00942, 0.00068),
    8.0: (0.00378, 0.00048),
    16.0: (0.00173, 0.0005),
    32.0: (0.00082, 0.00048),
}


def point(kappa: float) -> icl.Point:
    """Return the published integers: k rounded down, n a multiple of k."""
    k = math.floor(kappa * D)
    n = round(10 * D**2 / k) * k
    return icl.Point.of(d=D, n_sequences=n, alpha=10, n_tasks=k, rho=0.01, ridge=1e-6)


def main() -> None:
    points = [point(kappa) for kappa in PUBLISHED]
    jobs = [Job(point=p, assignment="balanced", repetition=i) for p in points for i in range(SEEDS)]
    started = time.perf_counter()
    with progress("gap", len(jobs)) as advance:
        outcomes = run_all(jobs, workers=cores(), advance=advance)
    seconds = time.perf_counter() - started
    print(f"{len(jobs)} runs at d = {D} in {seconds:.0f} s on {cores()} cores; g = ICL - IDG error")
    print("kappa  k     n      g (ours)            g (published)       difference/s.e.  theory")
    for i, (kappa, (theirs, spread)) in enumerate(PUBLISHED.items()):
        ours = np.array([o.icl - o.idg for o in outcomes[i * SEEDS : (i + 1) * SEEDS]])
        error = math.hypot(ours.std(ddof=1) / math.sqrt(SEEDS), spread / math.sqrt(PUBLISHED_RUNS))
        law = float(icl.theory.linear_attention(**points[i].ratios()).gap)
        size = f"{kappa:<6g} {points[i].n_tasks:<5} {points[i].n_sequences:<6}"
        measured = f"{ours.mean():.5f} +- {ours.std(ddof=1):.5f}  {theirs:.5f} +- {spread:.5f}"
        print(f"{size} {measured}  {(ours.mean() - theirs) / error:+.2f}            {law:.5f}")


if __name__ == "__main__":
    main()
