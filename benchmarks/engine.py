"""Time the fit of this engine against what people do today, all in one run on one machine.

python benchmarks/engine.py                                  the table, its exponents, and products against plain matmul
python benchmarks/engine.py --d 20,40 --out engine.md        some sizes only, written as Markdown as well as printed
python benchmarks/engine.py --threads 2 --memory-limit 20    two BLAS threads; nothing that needs more than 20 GB
python benchmarks/engine.py --methods icltheory,lsqr         some methods only
python benchmarks/engine.py --d 64 --steps                   with the steps of conjugate gradients against tau

Every fit runs in a process of its own, so that its peak memory is its own and BLAS has the threads asked for. The
same data are drawn in each of them, and every method is warmed up on a small problem, before the clock starts; the
time then covers all from (query, context, target) to Gamma, the features being formed included.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import icltheory as icl
from icltheory.provenance import record
from icltheory.resources import available_memory, gigabytes
from methods import METHODS, STEPS_D, TOL, needs, point_at

NAMES = {
    "icltheory": "icltheory",
    "cholesky": "normal equations, Cholesky",
    "lu": "normal equations, LU",
    "sklearn-cholesky": "scikit-learn Ridge, cholesky",
    "sklearn-cg": "scikit-learn Ridge, sparse_cg",
    "lsqr": "scipy LSQR, same products",
}
COLUMNS = "d, n, method, fits, CPU s, wall s, peak MB, residual, error difference, CPU ratio, notes"
TAUS = (0.2, 0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.5, 2, 4, 10)


def child(options: argparse.Namespace, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a task in a new process; {"error": ...} if that fails."""
    print(task, arguments, file=sys.stderr, flush=True)
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
    command = [sys.executable, str(Path(__file__).with_name("methods.py")), json.dumps([task, arguments])]
    try:
        done = subprocess.run(
            command, env=os.environ | threads, capture_output=True, text=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {options.timeout:g} s"}
    if done.returncode < 0:
        return {"error": f"killed by signal {-done.returncode}" + (" (memory?)" if done.returncode == -9 else "")}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed without a word"])[-1]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


# Sections of the output, line by line


def header(options: argparse.Namespace) -> Iterator[str]:
    facts = record()
    versions = {name: facts["packages"][name] for name in ("numpy", "scipy")} | {"python": facts["python"]}
    if importlib.util.find_spec("sklearn"):
        versions["scikit-learn"] = metadata.version("scikit-learn")
    blas = sorted({f"{b['internal_api']} {b['version']} ({b['architecture']})" for b in facts["blas"]})
    yield "# The engine against what people do today\n"
    yield f"- {facts['time']}, `{facts['command']}`, icltheory {facts['icltheory']}, commit {facts['commit']}"
    yield f"- {facts['processor']}, {facts['cores']} cores, {gigabytes(facts['memory_bytes'])}, {facts['platform']}"
    if hasattr(os, "getloadavg"):
        yield f"- load when the run began: {os.getloadavg()[0]:.2f}"
    yield f"- {', '.join(blas)}; {options.threads} thread(s) for BLAS and for this engine"
    yield "- " + ", ".join(f"{name} {version}" for name, version in versions.items())
    yield f"- tau = {options.tau:g}, alpha = kappa = 1, rho = 0.01, ridge = {options.ridge:g}, seed {options.seed}\n"


def row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def table_head(columns: Iterable[str]) -> str:
    names = list(columns)
    return row(names) + "\n" + row("---" for _ in names)


def comparison(options: argparse.Namespace) -> Generator[str, None, dict[str, dict[int, float]]]:
    """Yield the table of all methods; return the CPU seconds of each at each d."""
    yield "## Fits\n"
    yield "CPU and wall seconds are medians over the fits. Peak memory is that of the whole process, data and Python"
    yield "included. The residual is that of the normal equations, relative to |F^T y|, measured outside the methods in"
    yield "double precision. The error difference is that of the exact ICL error, relative to the Cholesky solution (to"
    yield "icltheory where that did not run). The CPU ratio is to icltheory.\n"
    yield table_head(COLUMNS.split(", "))
    cpu: dict[str, dict[int, float]] = {method: {} for method in options.methods}
    for d in options.d:
        point = point_at(d, options.tau, options.ridge)
        results = {method: run_or_skip(options, method, point) for method in options.methods}
        done = {method: result for method, result in results.items() if "error" not in result}
        base = next((method for method in ("cholesky", "icltheory") if method in done), None)
        for method, result in results.items():
            cells = [d, point.n_sequences, NAMES[method]]
            if method not in done:
                yield row([*cells, *[""] * 7, result["error"]])
                continue
            cpu[method][d] = result["cpu"]
            difference = f"{abs(result['icl'] / done[base]['icl'] - 1):.1e}" if base else ""
            ratio = f"{result['cpu'] / done['icltheory']['cpu']:.2f}" if "icltheory" in done else ""
            times = [f"{result['cpu']:.4g}", f"{result['wall']:.4g}", f"{result['peak'] / 1e6:.0f}"]
            checks = [f"{result['residual']:.1e}", "reference" if method == base else difference, ratio]
            yield row([*cells, result["fits"], *times, *checks, result["note"]])
    return cpu


def run_or_skip(options: argparse.Namespace, method: str, point: icl.Point) -> dict[str, Any]:
    """Run a method unless it is missing or foreseeably too large; icltheory is held to the memory limit only."""
    memory, operations = needs(method, point)
    limit = options.memory_limit * 1e9
    if method.startswith("sklearn") and importlib.util.find_spec("sklearn") is None:
        return {"error": "skipped: scikit-learn is not installed"}
    if memory > limit:
        return {"error": f"skipped: needs about {gigabytes(memory)}, the limit is {gigabytes(limit)}"}
    if operations > options.max_operations and method != "icltheory":
        return {"error": f"skipped: about {operations:.1e} operations, the limit is {options.max_operations:.1e}"}
    shared = {"tau": options.tau, "ridge": options.ridge, "seed": options.seed, "repeats": options.repeats}
    return child(options, "fits", {"method": method, "d": point.d, **shared})


def exponents(cpu: dict[str, dict[int, float]]) -> Iterator[str]:
    yield "\n## CPU seconds as a power of d\n"
    yield table_head(("method", "exponent (least squares on logarithms)", "points", "between the last two", "at d"))
    for method, seconds in cpu.items():
        if len(seconds) < 2:
            continue
        sizes = sorted(seconds)
        x, y = np.log(sizes), np.log([seconds[d] for d in sizes])
        slopes = np.polyfit(x, y, 1)[0], (y[-1] - y[-2]) / (x[-1] - x[-2])
        yield row((NAMES[method], f"{slopes[0]:.2f}", len(sizes), f"{slopes[1]:.2f}", ", ".join(map(str, sizes))))


def products(options: argparse.Namespace) -> Iterator[str]:
    yield "\n## One application of F^T F against its two matrix products alone\n"
    yield "`KhatriRao.normal` and plain products of the same blocks on the same threads, by turns; the best of each.\n"
    yield table_head(("d", "n", "precision", "normal GFlop/s", "matmul GFlop/s", "ratio", "notes"))
    for d in options.d:
        for precision in ("float32", "float64"):
            result = child(options, "products", {"d": d, "tau": options.tau, "precision": precision})
            if "error" in result:
                yield row((d, "", precision, "", "", "", result["error"]))
                continue
            a, b = result["normal"], result["matmul"]
            yield row((d, result["n"], precision, f"{a:.1f}", f"{b:.1f}", f"{a / b:.2f}", ""))


def steps(options: argparse.Namespace) -> Iterator[str]:
    yield f"\n## Steps of conjugate gradients (d = {STEPS_D}, ridge = {options.ridge:g}, tolerance {TOL:g})\n"
    yield table_head(("tau", "n", "steps", "condition", "residual", "wall s"))
    for tau in TAUS:
        result = child(options, "steps", {"tau": tau, "ridge": options.ridge, "seed": options.seed})
        if result.get("steps") is None:
            yield row((tau, result.get("n", ""), result.get("error", "not within the limit"), "", "", ""))
        else:
            numbers = f"{result['condition']:.1e}", f"{result['residual']:.1e}", f"{result['seconds']:.3g}"
            yield row((tau, result["n"], result["steps"], *numbers))


def report(options: argparse.Namespace) -> Iterator[str]:
    yield from header(options)
    cpu = yield from comparison(options)
    yield from exponents(cpu)
    yield from products(options)
    if options.steps:
        yield from steps(options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--d", default="20,40,80,100,200,400", help="token dimensions")
    parser.add_argument("--tau", type=float, default=1.5)
    parser.add_argument("--ridge", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads")
    parser.add_argument("--memory-limit", type=float, help="in GB; 60 %% of what is available if not given")
    parser.add_argument("--max-operations", type=float, default=3e12, help="for every method but icltheory")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds that one process may take")
    parser.add_argument("--methods", default=",".join(METHODS), help="some of the default: %(default)s")
    parser.add_argument("--repeats", type=int, help="fits of each; else 3, or fewer of slow ones but icltheory")
    parser.add_argument("--steps", action="store_true", help="also count steps of conjugate gradients against tau")
    parser.add_argument("--out", type=Path, help="file to write as well")
    options = parser.parse_args()
    options.d = [int(d) for d in options.d.split(",")]
    options.methods = options.methods.split(",")
    if unknown := set(options.methods) - set(METHODS):
        parser.error(f"--methods must be among {', '.join(METHODS)}, got {', '.join(sorted(unknown))}")
    if options.repeats is not None and options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    if options.memory_limit is None:
        options.memory_limit = 0.6e-9 * available_memory()
    return options


def main() -> None:
    options = parse()
    lines = []
    for line in report(options):
        print(line, flush=True)
        lines.append(line)
        if options.out:  # after every line: a long run that is stopped leaves what it had
            options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
