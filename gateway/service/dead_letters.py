"""Dead letters: read from their topic, listed for a caller, published again.

Enters: records of the topic of dead letters, and filters of a caller. Leaves: letters of users and projects that the
caller may read; originals on their topics again, for callers that may manage these. Guaranteed: a letter has a user
only if the value itself names it and the key does not name another one, so that nothing is shown to a user whose name a
sender wrote on it; letters without a certain user are shown only to callers that may read everything; a letter is
published again at most once while this gateway runs.
"""

import asyncio
import time
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Protocol

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.kafka.client import PRINCIPAL_HEADER
from pydantic_core import from_json

from gateway.service.access import DEFAULT_PROJECT, PROJECT, audited, may_everywhere, may_in_project
from gateway.service.calls import Call, Caller, Refused
from gateway.service.dismissals import Dismissals
from schemas.messages.records import Outgoing, Record
from schemas.moments import iso, moment_of
from schemas.scopes import ANY_VALUE
from schemas.state.policies import Permission

OURS = "dead_letter_"
"""Prefix of the headers that the worker adds (docs/contract.md)."""

REPLAYED_FROM = "replayed_from"
"""Header of a record that was published again: partition and offset of its dead letter."""

REPLACED_HEADERS = (PRINCIPAL_HEADER, REPLAYED_FROM)
"""Headers of the first record that a replay does not have."""

REPLAYABLE = ("turns", "retrieve", "commands", "consolidate")
"""Topics that clients write to. The others are the worker's own: an old event there could undo later ones."""

PREVIEW_CHARS = 1_000
"""Maximum characters of a value in memory; the rest is read from the log on demand."""

EXCERPT_CHARS = 90
"""Maximum characters of an excerpt: a line of a table."""

MAX_REASON_CHARS = 500
"""Maximum characters of a reason: the service's own sentences are shorter."""


class LetterPosition(NamedTuple):
    """Partition and offset of a letter in the topic of dead letters."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "LetterPosition | None":
        partition, _, offset = text.partition("-")
        if not (partition.isdecimal() and offset.isdecimal() and len(text) < 30):
            return None
        return cls(int(partition), int(offset))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter. `topic` has no prefix, `partition` and `offset` are those of the original; `at` is ISO 8601.

    `excerpt` is the text of a turn, the name of a command, else the beginning of the value. `user` and `project` are
    None if the value does not name them; `cut_from` is the original length in bytes of a value cut by the log.
    """

    position: LetterPosition
    at_ms: int
    at: str
    code: str
    reason: str
    topic: str
    partition: str
    offset: str
    user: str | None
    project: str | None
    key: str | None
    excerpt: str
    preview: str
    size: int
    cut_from: int | None
    replayed_from: LetterPosition | None

    @property
    def order(self) -> tuple[int, LetterPosition]:
        """Sorts letters by time."""
        return self.at_ms, self.position

    @property
    def obstacle(self) -> str | None:
        """Why it can't be published again; None if it can."""
        if self.cut_from is not None:
            return "its value was too large for a dead letter and was cut, so the original bytes are gone"
        if self.topic not in REPLAYABLE:
            return "it is an event of the service itself, which may be outdated: run a reconcile job instead"
        return None


def read_letter(record: Record, topic_prefix: str, boundary: BoundaryFields = USER_BOUNDARY) -> DeadLetter:
    """Return the letter of a record, in a deployment with these boundary fields."""
    value = record.value or b""
    try:
        message = from_json(value)
    except ValueError:
        message = None
    fields: dict[str, Any] = message if isinstance(message, dict) else {}
    user, project = _owner(record, fields, boundary)
    texts = (fields.get(name) for name in ("content", "command", "query"))
    excerpt = next((text[:EXCERPT_CHARS] for text in texts if isinstance(text, str)), "")
    cut = _text(record, "cut")
    return DeadLetter(
        position=LetterPosition(record.partition, record.offset),
        at_ms=record.timestamp_ms,
        at=_text(record, "time") or iso(moment_of(record.timestamp_ms)),
        code=_text(record, "code"),
        reason=_text(record, "reason")[:MAX_REASON_CHARS],
        topic=_text(record, "topic").removeprefix(topic_prefix),
        partition=_text(record, "partition"),
        offset=_text(record, "offset"),
        user=user,
        project=project,
        key=None if record.key is None else shown(record.key, PREVIEW_CHARS),
        excerpt=excerpt or shown(value, EXCERPT_CHARS),
        preview=shown(value, PREVIEW_CHARS),
        size=len(value),
        cut_from=int(cut) if cut.isdecimal() else len(value) if cut else None,
        replayed_from=LetterPosition.parse((record.header(REPLAYED_FROM) or b"").decode(errors="replace")),
    )


def replay_of(record: Record, topic_prefix: str, principal: str | None) -> Outgoing:
    """Return the original of a letter's record: same bytes and key, our headers replaced by the position of the letter.

    It acts as `principal`, that of the replay's caller, whose grants count: the first record's header is only a claim.
    A turn keeps approximately its time, which counts if it names none itself.
    """
    topic = (record.header(OURS + "topic") or b"").decode(errors="replace")
    headers = [
        header for header in record.headers if not header[0].startswith(OURS) and header[0] not in REPLACED_HEADERS
    ]
    if principal is not None:
        headers.append((PRINCIPAL_HEADER, principal.encode()))
    position = str(LetterPosition(record.partition, record.offset)).encode()
    is_turn = topic.removeprefix(topic_prefix) == REPLAYABLE[0]
    timestamp = record.timestamp_ms if is_turn else None
    return Outgoing(topic, record.key, record.value, (*headers, (REPLAYED_FROM, position)), timestamp_ms=timestamp)


def shown(data: bytes, chars: int) -> str:
    """Return bytes as text, at most `chars` characters; invalid UTF-8 shows as replacement characters."""
    return data[: 4 * chars].decode(errors="replace")[:chars]


def _text(record: Record, name: str) -> str:
    return (record.header(OURS + name) or b"").decode(errors="replace")


def _owner(record: Record, message: dict[str, Any], boundary: BoundaryFields) -> tuple[str | None, str | None]:
    """Return user and project that the value names; the project is None for several."""
    scope = message.get("scope")
    if not isinstance(scope, dict) or not all(isinstance(scope.get(field), str) for field in boundary):
        return None, None
    if record.key not in (None, boundary.key(scope).encode()):
        return None, None
    project = scope.get(PROJECT, DEFAULT_PROJECT)
    return boundary.name(scope), project if isinstance(project, str) and project != ANY_VALUE else None


MAX_LETTERS = 10_000
"""Letters in memory, about 20 MB; earlier ones are in the log, for any Kafka tool."""


class DeadLetterList:
    """The letters, and which of them were published again. Belongs to one event loop."""

    def __init__(self, limit: int = MAX_LETTERS, dismissals: Dismissals | None = None) -> None:
        self._limit = limit
        self._dismissals = dismissals or Dismissals()
        self._ordered: list[tuple[tuple[int, LetterPosition], DeadLetter]] = []
        self._letters: dict[LetterPosition, DeadLetter] = {}
        self._replayed: dict[LetterPosition, LetterPosition | None] = {}
        self.is_full = False
        """True once an earlier letter had to be left out."""

    def take(self, letter: DeadLetter) -> None:
        """Take a letter; if it is a replayed record refused again, mark the earlier letter."""
        if letter.position in self._letters:
            return
        self._letters[letter.position] = letter
        insort(self._ordered, (letter.order, letter), key=lambda entry: entry[0])
        if letter.replayed_from is not None:
            self._replayed[letter.replayed_from] = letter.position
        while len(self._ordered) > self._limit:
            _, dropped = self._ordered.pop(0)
            self.is_full = True
            del self._letters[dropped.position]
            self._replayed.pop(dropped.position, None)
            if dropped.replayed_from is not None and self._replayed.get(dropped.replayed_from) == dropped.position:
                del self._replayed[dropped.replayed_from]

    def find(self, position: LetterPosition) -> DeadLetter | None:
        return self._letters.get(position)

    def newest(self, before: tuple[int, LetterPosition] | None = None) -> Iterator[DeadLetter]:
        """Yield letters, newest first, from before a letter's `order`."""
        end = len(self._ordered) if before is None else bisect_left(self._ordered, before, key=lambda entry: entry[0])
        return (self._ordered[index][1] for index in range(end - 1, -1, -1))

    def mark_replayed(self, position: LetterPosition) -> None:
        self._replayed.setdefault(position, None)

    def is_replayed(self, position: LetterPosition) -> bool:
        """True if the letter is known to have been published again: since this gateway started, or it came back."""
        return position in self._replayed

    def dismiss(self, letter: DeadLetter, *, dismissed: bool) -> None:
        """Mark a letter as dealt with, or take that back. Raises Refused, `unavailable`."""
        self._dismissals.change(f"{letter.at_ms} {letter.position}", dismissed=dismissed)

    def is_dismissed(self, letter: DeadLetter) -> bool:
        return f"{letter.at_ms} {letter.position}" in self._dismissals

    def came_back(self, position: LetterPosition) -> LetterPosition | None:
        """Return the position of the letter that a republished letter became; None without one."""
        return self._replayed.get(position)


REPLAY_BATCH = 100
"""Records published between checks of the time left: some tens of milliseconds."""


class DeadLetterTopic(Protocol):
    """The topic of dead letters. All raise Refused, `unavailable`."""

    topic_prefix: str
    boundary_fields: BoundaryFields

    async def begin(self) -> None:
        """Follow the topic, if not yet started; return once all existing letters are in the list."""

    def read(self, positions: Sequence[LetterPosition]) -> AsyncGenerator[Record]:
        """Yield the whole records at these positions, skipping records that no longer exist."""

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Write records; return once all are acknowledged."""


class NoDeadLetters:
    """An empty topic, for a service that does not show letters."""

    topic_prefix = ""
    boundary_fields = USER_BOUNDARY

    async def begin(self) -> None:
        """There is nothing to follow."""

    async def read(self, positions: Sequence[LetterPosition]) -> AsyncGenerator[Record]:  # noqa: ARG002
        """Yield nothing."""
        for _ in ():
            yield _

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Write nothing."""


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Filter of letters; None admits any value. `until` is the order of the newest one.

    Dismissed letters are listed separately.
    """

    user: str | None = None
    code: str | None = None
    topic: str | None = None
    until: tuple[int, LetterPosition] | None = None
    dismissed: bool = False

    def admits(self, letter: DeadLetter) -> bool:
        fields = ((self.user, letter.user), (self.code, letter.code), (self.topic, letter.topic))
        return all(wanted is None or wanted == value for wanted, value in fields) and (
            self.until is None or letter.order <= self.until
        )


class LetterPage(NamedTuple):
    """Letters, newest first, and the position of the last one if more follow."""

    items: list[DeadLetter]
    next: str | None


class Tally(NamedTuple):
    """Facet counts: total, per code, per topic (each ignoring its own filter), replayable."""

    total: int
    codes: Counter[str]
    topics: Counter[str]
    replayable: list[DeadLetter]


class DeadLetters:
    def __init__(self, letters: DeadLetterList, topic: DeadLetterTopic) -> None:
        self._letters = letters
        self._topic = topic
        self._replaying = asyncio.Lock()

    async def begin(self) -> None:
        """Follow the topic. Raises Refused, `unavailable`."""
        await self._topic.begin()

    @property
    def is_full(self) -> bool:
        """True if earlier letters are only in the log."""
        return self._letters.is_full

    def page(self, caller: Caller, wanted: LetterFilter, limit: int, cursor: str | None) -> LetterPage:
        """Return a page of letters. Raises Refused for a wrong cursor."""
        before = None
        if cursor is not None:
            if (letter := self._find(cursor)) is None:
                raise Refused("invalid_value", "this page has moved on: begin at the newest letters", "cursor")
            before = letter.order
        letters = list(islice(self._readable(caller, wanted, before), limit + 1))
        return LetterPage(letters[:limit], str(letters[limit - 1].position) if len(letters) > limit else None)

    def tally(self, caller: Caller, wanted: LetterFilter) -> Tally:
        """Count the letters that the caller may see."""
        of_user = list(self._readable(caller, LetterFilter(user=wanted.user, dismissed=wanted.dismissed)))
        admitted = [letter for letter in of_user if wanted.admits(letter)]
        codes = Counter(letter.code for letter in of_user if wanted.topic in (None, letter.topic))
        topics = Counter(letter.topic for letter in of_user if wanted.code in (None, letter.code))
        replayable = [letter for letter in admitted if self.obstacle(caller, letter) is None]
        return Tally(len(admitted), codes, topics, replayable)

    def find(self, caller: Caller, letter_id: str) -> DeadLetter:
        """Return one letter. Raises Refused, `not_found`, also for one that the caller may not see."""
        letter = self._find(letter_id)
        if letter is None or not _may(caller, letter, "read"):
            raise Refused("not_found", "there is no such dead letter among the last ones", names_resource=True)
        return letter

    async def whole(self, letter: DeadLetter) -> Record | None:
        """Return the record of a letter from the log; None if it is gone. Raises Refused, `unavailable`."""
        async with aclosing(self._topic.read([letter.position])) as records:
            return await anext(records, None)

    def is_replayed(self, letter: DeadLetter) -> bool:
        return self._letters.is_replayed(letter.position)

    def came_back(self, letter: DeadLetter) -> LetterPosition | None:
        return self._letters.came_back(letter.position)

    def obstacle(self, caller: Caller, letter: DeadLetter) -> str | None:
        """Return why the caller can't have it published again; None if it can."""
        if letter.obstacle is not None:
            return letter.obstacle
        if self.is_replayed(letter):
            return "it was published again already"
        return None if _may(caller, letter, "manage") else "this key may not manage this user"

    def may_manage(self, caller: Caller, letter: DeadLetter) -> bool:
        """True if the caller may publish a letter again, or dismiss it."""
        return _may(caller, letter, "manage")

    def is_dismissed(self, letter: DeadLetter) -> bool:
        return self._letters.is_dismissed(letter)

    def dismiss(self, call: Call, letter: DeadLetter, *, dismissed: bool = True) -> None:
        """Take a letter out of the list, or put it back; the topic keeps it. Raises Refused."""
        if not _may(call.caller, letter, "manage"):
            raise Refused("not_allowed", "this key may not manage the user of this letter")
        with audited(call, "dismiss", {}, letters=[str(letter.position)], dismissed=dismissed):
            self._letters.dismiss(letter, dismissed=dismissed)

    async def replay_edited(self, call: Call, letter: DeadLetter, value: bytes) -> None:
        """Publish a letter with another value, under its key. Raises Refused.

        The value must belong to the letter's user, so that an edit can't reach another user's data.
        """
        async with self._replaying:
            if (obstacle := self.obstacle(call.caller, letter)) is not None:
                raise Refused("invalid_value", f"this letter can't be published again: {obstacle}", "value")
            async with aclosing(self._topic.read([letter.position])) as records:
                originals = [record async for record in records]
            if not originals:
                raise Refused("not_found", "the topic no longer has this letter", "value")
            edited = replace(originals[0], value=value)
            after = read_letter(edited, self._topic.topic_prefix, self._topic.boundary_fields)
            try:
                is_object = isinstance(from_json(value), dict)
            except ValueError:
                is_object = False
            if not is_object:
                raise Refused("invalid_value", "the value is not a JSON object", "value")
            if letter.user is not None and after.user != letter.user:
                raise Refused("invalid_value", f"the value must stay a record of {letter.user}", "value")
            if not _may(call.caller, after, "manage"):
                raise Refused("not_allowed", "this key may not manage the user of this value")
            with audited(call, "replay", {}, letters=[str(letter.position)], edited=True) as counts:
                self._letters.mark_replayed(letter.position)
                await self._topic.publish([replay_of(edited, self._topic.topic_prefix, call.caller.principal)])
                counts["replayed"] = 1

    async def replay(self, call: Call, letters: Sequence[DeadLetter]) -> int:
        """Publish the originals of letters again, as many as the call's time allows; return their number.

        Raises Refused for a letter that can't be, before anything is written.
        """
        async with self._replaying:
            for letter in letters:
                if not _may(call.caller, letter, "manage"):
                    raise Refused("not_allowed", "this key may not manage the user of this letter")
                if (obstacle := self.obstacle(call.caller, letter)) is not None:
                    raise Refused("invalid_value", f"this letter can't be replayed: {obstacle}")
            positions = sorted(letter.position for letter in letters)
            batch: list[Record] = []
            with audited(call, "replay", {}, letters=[str(position) for position in positions]) as counts:
                counts["replayed"] = 0
                async with aclosing(self._topic.read(positions)) as records:
                    async for record in records:
                        batch.append(record)
                        if len(batch) == REPLAY_BATCH:
                            counts["replayed"] += await self._publish(batch, call.caller.principal)
                            batch = []
                        if time.monotonic() > call.deadline:
                            break
                counts["replayed"] += await self._publish(batch, call.caller.principal)
            return counts["replayed"]

    async def _publish(self, batch: Sequence[Record], principal: str | None) -> int:
        prefix = self._topic.topic_prefix
        # Read again, so checked again: the log's record is the one published.
        sound = [record for record in batch if read_letter(record, prefix).obstacle is None]
        # Marked before it is written: if interrupted in between, a letter may be written, and a second time would be a
        # second copy.
        for record in sound:
            self._letters.mark_replayed(LetterPosition(record.partition, record.offset))
        await self._topic.publish([replay_of(record, prefix, principal) for record in sound])
        return len(sound)

    def _find(self, letter_id: str) -> DeadLetter | None:
        position = LetterPosition.parse(letter_id)
        return None if position is None else self._letters.find(position)

    def _readable(
        self, caller: Caller, wanted: LetterFilter, before: tuple[int, LetterPosition] | None = None
    ) -> Iterator[DeadLetter]:
        newest = self._letters.newest(before)
        return (
            letter
            for letter in newest
            if self.is_dismissed(letter) == wanted.dismissed and wanted.admits(letter) and _may(caller, letter, "read")
        )


def _may(caller: Caller, letter: DeadLetter, permission: Permission) -> bool:
    """True if the caller may do this with a letter; one without a certain user needs a grant for everything."""
    if letter.user is None:
        return may_everywhere(caller, permission)
    return may_in_project(caller, letter.user, letter.project, permission)
