"""Writes that survive a power cut."""

import os
from pathlib import Path


def fsync_path(path: Path) -> None:
    """Flush a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, text: str, *, writer: str = "") -> None:
    """Write a file atomically: after a power cut it has the old content or the new one.

    `writer` names the writer of a file that several processes may write at the same time.
    """
    draft = path.with_name(f"{path.name}{writer}.new")
    draft.write_text(text)
    fsync_path(draft)
    draft.replace(path)
    fsync_path(path.parent)
