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


def write_durably(path: Path, text: str) -> None:
    """Write a file atomically: after a power cut it has the old content or the new one."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    fsync_path(draft)
    draft.replace(path)
    fsync_path(path.parent)
