"""Publish the entries of a reader: in order, a bounded number of turns in flight, each until it is answered.

Enters: entries, and a sender of turns. Leaves: a tally, whose counts only grow. Guaranteed: the tally counts settled
entries, in the order of the export, so that an interrupted import can skip as many entries and continue.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from modestream_client.answers import Reply
from modestream_client.failures import MemoryServiceError, MemoryTimeout, MemoryUnreachable
from modestream_client.imports.reading import MAX_NAMED_PROBLEMS, Entry, Json, Message, MoreProblems, Problem
from modestream_client.records import Written

WINDOW = 64

BATCH = 100
"""Entries read at once, in a thread."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
"""Pauses between attempts to send a turn."""

PATIENCE_S = 900.0
"""Seconds for which a turn is retried while the service is away."""

COUNTS = ("read", "stored", "duplicate", "refused")

Outcome = Literal["stored", "duplicate", "forgotten"] | Problem

Settled = tuple[Outcome | MoreProblems, str | None]
"""The outcome of an entry, and the place of its turn in the log."""


class TryAgain(Exception):
    """A turn was not answered, and may be sent again: the cause says why."""


@dataclass(slots=True)
class Tally:
    """Outcome of an export so far. `forgotten` are turns that were forgotten before, and stay so."""

    read: int = 0
    stored: int = 0
    duplicate: int = 0
    refused: int = 0
    forgotten: int = 0
    problems: list[Problem] = field(default_factory=list)
    read_after: str | None = None

    def add(self, outcome: Outcome | MoreProblems) -> None:
        if isinstance(outcome, MoreProblems):
            self.read += outcome.count
            self.refused += outcome.count
            return
        self.read += 1
        if isinstance(outcome, Problem):
            self.refused += 1
            if len(self.problems) < MAX_NAMED_PROBLEMS:
                self.problems.append(outcome)
        else:
            setattr(self, outcome, getattr(self, outcome) + 1)

    def merge(self, other: "Tally") -> None:
        for name in (*COUNTS, "forgotten"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.problems = [*self.problems, *other.problems][:MAX_NAMED_PROBLEMS]
        self.read_after = other.read_after or self.read_after

    def counts(self) -> dict[str, int]:
        """Return the counts of the contract."""
        return {name: getattr(self, name) for name in COUNTS}

    def result(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "Tally":
        return cls(**{**result, "problems": [Problem(**problem) for problem in result["problems"]]})


Send = Callable[[Json, "int | str"], Awaitable[tuple[Outcome, str | None]]]
"""Sends a turn, from a place of the export; returns its outcome, and its place in the log. Raises TryAgain."""

Count = Callable[[Tally], None]
"""Gets the tally whenever it has grown."""


async def publish(
    entries: AsyncIterator[Entry], send: Send, tally: Tally, count: Count | None = None, window: int = WINDOW
) -> None:
    """Publish the entries after those counted by the tally. Raises the cause of a TryAgain that does not end."""
    settled_before = tally.read
    # Broken messages queue with the turns in flight, so that all are settled in their order.
    under_way: deque[asyncio.Task[Settled] | Problem | MoreProblems] = deque()

    async def settle() -> None:
        first = under_way[0]
        outcome, place = await first if isinstance(first, asyncio.Task) else (first, None)
        under_way.popleft()
        tally.add(outcome)
        tally.read_after = place or tally.read_after
        if count is not None:
            count(tally)

    try:
        async for entry in entries:
            if settled_before > 0:
                settled_before -= entry.count if isinstance(entry, MoreProblems) else 1
                continue
            under_way.append(asyncio.create_task(_sent(entry, send)) if isinstance(entry, Message) else entry)
            while under_way and (len(under_way) >= window or not _is_awaited(under_way[0])):
                await settle()
        while under_way:
            await settle()
    finally:
        tasks = [task for task in under_way if isinstance(task, asyncio.Task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_awaited(entry: asyncio.Task[Settled] | Problem | MoreProblems) -> bool:
    return isinstance(entry, asyncio.Task) and not entry.done()


async def _sent(entry: Message, send: Send) -> Settled:
    """Send a turn until it is answered. Raises the cause of a TryAgain that does not end."""
    pause_s = FIRST_PAUSE_S
    clock = asyncio.get_running_loop().time
    ends = clock() + PATIENCE_S
    while True:
        try:
            return await send(entry.turn, entry.place)
        except TryAgain as again:
            if clock() + pause_s > ends:
                raise again.__cause__ or again from None
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


RETRIABLE = ("unavailable", "timeout", "too_many_requests")

TURN_TIMEOUT_S = 60.0


async def outcome_of(request: Awaitable[tuple[Reply, Written | None]], place: int | str) -> tuple[Outcome, str | None]:
    """Return the outcome of a turn that a client sends. Raises TryAgain, and other errors of the client."""
    try:
        reply, written = await request
    except (MemoryTimeout, MemoryUnreachable) as failure:
        raise TryAgain from failure
    except MemoryServiceError as error:
        if error.code in RETRIABLE:
            raise TryAgain from error
        return Problem(place, error.code, error.message, error.field), None
    is_forgotten = any(warning.code == "forgotten" for warning in reply.warnings)
    outcome: Outcome = "forgotten" if is_forgotten else "duplicate" if reply.result.get("duplicate") else "stored"
    return outcome, written and written.read_after


async def read_beside(entries: Iterator[Entry]) -> AsyncIterator[Entry]:
    """Yield entries that a thread reads in batches."""
    while batch := await asyncio.to_thread(list, islice(entries, BATCH)):
        for entry in batch:
            yield entry


class ModesFor:
    """Chooses the mode for parts of an export: `project:Foo=work`, `conversation:Old plans=journal`."""

    KINDS = ("project", "conversation")

    def __init__(self, rules: Iterable[str] = (), mode: str | None = None) -> None:
        """`mode` applies to all other messages. Raises ValueError for a malformed rule."""
        self._mode = mode
        self._modes: dict[tuple[str, str], str] = {}
        for rule in rules:
            named, equals, chosen = rule.rpartition("=")
            kind, colon, name = named.partition(":")
            if not equals or not colon or kind not in self.KINDS or not name or not chosen:
                raise ValueError(f"{rule[:80]!r} is not project:NAME=MODE or conversation:NAME=MODE")
            self._modes[kind, name] = chosen

    def applied(self, entry: Entry) -> Entry:
        """Return an entry with its mode, unless it has one."""
        if not isinstance(entry, Message) or entry.turn.get("mode") is not None:
            return entry
        names = entry.belongs_to
        chosen = (self._modes.get((kind, name)) for kind in self.KINDS if (name := names.get(kind)) is not None)
        mode = next(filter(None, chosen), self._mode)
        return entry if mode is None else replace(entry, turn={**entry.turn, "mode": mode})
