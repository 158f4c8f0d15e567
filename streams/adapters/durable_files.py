"""What is on the disk when a call returns, whatever loses its power then."""

import os
from pathlib import Path


def fsync_path(path: Path) -> None:
    """Have a file's content, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all, also after a power cut."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    fsync_path(draft)
    draft.replace(path)
    fsync_path(path.parent)
