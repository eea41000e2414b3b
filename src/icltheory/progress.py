"""Progress of long work: a bar on a terminal, one plain line every ten seconds elsewhere."""

import sys
import threading
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
        started, done = time.monotonic(), 0
        finished = threading.Event()

        def say() -> None:
            print(f"{label}: {done}/{total}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

        def speak() -> None:
            while not finished.wait(_EVERY):
                say()

        def advance() -> None:
            nonlocal done
            done += 1

        speaker = threading.Thread(target=speak, daemon=True)
        speaker.start()
        try:
            yield advance
        finally:
            finished.set()
            speaker.join()
            say()
