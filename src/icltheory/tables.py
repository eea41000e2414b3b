"""Columns of results as a table for people, CSV or JSON."""

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """Named columns of one length."""

    columns: dict[str, NDArray[Any]]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary of plain values a row."""
        lists = {name: np.asarray(values).tolist() for name, values in self.columns.items()}
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]

    def render(self, format: Literal["table", "csv", "json"], note: str) -> str:
        """Return the table as text; numbers in full precision in CSV and JSON, where infinity is "inf"."""
        rows = self.rows()
        if format == "json":
            plain = [{name: _json_value(value) for name, value in row.items()} for row in rows]
            return json.dumps({"note": note, "rows": plain}, indent=1) + "\n"
        if format == "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, list(self.columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            return text.getvalue()
        cells = [list(self.columns), *([_short(value) for value in row.values()] for row in rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        return "\n".join([f"# {note}", *lines]) + "\n"


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _json_value(value: Any) -> Any:
    # JSON has no infinity; a string is read back by float() in every language
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
