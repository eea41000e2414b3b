"""Progress of long work: a bar on a terminal, one plain line every ten seconds elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY = 10.0  # seconds between plain lines


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to be called after each of `total` steps; everything is written to standard error."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(label, total=total)
            yield lambda: bar.advance(task)
    else:
        started = last = time.monotonic()
        done = 0

        def advance() -> None:
            nonlocal done, last
            done += 1
            now = time.monotonic()
            if now - last >= _EVERY or done == total:
                last = now
                print(f"{label}: {done}/{total}, {now - started:.0f} s", file=sys.stderr, flush=True)

        yield advance
