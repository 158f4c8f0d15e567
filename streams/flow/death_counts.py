"""Count process deaths by record: a file, which outlives a killed process, names the record whose code is running.

The code that handles a record runs on the event loop, one record at a time. `noted` writes the record's name while its
code runs and clears it while the code waits for Kafka, a store, a model or a pause. A process that ends by `kill -9`,
runs out of memory, crashes in native code, or is killed as unresponsive therefore leaves the name of one record, and an
outage leaves none. The next process counts a death for that record. A thread that decodes a large record writes its
name too, one thread at a time. A record with deaths is decoded on the event loop instead: a record that runs there at
the same time is then not blamed for it. An exception that ends the agent and comes from the code itself, such as an
exit, is a death as well. After `MAX_DEATHS` deaths the record is refused; a record that finishes before that is
forgotten.
"""

import asyncio
import mmap
import threading
from collections.abc import Awaitable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import structlog

from schemas.failures import Poison
from schemas.messages.records import Record

MAX_DEATHS = 3
"""A kill from outside hits the same record of some milliseconds three times in a row by no accident."""

MAX_SUSPECTS = 64
"""Records with deaths that are kept, the newest: each process adds one at most."""

SLOT_BYTES = 512
"""Room for the name of a record: a topic has 249 bytes at most, a step's agents some fifty."""

ON_LOOP, IN_THREAD, SUSPECTS = 0, SLOT_BYTES, 2 * SLOT_BYTES
"""Where the file has the record on the event loop, that of a thread, and the suspects."""

FILE_BYTES = SUSPECTS + SLOT_BYTES * MAX_SUSPECTS

CODE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""What only code raises, from what it was given. Others may be an outage: of Kafka, a disk, the memory."""

Result = TypeVar("Result")

log = structlog.get_logger()


class DeathCounts:
    """The record whose code runs, and the deaths of earlier ones. Names are bytes, of `record_name`.

    The file has two slots of `SLOT_BYTES`, each with the name of a record, and a byte before it that says whether it
    counts; then a line for each suspect. It is mapped and never synced: what a process has written outlives its end.
    """

    def __init__(self, file: Path | None = None) -> None:
        """Count the death that the file shows. Without a file, or where none can be written, deaths are not kept."""
        self._map = _open_map(file)
        self._running = self.counted = b""
        """The record whose code runs on the event loop; `counted` is empty where the end of the process is no death."""
        self._thread = threading.Lock()
        # Parse the suspects; a damaged line counts for none.
        lines = self._map[SUSPECTS:]
        parted = (line.partition(b" ") for line in lines.rstrip(b"\0").split(b"\n"))
        self._deaths = {name: int(deaths) for deaths, _, name in parted if deaths.isdigit() and name}
        slots = [self._map[slot : slot + SLOT_BYTES] for slot in (ON_LOOP, IN_THREAD)]
        self._map[ON_LOOP] = self._map[IN_THREAD] = 0
        # Once: a thread may begin with a record that the event loop has not left yet.
        for name in {slot[1:].partition(b"\n")[0] for slot in slots if slot[0]}:
            self._count(name)

    def enter(self, name: bytes, *, counts_kills: bool = True) -> None:
        """Note a record: its code runs from now on. Without `counts_kills` the end of the process is no death of it."""
        self._running, self.counted = name, name if counts_kills else b""
        self._note(ON_LOOP, self.counted)

    def leave(self) -> None:
        """Clear the note: the record waits, or its code has ended."""
        self._map[ON_LOOP] = 0
        self._running = self.counted = b""

    def may_use_thread(self) -> bool:
        """True if code of the record that runs may go on in a thread: it has no deaths."""
        return self._running not in self._deaths

    @contextmanager
    def in_thread(self, name: bytes) -> Iterator[None]:
        """Note a record while its code runs in this thread; that of another thread waits. An empty name notes none."""
        with self._thread:
            self._note(IN_THREAD, name)
            try:
                yield
            finally:
                self._map[IN_THREAD] = 0

    def _note(self, slot: int, name: bytes) -> None:
        line = name + b"\n"
        if name and len(line) < SLOT_BYTES:
            self._map[slot + 1 : slot + 1 + len(line)] = line
            self._map[slot] = 1

    def refuse_poison(self) -> None:
        """Raise Poison if the record whose code runs has caused `MAX_DEATHS`. To be called while it is noted."""
        if self._deaths and (deaths := self._deaths.get(self._running, 0)) >= MAX_DEATHS:
            raise Poison(f"{deaths} workers ended while they handled this record; it is not handled again")

    def finish(self, name: bytes) -> None:
        """Forget the deaths of a record that was handled; a refused one may be delivered again."""
        if self._deaths and self._deaths.get(name, MAX_DEATHS) < MAX_DEATHS:
            del self._deaths[name]
            self._save()

    def died(self, name: bytes, problem: BaseException) -> None:
        """Count a death by an exception that ends the agent, and so the process."""
        deaths = self._add(name)
        log.error(
            "the code of a record ends this process",
            record=name.decode(errors="replace"),
            problem=type(problem).__name__,
            deaths=deaths,
        )

    def _count(self, name: bytes) -> None:
        deaths = self._add(name)
        log.warning(
            "the last process ended while it handled a record", record=name.decode(errors="replace"), deaths=deaths
        )

    def _add(self, name: bytes) -> int:
        deaths = self._deaths.pop(name, 0) + 1
        self._deaths[name] = deaths
        self._save()
        self.leave()
        return deaths

    def _save(self) -> None:
        for oldest in list(self._deaths)[:-MAX_SUSPECTS]:
            del self._deaths[oldest]
        lines = b"".join(b"%d %s\n" % (deaths, name) for name, deaths in self._deaths.items())
        room = FILE_BYTES - SUSPECTS
        self._map[SUSPECTS:] = lines[:room].ljust(room, b"\0")


def record_name(consumer: str, record: Record) -> bytes:
    """Name a record and its consumer. With its timestamp: a topic that was made anew has the same offsets."""
    return f"{consumer} {record.partition} {record.offset} {record.timestamp_ms}".encode()


async def noted(awaitable: Awaitable[Result], name: bytes, deaths: DeathCounts, *, counts_kills: bool = True) -> Result:
    """Await, with the record noted while its code runs. What is awaited in tasks and threads of its own is not.

    Code in a thread can note it by `DeathCounts.in_thread`. Raises RuntimeError for an exit, or whatever else is
    neither an Exception nor a cancellation: it would end the event loop, and not the process.
    """
    return await _Noted(awaitable, name, deaths, counts_kills=counts_kills)


class _Noted(Awaitable[Result]):
    """An awaitable in steps from one wait to the next."""

    __slots__ = ("_awaitable", "_counts_kills", "_deaths", "_name")

    def __init__(self, awaitable: Awaitable[Result], name: bytes, deaths: DeathCounts, *, counts_kills: bool) -> None:
        self._awaitable, self._name, self._deaths, self._counts_kills = awaitable, name, deaths, counts_kills

    def __await__(self) -> Generator[Any, Any, Result]:
        steps: Any = self._awaitable.__await__()
        raised: BaseException | None = None
        while True:
            self._deaths.enter(self._name, counts_kills=self._counts_kills)
            try:
                awaited = next(steps) if raised is None else steps.throw(raised)
            except StopIteration as end:
                result: Result = end.value
                return result
            except (Exception, asyncio.CancelledError) as problem:
                if isinstance(problem, CODE_ERRORS):
                    self._deaths.died(self._name, problem)
                raise
            except BaseException as problem:
                if problem is raised:
                    # Thrown in from outside: the coroutine is being closed.
                    raise
                self._deaths.died(self._name, problem)
                raise RuntimeError(f"the code of a record raised {type(problem).__name__}") from problem
            finally:
                self._deaths.leave()
            try:
                raised = None
                yield awaited
            except BaseException as problem:
                # A cancellation too: the awaitable may clean up.
                raised = problem


def _open_map(file: Path | None) -> mmap.mmap:
    """Map the file, made with all of its bytes: a page that a full disk has no room for would end the process."""
    if file is None:
        return mmap.mmap(-1, FILE_BYTES)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.stat().st_size != FILE_BYTES:
            file.write_bytes(bytes(FILE_BYTES))
        with file.open("r+b") as opened:
            return mmap.mmap(opened.fileno(), FILE_BYTES)
    except OSError as problem:
        log.warning("deaths of records are not counted", problem=str(problem))
        return mmap.mmap(-1, FILE_BYTES)
