"""The command `icl simulate`."""

import itertools
import math
from typing import Any, Literal

import numpy as np

from icltheory.cli.arguments import OptionalFloat, OptionalInt, OptionalPath, Values, check_counts, processes
from icltheory.cli.output import Format, emit
from icltheory.points import Floats, Point, Risk
from icltheory.tables import Table


def simulate(
    d: int = 50,
    tau: Values = (1.5,),
    alpha: Values = (1.0,),
    kappa: Values = (0.5,),
    rho: Values = (0.01,),
    ridge: Values = (1e-6,),
    tasks: Literal["sphere", "gaussian"] = "sphere",
    assignment: Literal["random", "balanced"] = "random",
    task_power: OptionalFloat = None,
    test_context_length: OptionalInt = None,
    xi: OptionalFloat = None,
    gamma: OptionalFloat = None,
    query: Literal["independent", "next"] = "independent",
    seeds: int = 5,
    seed: int = 0,
    workers: OptionalInt = None,
    format: Format = "table",
    out: OptionalPath = None,
) -> None:
    """Simulate linear attention at finite d, with standard errors over seeds and the theory beside it.

    Example: icl simulate --d 100 --tau 0.5,1.5 --alpha 1 --kappa 1 --seeds 10

    Args:
        d: Token dimension.
        tau: Pretraining sequences / d^2, rounded to a number of sequences.
        alpha: Context length / d, rounded to a length.
        kappa: Pretraining tasks / d, rounded to a number of tasks; inf means a fresh task for every sequence.
        rho: Label-noise variance (the signal variance is 1).
        ridge: Penalty lambda, multiplied by n/d in the objective; 0 is ridgeless.
        tasks: Law of the tasks.
        assignment: Each sequence's task is chosen at random, or all tasks have equally many sequences.
        task_power: Give the tasks, which must be gaussian, a covariance whose eigenvalues fall like i^-POWER.
        test_context_length: Examples in a test prompt; by default as many as in pretraining.
        xi: Correlate the tokens of a prompt like exp(-distance/XI), in training and in the tests.
        gamma: Or like (1 + distance)^-GAMMA.
        query: With correlated tokens, the query is independent of them, or the next one.
        seeds: Independent repetitions of every point.
        seed: Root of all random streams.
        workers: Processes; by default one a core.
        format: Table for people, or CSV or JSON.
        out: Write the table there instead of to standard output.
    """
    from icltheory.progress import progress
    from icltheory.prompts.covariance import power_law
    from icltheory.simulate.batch import Job, run_all

    check_counts(seed, seeds=seeds, workers=processes(workers))
    points = [
        Point.of(d=d, tau=t, alpha=a, kappa=k, rho=r, ridge=penalty)
        for t, a, k, r, penalty in itertools.product(tau, alpha, kappa, rho, ridge)
    ]
    if task_power is not None and tasks != "gaussian":
        raise ValueError(f"--task-power needs --tasks gaussian, got --tasks {tasks}, an isotropic law")
    if xi is not None and gamma is not None:
        raise ValueError("give --xi or --gamma, not both")
    spectrum = None if task_power is None else power_law(d, task_power)
    jobs = [
        Job(
            point=point,
            tasks=tasks,
            assignment=assignment,
            task_covariance=None if spectrum is None else tuple(spectrum.tolist()),
            test_context_length=test_context_length,
            kernel=_kernel(point.context_length, xi, gamma),
            query=query,
            seed=seed,
            repetition=i,
        )
        for point in points
        for i in range(seeds)
    ]
    with progress("simulate", len(jobs)) as advance:
        outcomes = run_all(jobs, workers=processes(workers), advance=advance)
    described = "" if task_power is None else f" of covariance i^-{task_power:g}"
    described += "" if test_context_length is None else f", {test_context_length} examples in a test prompt"
    if xi is not None or gamma is not None:
        decay = f"(1 + distance)^-{gamma:g}" if xi is None else f"exp(-distance/{xi:g})"
        described += f", tokens correlated like {decay}, query {query}"
    rows: dict[str, list[Any]] = {}
    for i, point in enumerate(points):
        group = outcomes[i * seeds : (i + 1) * seeds]
        laws = _laws(point, tasks, spectrum, test_context_length, _kernel(point.context_length, xi, gamma), query)
        row: dict[str, Any] = {"n": point.n_sequences, "l": point.context_length, "k": point.n_tasks, **point.ratios()}
        for target in ("icl", "idg", "train"):
            values = np.array([getattr(outcome, target) for outcome in group])
            row[target] = values.mean()
            row[f"{target}_se"] = values.std(ddof=1) / math.sqrt(seeds) if seeds > 1 else math.nan
            row |= {f"{target}_{name}": float(getattr(law, target)) for name, law in laws.items()}
        row["solver"] = "+".join(sorted({outcome.solver for outcome in group}))
        row["steps"] = max(outcome.steps for outcome in group)
        row["residual"] = max(outcome.residual for outcome in group)
        for name, value in row.items():
            rows.setdefault(name, []).append(value)
    emit(
        Table({name: np.array(values) for name, values in rows.items()}),
        format,
        out,
        f"d = {d}, {seeds} seeds, {tasks} tasks{described}; realised sizes and ratios; _se: standard error over seeds; "
        + "; ".join(f"_{name}: theory, {_THEORIES[name]}" for name in laws),
    )


_THEORIES = {"limit": "d -> infinity", "theory": "at this d"}


def _kernel(length: int, xi: float | None, gamma: float | None) -> Any:
    from icltheory.prompts.kernels import Kernel

    if xi is not None:
        return Kernel.exponential(xi, length)
    return None if gamma is None else Kernel.power_law(gamma, length)


def _laws(
    point: Point, tasks: Any, spectrum: Floats | None, test_length: int | None, kernel: Any, query: Any
) -> dict[str, Risk[Floats]]:
    """Return the theories that know this setting, by the names of their columns."""
    from icltheory.theory import finite_size, linear_attention, task_covariance

    if kernel is not None:
        if spectrum is not None:
            return {}
        test = None if test_length is None else kernel.with_length(test_length)
        found: dict[str, Risk[Floats]] = {
            "limit": linear_attention(**point.ratios(), kernel=kernel, query=query, test_kernel=test)
        }
        if query == "independent":
            found["theory"] = finite_size(d=point.d, **point.ratios(), tasks=tasks, kernel=kernel, test_kernel=test)
        return found
    longer = None if test_length is None else test_length / point.d
    train = np.ones(point.d) if spectrum is None else spectrum
    laws: dict[str, Risk[Floats]] = {"limit": task_covariance(**point.ratios(), train=train, test_alpha=longer)}
    if spectrum is None:
        laws["theory"] = finite_size(d=point.d, **point.ratios(), tasks=tasks, test_context_length=test_length)
    return laws
