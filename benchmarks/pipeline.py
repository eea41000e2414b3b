"""Time a whole simulation (draws, fit, both errors) against one with materialised features, in one run.

python benchmarks/pipeline.py            d = 80, tau = 1.5, alpha = kappa = 1
python benchmarks/pipeline.py --d 100    needs about 3 GB for the dense side

`engine.py` beside it times the fit alone, against more methods and at more sizes.
"""

import argparse
import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import icltheory as icl
from icltheory.prompts import moments_of_law, moments_of_tasks, sample_summaries
from icltheory.resources import Blas
from icltheory.simulate import exact_error


def dense(point: icl.Point, seed: int) -> tuple[float, float]:
    """Simulate the same point with F and F^T F in memory, as published code does; the sampler is shared."""
    data = sample_summaries(point, "sphere", np.random.default_rng(seed))
    features = (data.query[:, :, None] * data.context[:, None, :]).reshape(point.n_sequences, -1)
    gram = features.T @ features
    gram[np.diag_indices_from(gram)] += point.n_sequences / point.d * point.ridge
    gamma = cho_solve(cho_factor(gram), features.T @ data.target).reshape(point.d, point.d + 1)
    assert data.tasks is not None
    tests = moments_of_law("sphere", point.d), moments_of_tasks(data.tasks)
    first, second = (exact_error(gamma, tasks, point.context_length, point.rho) for tasks in tests)
    return first, second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--d", type=int, default=80)
    parser.add_argument("--tau", type=float, default=1.5)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    point = icl.Point.of(d=options.d, tau=options.tau, alpha=1.0, kappa=1.0, rho=0.01, ridge=1e-6)
    print(f"{point}, {Blas().threads} BLAS threads")
    fast_cpu, fast_wall = [], []
    for _ in range(options.repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        sim = icl.simulate.linear_attention(d=point.d, **point.ratios(), rng=0)
        fast_cpu.append(time.process_time() - cpu)
        fast_wall.append(time.perf_counter() - wall)
    print(f"icltheory  CPU {min(fast_cpu):7.3f} s  wall {min(fast_wall):7.3f} s  icl {sim.icl:.10f}  {sim.solver}")
    cpu, wall = time.process_time(), time.perf_counter()
    reference, _ = dense(point, 0)
    dense_cpu, dense_wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"dense      CPU {dense_cpu:7.3f} s  wall {dense_wall:7.3f} s  icl {reference:.10f}")
    print(
        f"ratio      CPU {dense_cpu / np.median(fast_cpu):7.1f}    wall {dense_wall / np.median(fast_wall):7.1f}    "
        f"relative difference {abs(sim.icl / reference - 1):.1e}"
    )


if __name__ == "__main__":
    main()
