"""A dead letter: what it was, why it could not be processed, and whose it is. Pure.

Enters: a record of the topic of dead letters. Leaves: `DeadLetter`, with a bounded part of the value, and the record to
publish again. Guaranteed: a letter has a user only where the value itself names it and the key does not name another
one, so that nothing is shown to a user whose name a sender wrote on it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.kafka.client import PRINCIPAL_HEADER
from pydantic_core import from_json

from gateway.service.access import DEFAULT_PROJECT, PROJECT
from schemas.messages.records import Outgoing, Record
from schemas.moments import iso, moment_of
from schemas.scopes import ANY_VALUE

OURS = "dead_letter_"
"""The beginning of the headers that the worker adds (docs/contract.md)."""

REPLAYED_FROM = "replayed_from"
"""Header of a record that was published again: partition and offset of its dead letter."""

REPLACED_HEADERS = (PRINCIPAL_HEADER, REPLAYED_FROM)
"""Headers of the first record that are not its replay's."""

REPLAYABLE = ("turns", "retrieve", "commands", "consolidate")
"""Topics that clients write to. The others are the worker's own: an old event there could undo what came later."""

PREVIEW_CHARS = 1_000
"""Characters of a value that are kept; the rest is read from the log when it is asked for."""

EXCERPT_CHARS = 90
"""Characters of an excerpt: a line of a table."""

MAX_REASON_CHARS = 500
"""Characters of a reason that are kept: the service's own sentences are shorter."""


class LetterPlace(NamedTuple):
    """Where a letter is in the topic of dead letters."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "LetterPlace | None":
        """Return the place that a text names; None for another text."""
        partition, _, offset = text.partition("-")
        if not (partition.isdecimal() and offset.isdecimal() and len(text) < 30):
            return None
        return cls(int(partition), int(offset))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter. `topic` has no prefix, `partition` and `offset` are those of the original; `at` is ISO 8601.

    `excerpt` tells it from others: the text of a turn, the name of a command, else the beginning of the value.

    `user` and `project` are None where the value does not tell them; `cut_from` is the length in bytes of a value of
    which the log itself has a part alone.
    """

    place: LetterPlace
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
    replayed_from: LetterPlace | None

    @property
    def order(self) -> tuple[int, LetterPlace]:
        """Sorts letters by time."""
        return self.at_ms, self.place

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
    message = _message(record)
    user, project = _owner(record, message, boundary)
    cut = _text(record, "cut")
    return DeadLetter(
        place=LetterPlace(record.partition, record.offset),
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
        excerpt=_excerpt(message) or shown(value, EXCERPT_CHARS),
        preview=shown(value, PREVIEW_CHARS),
        size=len(value),
        cut_from=int(cut) if cut.isdecimal() else len(value) if cut else None,
        replayed_from=LetterPlace.parse((record.header(REPLAYED_FROM) or b"").decode(errors="replace")),
    )


def replay_of(record: Record, topic_prefix: str, principal: str | None) -> Outgoing:
    """Return the original of a letter's record: same bytes and key, our headers replaced by the place of the letter.

    It acts as `principal`, the one of the replay's caller, whose grants count: the first one's header is a claim.
    A turn keeps about its time, which counts where it names none itself.
    """
    topic = (record.header(OURS + "topic") or b"").decode(errors="replace")
    headers = [one for one in record.headers if not one[0].startswith(OURS) and one[0] not in REPLACED_HEADERS]
    if principal is not None:
        headers.append((PRINCIPAL_HEADER, principal.encode()))
    place = str(LetterPlace(record.partition, record.offset)).encode()
    is_turn = topic.removeprefix(topic_prefix) == REPLAYABLE[0]
    timestamp = record.timestamp_ms if is_turn else None
    return Outgoing(topic, record.key, record.value, (*headers, (REPLAYED_FROM, place)), timestamp_ms=timestamp)


def shown(data: bytes, chars: int) -> str:
    """Return bytes as text, at most `chars` characters; what is no UTF-8 shows as replacement characters."""
    return data[: 4 * chars].decode(errors="replace")[:chars]


def _text(record: Record, name: str) -> str:
    return (record.header(OURS + name) or b"").decode(errors="replace")


def _message(record: Record) -> dict[str, Any]:
    """Return the value as JSON; no fields for one that is none."""
    try:
        message = from_json(record.value or b"")
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _excerpt(message: dict[str, Any]) -> str:
    told = (message.get(name) for name in ("content", "command", "query"))
    return next((text[:EXCERPT_CHARS] for text in told if isinstance(text, str)), "")


def _owner(record: Record, message: dict[str, Any], boundary: BoundaryFields) -> tuple[str | None, str | None]:
    """Return user and project that the value names; the project is None for several of them."""
    scope = message.get("scope")
    if not isinstance(scope, dict) or not all(isinstance(scope.get(field), str) for field in boundary):
        return None, None
    if record.key not in (None, boundary.key(scope).encode()):
        return None, None
    project = scope.get(PROJECT, DEFAULT_PROJECT)
    return boundary.name(scope), project if isinstance(project, str) and project != ANY_VALUE else None
