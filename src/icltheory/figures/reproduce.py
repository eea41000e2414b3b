"""From a figure and a scale to its data, picture, claims and files."""

import csv
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, cast

from icltheory.conventions import SCALED, print_on
from icltheory.figures.figure import SCALES, Figure, Reproduction, Scale
from icltheory.simulate.batch import run_all
from icltheory.store import Store

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]


def _silent(_label: str, _total: int) -> AbstractContextManager[Callable[[], None]]:
    return nullcontext(lambda: None)


def reproduce(
    figure: Figure[Any],
    scale: Scale = "default",
    *,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = _silent,
    store: Store | None = None,
) -> Reproduction:
    """Run a figure's simulations and measure its claims.

    Parameters
    ----------
    figure : Figure
    scale : {"smoke", "default", "paper"}
    seed : int
        Root of all random streams; the same seed gives the same numbers for any number of workers.
    workers : int
        Processes; see `icltheory.simulate.batch.run_all`.
    progress : callable
        (label, total) -> context manager giving a function that is called after each simulation.
    store : Store, optional
        Where trainings are kept, so that none is done twice; simulations are not.

    Raises
    ------
    ImportError
        If the figure needs a package that is not installed.
    """
    if figure.missing:
        raise ImportError(f"{figure.name} needs {figure.needs}: pip install 'icltheory[train]'")
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {SCALES}, got {scale!r}")
    started = time.perf_counter()
    parameters = figure.scales[scale]
    jobs: list[Any] = [replace(cast(Any, job), seed=seed) for job in figure.jobs(parameters)]
    with progress(figure.name, len(jobs)) as advance:
        outcomes = run_all(jobs, workers=workers, advance=advance, store=store)
    rows = figure.rows(parameters, jobs, outcomes)
    return Reproduction(
        figure=figure,
        scale=scale,
        parameters=parameters,
        rows=rows,
        claims=figure.claims(parameters, rows),
        simulations=len(jobs),
        seconds=time.perf_counter() - started,
    )


def write(result: Reproduction, folder: Path, provenance: dict[str, Any]) -> list[Path]:
    """Write a reproduction's picture (PNG, PDF), data (CSV) and record (JSON); return the paths."""
    base = folder / result.figure.name
    base.parent.mkdir(parents=True, exist_ok=True)
    picture = result.figure.plot(result.parameters, result.rows)
    print_on(picture)
    paths = [base.with_name(base.name + ending) for ending in (".png", ".pdf", ".csv", ".json")]
    picture.savefig(paths[0], dpi=150)
    picture.savefig(paths[1], metadata={"CreationDate": None})
    write_rows(result, paths[2])
    record = {
        "figure": result.figure.name,
        "source": result.figure.source,
        "scale": result.scale,
        "convention": SCALED.statement,
        "parameters": asdict(result.parameters),
        "simulations": result.simulations,
        "seconds": round(result.seconds, 2),
        "claims": [{**asdict(claim), "verdict": claim.verdict} for claim in result.claims],
        "provenance": provenance,
    }
    paths[3].write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return paths


def write_rows(result: Reproduction, path: Path) -> None:
    """Write every plotted number as one CSV table; an empty cell means that the column does not apply."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [field.name for field in fields(result.rows[0])])
        table.writeheader()
        table.writerows(asdict(row) for row in result.rows)
