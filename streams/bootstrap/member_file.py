"""The last group member of a data directory's worker, in a file that is locked while the worker runs.

Guaranteed: one process at a time is a worker of a data directory, by its id, and the process of a `former` member has
ended. The file of a copied directory does not vouch for its content, on this machine or another one: the original's
worker may be alive.
"""

import fcntl
import os
import sys
from pathlib import Path
from typing import Any

import orjson

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Identifies the running kernel: locks under another one are not visible here."""


class MemberFile:
    """The file of this worker."""

    former: str | None
    """The member id of the worker's last process; None without one, or if it may be alive."""

    def __init__(self, path: Path) -> None:
        """Lock the file until `close` or the end of the process. Ends the process if another one has it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = self._read().get("pid", "unknown")
            self.close()
            sys.exit(
                f"setting MODESTREAM_WORKER_ID: {path.parent} is in use by another worker, process {process}\n"
                "Give each worker its own id; those of one data directory share its partitions"
            )
        self._place = _place(self._file.fileno())
        stored = self._read()
        is_original = self._place["boot"] != "" and self._place.items() <= stored.items()
        self.former = stored.get("member") if is_original else None
        self.note(self.former)

    def note(self, member_id: str | None) -> None:
        """Store the member id of this process."""
        # In place: a new file would not be locked. A torn write counts as missing.
        self._file.truncate(0)
        self._file.write(orjson.dumps({**self._place, "pid": os.getpid(), "member": member_id}).decode())
        self._file.flush()

    def close(self) -> None:
        """Unlock the file: nothing else of the directory may be open."""
        self._file.close()

    def _read(self) -> dict[str, Any]:
        self._file.seek(0)
        try:
            stored = orjson.loads(self._file.read())
        except ValueError:
            return {}
        return stored if isinstance(stored, dict) else {}


def _place(descriptor: int) -> dict[str, Any]:
    """Return an identity of the file that a copy does not share."""
    status = os.fstat(descriptor)
    boot = BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else ""
    return {"boot": boot, "device": status.st_dev, "inode": status.st_ino}
