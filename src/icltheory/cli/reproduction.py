"""The command `icl reproduce`."""

from pathlib import Path
from typing import Literal

import tyro

from icltheory.cli.arguments import OptionalInt, OptionalPath, check_counts, processes


def reproduce(
    figures: tyro.conf.Positional[tuple[str, ...]] = (),
    scale: Literal["smoke", "default", "paper"] = "default",
    out: Path = Path("reproduction"),
    seed: int = 0,
    workers: OptionalInt = None,
    store: OptionalPath = None,
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
        store: Folder in which trained models' results are kept and looked up; by default OUT/runs.
    """
    from icltheory.figures import FIGURES, find, write
    from icltheory.figures import reproduce as run
    from icltheory.progress import progress
    from icltheory.provenance import record
    from icltheory.report import write_report
    from icltheory.store import Store

    chosen = [find(name) for name in dict.fromkeys(figures)] or list(FIGURES.values())
    check_counts(seed, workers=processes(workers))
    out.mkdir(parents=True, exist_ok=True)
    provenance = record()
    results = []
    kept = Store(store or out / "runs")
    for figure in chosen:
        if figure.missing and not figures:
            print(f"{figure.name} is left out: it needs {figure.needs} (pip install 'icltheory[train]')")
            continue
        result = run(figure, scale, seed=seed, workers=processes(workers), progress=progress, store=kept)
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
