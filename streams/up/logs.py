"""The children's output: files of bounded size, and their last words."""

import shutil
from pathlib import Path

MAX_LOG_BYTES = 10_000_000
"""A log that grows beyond this becomes the older one of two."""

TAIL_LINES = 3
"""What is repeated on the console when a child ends by itself: usually the last line names the error."""

TAIL_BYTES = 8192
"""Where the last lines are looked for."""


def rotate_log(log: Path) -> None:
    """Keep a log small: it is copied to `NAME.1` and emptied.

    Whoever writes it has it open for appending, so that it goes on at the new end; lines that come between the copy
    and the emptying are lost.
    """
    if log.is_file() and log.stat().st_size > MAX_LOG_BYTES:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        with log.open("r+b") as file:
            file.truncate(0)


def tail_log(log: Path) -> list[str]:
    """The last lines of a log that say anything."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return [line[:300] for line in lines if line.strip()][-TAIL_LINES:]
