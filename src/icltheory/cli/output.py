"""What the commands give: a table for people, CSV or JSON, on standard output or in a file."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from icltheory.conventions import SCALED
from icltheory.tables import Table

Format = Literal["table", "csv", "json"]


def emit(
    table: Table, format: Format, out: Path | None, note: str, convention: str = f"convention: {SCALED.statement}"
) -> None:
    """Give the table in the format asked for, with a note and the convention that its numbers are in."""
    write(table.render(format, f"{note}; {convention}"), out)


def write(text: str, out: Path | None) -> None:
    """Give text on standard output, or in a file."""
    if out is None:
        print(text, end="")
        sys.stdout.flush()
    else:
        saved(out, lambda: out.write_text(text, encoding="utf-8"))


def saved(path: Path, save: Callable[[], object]) -> None:
    """Save a file, in a folder that may not be there yet, and say so on standard error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save()
    print(f"wrote {path}", file=sys.stderr)
