"""The finite-size theory against simulation, at random settings.

python benchmarks/finite_size.py simulate FILE      draw until standard errors are 0.5 % (resumes; some 15 CPU minutes)
python benchmarks/finite_size.py correlated FILE    only the settings with correlated tokens (some 3 CPU minutes)
python benchmarks/finite_size.py compare FILE       the tables of deviations, beside those of the asymptotic theory
"""

import json
import math
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import icltheory as icl
from icltheory.simulate.batch import Job, cores, run_all

SETTINGS, NEAR_PEAK, CORRELATED = 80, 20, 40
WANTED = 0.005  # relative standard error
LEAST, MOST, STEP = 8, 400, 8
MOST_CORRELATED = 120
TARGETS = ("icl", "idg", "train")


def settings(count: int, near: bool) -> list[Job]:
    """Return random settings: d 24-100, alpha .3-10, kappa .2-inf, tau .2-8, rho .01-.5, ridge 1e-6-1.

    Either more than 10 % away from the peak at n = d(d+1), or within it.
    """
    rng = np.random.default_rng([20261201, near] if near else 20261201)
    jobs: list[Job] = []
    while len(jobs) < count:
        d = int(rng.integers(24, 101))
        kappa = math.inf if rng.random() < 0.15 else log_uniform(rng, 0.2, 10)
        point = icl.Point.of(
            d=d,
            tau=rng.uniform(0.9, 1.1) * (1 + 1 / d) if near else log_uniform(rng, 0.2, 8),
            alpha=log_uniform(rng, 0.3, 10),
            kappa=kappa,
            rho=log_uniform(rng, 0.01, 0.5),
            ridge=log_uniform(rng, 1e-6, 1),
        )
        law, assignment = rng.choice(["sphere", "gaussian"]), rng.choice(["random", "balanced"])
        if (abs(point.n_sequences / point.n_parameters - 1) <= 0.1) == near:
            jobs.append(Job(point=point, tasks=str(law), assignment=str(assignment)))  # type: ignore[arg-type]
    return jobs


def correlated(count: int) -> list[Job]:
    """Return random settings with correlated tokens: d 16-48, l/d .7-8, kappa .3-inf, tau .2-5.

    Exponential kernels with xi from 1 to l/8, and power laws with gamma from .7 to 2; at least 10 % off the peak.
    """
    rng = np.random.default_rng([20261201, 2])
    jobs: list[Job] = []
    while len(jobs) < count:
        point = icl.Point.of(
            d=int(rng.integers(16, 49)),
            tau=log_uniform(rng, 0.2, 5),
            alpha=log_uniform(rng, 0.7, 8),
            kappa=math.inf if rng.random() < 0.15 else log_uniform(rng, 0.3, 10),
            rho=log_uniform(rng, 0.01, 0.5),
            ridge=log_uniform(rng, 1e-6, 1),
        )
        length = point.context_length
        if rng.random() < 0.6:
            kernel = icl.Kernel.exponential(round(log_uniform(rng, 1, max(length / 8, 1.5)), 1), length)
        else:
            kernel = icl.Kernel.power_law(round(rng.uniform(0.7, 2), 1), length)
        law, assignment = rng.choice(["sphere", "gaussian"]), rng.choice(["random", "balanced"])
        if abs(point.n_sequences / point.n_parameters - 1) > 0.1:
            jobs.append(Job(point=point, tasks=str(law), assignment=str(assignment), kernel=kernel))  # type: ignore[arg-type]
    return jobs


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def all_settings() -> list[Job]:
    return settings(SETTINGS, near=False) + settings(NEAR_PEAK, near=True) + correlated(CORRELATED)


def simulate(path: Path, first: int = 0) -> None:
    """Append a line for each repetition until every setting is known well enough."""
    for i, job in list(enumerate(all_settings()))[first:]:
        most = MOST if i < SETTINGS else 5 * LEAST  # near the peak no number of seeds would do
        most = MOST_CORRELATED if job.kernel else most
        while True:
            seen = values(path).get(i, np.empty((0, len(TARGETS))))
            if len(seen) >= LEAST and (len(seen) >= most or np.all(relative_error(seen)[:2] < WANTED)):
                break
            batch = [replace(job, repetition=len(seen) + j) for j in range(STEP)]
            outcomes = run_all(batch, workers=cores())
            with path.open("a") as file:
                for o in outcomes:
                    file.write(json.dumps({"setting": i, **{name: getattr(o, name) for name in TARGETS}}) + "\n")
        print(i, job.point, job.tasks, job.assignment, len(seen), seen.mean(0), relative_error(seen), flush=True)


def values(path: Path) -> dict[int, np.ndarray]:
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    groups: dict[int, list[list[float]]] = {}
    for line in lines:
        groups.setdefault(line["setting"], []).append([line[name] for name in TARGETS])
    return {i: np.array(group) for i, group in groups.items()}


def relative_error(seen: np.ndarray) -> np.ndarray:
    return np.asarray(seen.std(axis=0, ddof=1) / np.sqrt(len(seen)) / seen.mean(axis=0))


def compare(path: Path) -> None:
    """Print every setting and the quantiles."""
    warnings.simplefilter("ignore", icl.theory.CorrelationWarning)  # short contexts, of which few are weak
    jobs, seen = all_settings(), values(path)
    kinds = ("finite size", "asymptotic")
    deviation = np.full((2, len(jobs), 3), np.nan)
    errors = np.full((len(jobs), 3), np.nan)
    seconds = 0.0
    print(
        "   d  alpha  kappa   tau   rho    ridge    tasks    assignment  ICL +- s.e.      finite   asympt.  IDG", end=""
    )
    print(" +- s.e.      finite   asympt.")
    for i, job in enumerate(jobs):
        if i not in seen:
            continue
        p, mean, errors[i] = job.point, seen[i].mean(axis=0), relative_error(seen[i])
        started = time.process_time()
        ours = icl.theory.finite_size(
            d=p.d,
            n_sequences=p.n_sequences,
            context_length=p.context_length,
            n_tasks=p.n_tasks,
            rho=p.rho,
            ridge=p.ridge,
            tasks=job.tasks,
            kernel=job.kernel,
        )
        seconds += time.process_time() - started
        for j, law in enumerate((ours, icl.theory.linear_attention(**p.ratios(), kernel=job.kernel))):
            deviation[j, i] = [float(getattr(law, name)) / mean[t] - 1 for t, name in enumerate(TARGETS)]
        if i == SETTINGS:
            print("Within 10 % of the peak:")
        if i == SETTINGS + NEAR_PEAK:
            print("Correlated tokens, off the peak:")
        line = f"{p.d:4d} {p.alpha:6.2f} {p.kappa:6.2f} {p.tau:6.2f} {p.rho:5.2f} {p.ridge:9.1e}"
        line += f"  {job.tasks:8} {job.assignment:8}"
        for t in (0, 1):
            line += f"  {mean[t]:9.4f} {errors[i, t]:6.1%}  {deviation[0, i, t]:+7.1%} {deviation[1, i, t]:+7.1%}"
        print(line + (f"  {job.kernel.name}" if job.kernel else ""))
    near = SETTINGS + NEAR_PEAK
    groups = {
        "off the peak": slice(0, SETTINGS),
        "within 10 % of it": slice(SETTINGS, near),
        "with correlated tokens": slice(near, None),
    }
    for title, rows in groups.items():
        known = ~np.isnan(errors[rows, 0])
        if not known.any():
            continue
        print(f"\n|deviation| over {known.sum()} settings {title}: median, 95th percentile, largest")
        for t, name in enumerate(TARGETS):
            median_error = np.median(errors[rows][known, t])
            print(f"  {name:6} (median standard error {median_error:.1%})", end="")
            for j, kind in enumerate(kinds):
                size = np.abs(deviation[j, rows][known, t])
                cells = f"{np.median(size):.1%} {np.quantile(size, 0.95):.1%} {size.max():.1%}"
                print(f"   {kind}: {cells}", end="")
            print()
    print(f"\nfinite-size theory: {1000 * seconds / len(seen):.1f} ms CPU a point")


if __name__ == "__main__":
    commands = {
        "simulate": simulate,
        "correlated": lambda path: simulate(path, SETTINGS + NEAR_PEAK),
        "compare": compare,
    }
    commands[sys.argv[1]](Path(sys.argv[2]))
