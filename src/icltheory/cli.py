"""The command `icl`: curve, simulate, reproduce, doctor."""

import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from icltheory.points import Floats, Point, Risk, ratios
from icltheory.tables import Table

Format = Literal["table", "csv", "json"]


def parse_values(text: str) -> tuple[float, ...]:
    """Read "1,10,inf", "0.2:2:10" (ten values, linear) or "1:1000:4:log" (four values, geometric).

    Examples
    --------
    >>> parse_values("1:1000:4:log")
    (1.0, 10.0, 100.0, 1000.0)
    """
    values: list[float] = []
    for part in text.split(","):
        pieces = part.split(":")
        try:
            if len(pieces) == 1:
                values.append(float(part))
                continue
            if len(pieces) not in (3, 4) or (len(pieces) == 4 and pieces[3] != "log"):
                raise ValueError
            low, high, count = float(pieces[0]), float(pieces[1]), int(pieces[2])
            if count < 1 or not (math.isfinite(low) and math.isfinite(high)):
                raise ValueError
            if len(pieces) == 4 and not (low > 0 and high > 0):
                raise ValueError
        except ValueError:
            raise ValueError(
                f"cannot read {part!r}: give numbers (0.5 or inf), lists (1,10,100) or ranges START:STOP:COUNT[:log]"
            ) from None
        space = np.geomspace if len(pieces) == 4 else np.linspace
        values.extend(float(f"{value:.12g}") for value in space(low, high, count))
    return tuple(values)


def _show(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


Values = Annotated[
    tuple[float, ...],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="VALUES",
        instance_from_str=lambda words: parse_values(words[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda values: [_show(values)],
    ),
]

OptionalPath = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]
OptionalInt = Annotated[int | None, tyro.conf.arg(metavar="INT")]
OptionalFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]

_TAU = parse_values("0.2:2.4:12")
app = tyro.extras.SubcommandApp()


@app.command
def curve(
    tau: Values = _TAU,
    alpha: Values = (1.0,),
    kappa: Values = (0.5,),
    rho: Values = (0.01,),
    ridge: Values = (0.0,),
    d: OptionalInt = None,
    format: Format = "table",
    out: OptionalPath = None,
    plot: OptionalPath = None,
) -> None:
    """Print the theory of linear attention, as d -> infinity or at a given d, at all combinations of values.

    Values are numbers (0.5, inf), lists (1,10,100) or ranges START:STOP:COUNT[:log].

    Example: icl curve --tau 0.2:3:57 --alpha 1,10,100 --kappa 0.5 --plot curve.png

    Args:
        tau: Pretraining sequences / d^2; inf is allowed.
        alpha: Context length / d.
        kappa: Pretraining tasks / d; inf means a fresh task for every sequence.
        rho: Label-noise variance (the signal variance is 1).
        ridge: Penalty lambda, multiplied by n/d in the objective; 0 is ridgeless.
        d: Token dimension: ratios are rounded to sizes, and the finite-size theory is evaluated there.
        format: Table for people, or CSV or JSON.
        out: Write the table there instead of to standard output.
        plot: Draw ICL (full) and IDG (dashed) error to this PNG, PDF or SVG file, against the longest list.
    """
    from icltheory.theory import finite_size, linear_attention

    t, a, k, r, penalty = np.array(list(itertools.product(tau, alpha, kappa, rho, ridge))).T
    if d is None:
        law, where = linear_attention(tau=t, alpha=a, kappa=k, rho=r, ridge=penalty), "d -> infinity"
    else:
        law, where = finite_size(d=d, tau=t, alpha=a, kappa=k, rho=r, ridge=penalty), f"d = {d}, realised ratios"
        t, a, k = ratios(d=d, tau=t, alpha=a, kappa=k, context_length=None, n_sequences=None, n_tasks=None)
    results = ("icl", "idg", "gap", "train", "effective_ridge", "converged")
    parameters = {"tau": t, "alpha": a, "kappa": k, "rho": r, "ridge": penalty}
    table = Table({**parameters, **{name: getattr(law, name) for name in results}})
    _emit(table, format, out, f"theory, {where}; signal variance 1, x ~ N(0, I/d), penalty (n/d) ridge |Gamma|^2")
    if plot is not None:
        from icltheory.figures.curves import plot_curves

        _saved(plot, lambda: plot_curves(table, list(parameters)).savefig(plot, dpi=150))


@app.command
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
        seeds: Independent repetitions of every point.
        seed: Root of all random streams.
        workers: Processes; by default one a core.
        format: Table for people, or CSV or JSON.
        out: Write the table there instead of to standard output.
    """
    from icltheory.progress import progress
    from icltheory.prompts.covariance import power_law
    from icltheory.simulate.batch import Job, run_all
    from icltheory.theory import finite_size, task_covariance

    _check_counts(seed, seeds=seeds, workers=_workers(workers))
    points = [
        Point.of(d=d, tau=t, alpha=a, kappa=k, rho=r, ridge=penalty)
        for t, a, k, r, penalty in itertools.product(tau, alpha, kappa, rho, ridge)
    ]
    if task_power is not None and tasks != "gaussian":
        raise ValueError(f"--task-power needs --tasks gaussian, got --tasks {tasks}, an isotropic law")
    spectrum = np.ones(d) if task_power is None else power_law(d, task_power)
    jobs = [
        Job(
            point=point,
            tasks=tasks,
            assignment=assignment,
            task_covariance=None if task_power is None else tuple(spectrum.tolist()),
            test_context_length=test_context_length,
            seed=seed,
            repetition=i,
        )
        for point in points
        for i in range(seeds)
    ]
    with progress("simulate", len(jobs)) as advance:
        outcomes = run_all(jobs, workers=_workers(workers), advance=advance)
    described = "" if task_power is None else f" of covariance i^-{task_power:g}"
    described += "" if test_context_length is None else f", {test_context_length} examples in a test prompt"
    rows: dict[str, list[Any]] = {}
    for i, point in enumerate(points):
        group = outcomes[i * seeds : (i + 1) * seeds]
        longer = None if test_context_length is None else test_context_length / d
        laws: dict[str, Risk[Floats]] = {"limit": task_covariance(**point.ratios(), train=spectrum, test_alpha=longer)}
        if task_power is None:
            laws["theory"] = finite_size(d=d, **point.ratios(), tasks=tasks, test_context_length=test_context_length)
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
    _emit(
        Table({name: np.array(values) for name, values in rows.items()}),
        format,
        out,
        f"d = {d}, {seeds} seeds, {tasks} tasks{described}; realised sizes and ratios; _se: standard error over seeds; "
        "_limit: theory, d -> infinity" + ("; _theory: at this d" if task_power is None else ""),
    )


@app.command
def reproduce(
    figures: tyro.conf.Positional[tuple[str, ...]] = (),
    scale: Literal["smoke", "default", "paper"] = "default",
    out: Path = Path("reproduction"),
    seed: int = 0,
    workers: OptionalInt = None,
) -> None:
    """Regenerate figures of the papers, and say claim by claim whether they hold.

    Writes, for each figure, a picture (PNG, PDF), all plotted data (CSV) and a record of claims and provenance (JSON),
    and report.html with everything in one self-contained page. The exit status is 1 if a claim fails.

    Example: icl reproduce lu2025/double-descent --scale smoke --out results

    Args:
        figures: Names such as lu2025/double-descent; without names, all of them.
        scale: Smoke takes seconds, default minutes; paper runs at the paper's own sizes.
        out: Folder for the results.
        seed: Root of all random streams.
        workers: Processes; by default one a core.
    """
    from icltheory.figures import FIGURES, find, write
    from icltheory.figures import reproduce as run
    from icltheory.progress import progress
    from icltheory.provenance import record
    from icltheory.report import write_report

    chosen = [find(name) for name in dict.fromkeys(figures)] or list(FIGURES.values())
    _check_counts(seed, workers=_workers(workers))
    out.mkdir(parents=True, exist_ok=True)
    provenance = record()
    results = []
    for figure in chosen:
        result = run(figure, scale, seed=seed, workers=_workers(workers), progress=progress)
        write(result, out, provenance)
        results.append(result)
        print(f"{figure.name} at {scale} scale: {result.simulations} simulations in {result.seconds:.0f} s")
        for claim in result.claims:
            print(f"  [{claim.verdict}] {claim.statement}")
            print(f"      expected: {claim.expected}\n      measured: {claim.measured}")
    report = write_report(results, out, provenance)
    print(f"report: {report}")
    if any(result.failed for result in results):
        raise SystemExit(1)


@app.command
def doctor(format: Literal["table", "json"] = "table") -> None:
    """Say what this installation runs on: versions, BLAS, cores, memory, optional parts.

    Args:
        format: Text for people, or JSON.
    """
    from icltheory.provenance import environment_threads, optional_parts, record
    from icltheory.resources import gigabytes

    facts = record()
    if format == "json":
        print(json.dumps(facts, indent=2))
        return
    lines = {
        "icltheory": facts["icltheory"] + (f" (commit {facts['commit']})" if facts["commit"] else ""),
        "python": f"{facts['python']} on {facts['platform']}",
        "processor": f"{facts['processor']}, {facts['cores']} cores usable",
        "memory": f"{gigabytes(facts['memory_available_bytes'])} available of {gigabytes(facts['memory_bytes'])}",
    }
    for pool in facts["blas"]:
        kernel = f", kernels for {pool['architecture']}" if pool["architecture"] else ""
        lines[f"{pool['internal_api']} {pool['version'] or ''}".strip()] = f"{pool['num_threads']} threads{kernel}"
    for name, value in environment_threads().items():
        lines[name] = value
    for name, version in facts["packages"].items():
        lines[name] = version or "MISSING"
    for name, purpose in optional_parts().items():
        lines[f"{name} (optional)"] = facts["optional"][name] or f"not installed; for {purpose}"
    width = max(map(len, lines))
    for name, text in lines.items():
        print(f"{name:<{width}}  {text}")


def _workers(workers: int | None) -> int:
    from icltheory.simulate.batch import cores

    return cores() if workers is None else workers


def _check_counts(seed: int, **counts: int) -> None:
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")


def _emit(table: Table, format: Format, out: Path | None, note: str) -> None:
    text = table.render(format, note)
    if out is None:
        print(text, end="")
        sys.stdout.flush()
    else:
        _saved(out, lambda: out.write_text(text, encoding="utf-8"))


def _saved(path: Path, save: Callable[[], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save()
    print(f"wrote {path}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a wrong input ends in one line on standard error and status 2."""
    from icltheory import __version__

    words = sys.argv[1:] if arguments is None else list(arguments)
    if words in (["--version"], ["-V"]):
        print(f"icltheory {__version__}")
        return
    try:
        app.cli(prog="icl", description=_ABOUT, args=words, config=(tyro.conf.OmitArgPrefixes,))
    except BrokenPipeError:  # the reader left, as in `icl curve | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except (ValueError, TypeError, OSError, MemoryError, ArithmeticError, RuntimeError) as error:
        print(f"icl: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("icl: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


_ABOUT = "Theory and practice of in-context learning: predict, simulate, reproduce."
