"""What happened to memories, from the service's internal events: small, without text. Pure but for what it remembers.

Enters: records of `remembered`, `embedded`, `changes`, `consolidated`. Leaves: `Event`s of a boundary. Guaranteed: at
least one event for each thing that happened; no text of a memory.
"""

from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pydantic_core import from_json

from gateway.service.wire import Json

EventType = Literal["remembered", "embedded", "moved", "superseded", "forgotten", "consolidated"]

TOPICS = ("remembered", "embedded", "changes", "consolidated")
"""The topics of internal events, in the order of the offsets in an event's id."""

MAX_KNOWN = 50_000
"""Memories whose last project, mode and version are remembered, some 15 MB, to tell a move from a new memory."""

MAX_MOVES = 1_000
"""Moves that commands asked for, remembered until their memories are published again."""

MOVE_MS = 60_000
"""Milliseconds within which a memory that is published again was moved by an earlier command."""

ANY_MEMORY = "*"
"""In a move: all memories of a mode."""


class Event(NamedTuple):
    """One thing that happened to one memory; a field that is not known is None."""

    type: EventType
    memory_id: str
    mode: str | None
    project_id: str | None
    version: int | None
    at: str

    def as_json(self) -> Json:
        """Return the event as listeners get it."""
        return self._asdict()


class _Known(NamedTuple):
    boundary: str
    project_id: str | None = None
    mode: str | None = None
    version: int | None = None


class EventReader:
    """Reads records into events. Remembers the last memories and moves, bounded."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._moves: OrderedDict[tuple[str, str, str], int] = OrderedDict()

    def read(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> list[tuple[str, Event]]:
        """Return boundary and event for what a record tells; what can't be read tells nothing."""
        try:
            return list(self._events((key or b"").decode(), from_json(value or b""), timestamp_ms))
        except (ValueError, KeyError, TypeError, AttributeError):
            return []

    def _events(self, boundary: str, record: Json, at_ms: int) -> Iterator[tuple[str, Event]]:
        match record.get("schema"):
            case "remembered.v1":
                yield self._remembered(record["memory"], at_ms)
            case "forgotten.v1":
                yield from self._of("forgotten", boundary, record["memory_id"], at_ms)
                self._known.pop(record["memory_id"], None)
            case "embedded.v1":
                for one in (record, *record.get("also", ())):
                    if one["status"] == "ready":
                        yield from self._of("embedded", boundary, one["memory_id"], at_ms, mode=one["mode"])
            case "consolidated.v1":
                for memory_id in record["created"]:
                    yield from self._of("consolidated", boundary, memory_id, at_ms)
            case "change.v1" if record["action"] == "move":
                self._note_move(boundary, record, at_ms)

    def _remembered(self, memory: Json, at_ms: int) -> tuple[str, Event]:
        """Tell a new or edited memory from one that was moved or superseded; a recovery repeats the former."""
        memory_id, mode, boundary = memory["memory_id"], memory["mode"], memory["boundary"]
        before = self._known.get(memory_id)
        version = int(memory.get("dropped_versions", 0)) + len(memory["versions"])
        is_moved = before.mode != mode if before and before.mode else self._was_moved(boundary, memory_id, mode, at_ms)
        kind: EventType = "superseded" if memory.get("superseded_by") else "moved" if is_moved else "remembered"
        self._keep(memory_id, _Known(boundary, memory["scope"].get("project_id"), mode, version))
        return next(self._of(kind, boundary, memory_id, at_ms))

    def _note_move(self, boundary: str, change: Json, at_ms: int) -> None:
        """Remember what a command moves: by ids, or all of a mode."""
        ids = [change["memory_id"]] if change.get("memory_id") else list(change.get("memory_ids") or ())
        for memory_id in ids or [ANY_MEMORY]:
            self._moves[boundary, memory_id, str(change["to"])] = at_ms
        while len(self._moves) > MAX_MOVES:
            self._moves.popitem(last=False)

    def _was_moved(self, boundary: str, memory_id: str, mode: str, at_ms: int) -> bool:
        asked = (self._moves.get((boundary, one, mode)) for one in (memory_id, ANY_MEMORY))
        return any(asked_ms is not None and at_ms - asked_ms < MOVE_MS for asked_ms in asked)

    def _of(
        self, kind: EventType, boundary: str, memory_id: str, at_ms: int, *, mode: str | None = None
    ) -> Iterator[tuple[str, Event]]:
        """Yield the event; none where neither the record nor an earlier one names the boundary."""
        known = self._known.get(memory_id, _Known(boundary))
        if boundary or known.boundary:
            at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            event = Event(kind, memory_id, mode or known.mode, known.project_id, known.version, at)
            yield boundary or known.boundary, event

    def _keep(self, memory_id: str, known: _Known) -> None:
        self._known[memory_id] = known
        self._known.move_to_end(memory_id)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
