"""The journal of a run over many users: which are done, so that an interrupted run continues behind them.

One line for each finished user, appended and flushed to the disk. A torn last line, of a process that was killed, is a
user that is not done.
"""

import json
import os
from pathlib import Path


class Journal:
    """The finished units of one run. Belongs to one process."""

    def __init__(self, path: Path) -> None:
        """Read what an earlier process has finished."""
        self._path = path
        self.done: frozenset[str] = frozenset(_entries(path))

    def finish(self, key: str) -> None:
        """Record that one is done."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            # In a line of its own, also behind a torn one.
            file.write(b"\n" + json.dumps(key).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Remove the file: the run is whole, and the next one begins anew."""
        self._path.unlink(missing_ok=True)


def _entries(path: Path) -> list[str]:
    if not path.exists():
        return []
    found: list[str] = []
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, str):
            found.append(entry)
    return found
