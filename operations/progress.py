"""A long run over many units: some of them at a time, with a bar on a terminal, else a plain line every few seconds.

Progress is written to standard error, so that standard output has the result alone.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Self, TypeVar

from tqdm import tqdm

LINE_INTERVAL_S = 5.0
"""Between two plain lines: a log of an hour has some 700."""


class Progress:
    """Counts what is done of a total; the total may grow. Used as a context manager."""

    def __init__(self, title: str, total: int, unit: str) -> None:
        self._title, self._unit = title, unit
        self._done, self._total = 0, total
        self._note = ""
        self._told_at = time.monotonic()
        self._bar = tqdm(total=total, desc=title, unit=f" {unit}", dynamic_ncols=True) if sys.stderr.isatty() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the last state."""
        if self._bar is not None:
            self._bar.close()
        else:
            self._tell()

    def advance(self, by: int = 1) -> None:
        """Count further units as done."""
        self._done += by
        if self._bar is not None:
            self._bar.update(by)
        if self._bar is None and time.monotonic() - self._told_at >= LINE_INTERVAL_S:
            self._tell()

    def reach(self, done: int, total: int) -> None:
        """Replace both counts."""
        self._total = total
        if self._bar is not None:
            self._bar.total = total
        self.advance(done - self._done)

    def say(self, note: str) -> None:
        """Show a note beside the count, such as what is waited for."""
        if note == self._note:
            return
        self._note = note
        if self._bar is not None:
            self._bar.set_postfix_str(note)
        else:
            self._tell()

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        note = f" ({self._note})" if self._note else ""
        sys.stderr.write(f"{self._title}: {self._done} of {self._total} {self._unit}{note}\n")


Unit = TypeVar("Unit")


async def at_most(number: int, units: Iterable[Unit], work: Callable[[Unit], Awaitable[None]]) -> None:
    """Call `work` for each, at most `number` at the same time. The first error ends all, and is raised."""
    waiting = iter(units)

    async def go_on() -> None:
        for unit in waiting:
            await work(unit)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                group.create_task(go_on())
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
