"""A store of results: nothing that has been computed is computed again."""

import json
import os
import socket
from pathlib import Path
from typing import Any


class Store:
    """Results by key, in JSON lines files of which each has one writer.

    Lines are only ever added, so that processes on one file system can share a folder, and a kill can cost no more than
    the line being written.

    Parameters
    ----------
    folder : path
        Made if need be.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._own = self.folder / f"{socket.gethostname()}-{os.getpid()}.jsonl"
        self._found: dict[str, Any] = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            self._found.update(_lines(path))

    def get(self, key: str) -> Any:
        """Return the result of a key, or None."""
        return self._found.get(key)

    def unfinished(self, key: str) -> Path:
        """Return the folder in which work of that key may keep its state until it is done."""
        return self.folder / "unfinished" / key

    def put(self, key: str, result: Any) -> None:
        """Keep a result, a plain value."""
        line = json.dumps({"key": key, "result": result})
        with self._own.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._found[key] = json.loads(line)["result"]


def _lines(path: Path) -> dict[str, Any]:
    """Read what is whole of a file: its last line may have been cut, or may be being written."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
            found[entry["key"]] = entry["result"]
        except (ValueError, KeyError, TypeError):
            continue
    return found
