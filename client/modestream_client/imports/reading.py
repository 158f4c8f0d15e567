"""What readers of exports share: entries, turns, resources, times.

A reader is a generator over one open file: it yields `Message`, `Problem` and `NOT_A_MESSAGE` in the export's order,
and keeps at most one conversation, line or mail of the file. Guaranteed by `checked`: a file of another format yields
nothing; a long message is cut into several turns, so that nothing of it is lost.
"""

import hashlib
import json
import mimetypes
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

Json = dict[str, Any]

MAX_CONTENT_CHARS = 32_768
"""Maximum characters of a turn's content, and of a resource's text (docs/contract.md)."""

MAX_TURN_RESOURCES = 100
"""Maximum resources of a turn (docs/contract.md)."""

MAX_RESOURCE_CHARS = 4 * MAX_CONTENT_CHARS
"""Maximum characters of all resources of one turn: evidence and record of a turn fit into a Kafka record."""

MAX_ID_CHARS = 512

MAX_METADATA_CHARS = 1024
"""Maximum characters of a text in a turn's metadata, such as the title of its conversation."""

MAX_PROBLEMS_BEFORE_A_MESSAGE = 100
"""Broken messages at the start of a file after which it is not of the format."""

MAX_SHOWN_CHARS = 200


class NotOfFormat(ValueError):
    """The file is not an export of this format; the message names the expected content."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A message that is not a turn. `place` is the number of its line, from 1, or its id in the export."""

    place: int | str
    code: str
    message: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message: `turn` has the fields of `turn.v1` without its `schema`, and a `scope` where the export has one.

    `belongs_to` are the names by which a mode can be chosen for it: `project`, `conversation`.
    """

    place: int | str
    turn: Json
    belongs_to: Mapping[str, str | None] = field(default_factory=dict)


class _NotAMessage:
    """An entry of the format that is not a message, such as a service notice."""


NOT_A_MESSAGE = _NotAMessage()


@dataclass(frozen=True, slots=True)
class MoreProblems:
    """Number of further broken messages."""

    count: int


Entry = Message | Problem | MoreProblems
Found = Message | Problem | _NotAMessage


def entry_line(entry: Entry) -> bytes:
    """Return an entry as a line of JSON of at most MAX_ENTRY_BYTES, for a reader in its own process."""
    if isinstance(entry, Message):
        fields: Json = {"place": entry.place, "turn": entry.turn, "belongs_to": entry.belongs_to}
    else:
        fields = asdict(entry)
    line = json.dumps(fields, ensure_ascii=False, default=float, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_ENTRY_BYTES and isinstance(entry, Message):
        return entry_line(Problem(entry.place, "too_large", f"a message has at most {MAX_ENTRY_BYTES} bytes"))
    return line


MAX_ENTRY_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a message: the service takes no larger record."""


def entry_of(line: Mapping[str, Any]) -> Entry:
    return Message(**line) if "turn" in line else MoreProblems(**line) if "count" in line else Problem(**line)


class BrokenMessage(ValueError):
    """A message that can't be understood; the text says why."""


def checked(found: Iterable[Found], expected: str) -> Iterator[Entry]:
    """Yield the entries of an export in their order, long ones in parts, messages of one moment a millisecond apart.

    Further problems than a result can name are counted together. Raises NotOfFormat, with the `expected` form, before
    the first entry.
    """
    named = more = 0
    for entry in _told_apart(found, expected):
        if isinstance(entry, Problem) and named >= MAX_NAMED_PROBLEMS:
            more += 1
            if more < MAX_COUNTED_TOGETHER:
                continue
            yield MoreProblems(more)
            more = 0
            continue
        if more:
            yield MoreProblems(more)
            more = 0
        named += isinstance(entry, Problem)
        yield entry
    if more:
        yield MoreProblems(more)


MAX_NAMED_PROBLEMS = 100
"""Broken messages named in the result of an import (docs/contract.md)."""

MAX_COUNTED_TOGETHER = 1000


def _told_apart(found: Iterable[Found], expected: str) -> Iterator[Message | Problem]:
    waiting: list[Problem] = []
    is_of_format = False
    clock = _Moments()
    for entry in _expecting(found, expected):
        each = entry
        if not isinstance(entry, _NotAMessage) and isinstance(entry.place, str):
            each = replace(entry, place=clean(entry.place)[:MAX_SHOWN_CHARS])
        if isinstance(each, Problem) and not is_of_format:
            waiting.append(each)
            if len(waiting) > MAX_PROBLEMS_BEFORE_A_MESSAGE:
                break
            continue
        if not is_of_format:
            is_of_format = True
            yield from waiting
        if isinstance(each, Problem):
            yield each
        elif isinstance(each, Message):
            yield from _parts(clock.told_apart(each))
    if not is_of_format:
        raise NotOfFormat(f"this is no {expected}" + (f": {waiting[0].message}" if waiting else ""))


def _expecting(found: Iterable[Found], expected: str) -> Iterator[Found]:
    try:
        yield from found
    except NotOfFormat as problem:
        raise NotOfFormat(f"this is no {expected}: {problem}") from None


class _Moments:
    """Keeps the order of messages with equal times, as exports have only minutes or seconds."""

    def __init__(self) -> None:
        self._last: tuple[str, str | None] = ("", None)
        self._same = 0

    def told_apart(self, message: Message) -> Message:
        """Return a message at its time, some milliseconds later if earlier ones have the same."""
        moment = message.turn.get("occurred_at")
        place = (str(message.turn.get("conversation_id")), moment)
        self._same = self._same + 1 if place == self._last and moment is not None else 0
        self._last = place
        if not self._same or "scope" in message.turn:
            return message
        try:
            later = datetime.fromisoformat(str(moment)) + timedelta(milliseconds=min(self._same, 999))
        except OverflowError:
            # At the end of the year 9999.
            return message
        return replace(message, turn={**message.turn, "occurred_at": iso(later)})


def _parts(message: Message) -> Iterator[Message]:
    """Cut a message longer than a turn; the first part has the message's own id."""
    turn = message.turn
    if "scope" in turn:
        # Lines of `turn.v1` stay as they are: the service refuses a long one.
        yield message
        return
    groups: list[list[Json]] = [[]]
    for resource in _cut_resources(turn.get("resources") or ()):
        size = sum(len(each.get("text") or "") for each in groups[-1]) + len(resource.get("text") or "")
        if groups[-1] and (size > MAX_RESOURCE_CHARS or len(groups[-1]) == MAX_TURN_RESOURCES):
            groups.append([])
        groups[-1].append(resource)
    texts = list(cut(turn["content"]))
    for number in range(max(len(texts), len(groups))):
        group = groups[number] if number < len(groups) else []
        text = texts[number] if number < len(texts) else group[0]["uri"][:MAX_CONTENT_CHARS]
        part = {**turn, "content": text, "resources": group}
        yield replace(message, turn=part if not number else {**part, "turn_id": f"{turn['turn_id']}-part-{number + 1}"})


def _cut_resources(resources: Iterable[Json]) -> Iterator[Json]:
    for resource in resources:
        texts: list[str | None] = [*cut(resource.get("text") or "")] or [None]
        for number, text in enumerate(texts):
            uri = resource["uri"] if not number else f"{resource['uri']}#part-{number + 1}"
            yield {**resource, "uri": uri, "text": text}


def cut(text: str, most: int = MAX_CONTENT_CHARS) -> Iterator[str]:
    """Cut a text behind the last paragraph, line or word that fits."""
    while len(text) > most:
        ends = (text.rfind(mark, most // 2, most) for mark in ("\n\n", "\n", " "))
        # A text without any of them, such as a key, is cut at the limit.
        end = next((end for end in ends if end > 0), most)
        if text[:end].strip():
            yield text[:end].rstrip()
        text = text[end:].lstrip()
    if text:
        yield text


def message(
    place: int | str,
    *,
    turn_id: str,
    conversation_id: str,
    role: str,
    content: str,
    occurred_at: datetime | None,
    speaker: str | None = None,
    resources: Iterable[Json] = (),
    belongs_to: Mapping[str, str | None] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Found:
    """Return a turn; without words its resources are described in its content; without both it is not a message."""
    kept = list(resources)
    names = (resource["uri"].rpartition("/")[2] or resource["uri"] for resource in kept)
    text = clean(content).strip() or ", ".join(names)
    if not text:
        return NOT_A_MESSAGE
    turn = {
        "turn_id": short(turn_id),
        "conversation_id": short(conversation_id),
        "role": role,
        "speaker": clean(speaker)[:MAX_ID_CHARS] if speaker else None,
        "content": text,
        "occurred_at": None if occurred_at is None else iso(occurred_at),
        "resources": kept,
        "metadata": {
            name: value[:MAX_METADATA_CHARS] if isinstance(value, str) else value
            for name, value in (metadata or {}).items()
            if value is not None
        },
    }
    belongs = {kind: name for kind, name in (belongs_to or {}).items() if isinstance(name, str) and name}
    return Message(place, turn, belongs)


def resource(uri: str, media_type: str | None = None, text: str | None = None, name: str | None = None) -> Json:
    """Return a resource as an export names it; a missing type is derived from the name."""
    stated = media_type if isinstance(media_type, str) else None
    kind = stated or mimetypes.guess_type(name if isinstance(name, str) else uri)[0] or "application/octet-stream"
    return {
        "uri": clean(uri)[:2048],
        "media_type": clean(kind)[:255],
        "sha256": None,
        "text": clean(text or "") or None,
    }


def clean(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON texts can't have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def short(name: str) -> str:
    """Return an id from the export, or its digest if it is too long."""
    cleaned = clean(name)
    return cleaned if 0 < len(cleaned) <= MAX_ID_CHARS else digest(name)


def digest(*parts: object) -> str:
    """Return a short id derived from these parts."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True, default=str).encode()).hexdigest()[:32]


def iso(moment: datetime) -> str:
    """Return a time as the wire has it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(value: object) -> datetime:
    """Return the time of seconds since the epoch. Raises BrokenMessage."""
    try:
        # It raises TypeError for other types.
        return datetime.fromtimestamp(round(float(value), 6), UTC)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        raise BrokenMessage(f"the time {shown(value)} is not a valid one") from None


def moment_of(value: object, zone: tzinfo = UTC) -> datetime:
    """Parse an ISO-8601 time; `zone` applies if it names none. Raises BrokenMessage."""
    try:
        # It raises TypeError for other types.
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise BrokenMessage(f"the time {shown(value)} is not a valid one") from None


def text_of(value: object, name: str) -> str:
    """Return a text. Raises BrokenMessage for anything else."""
    if not isinstance(value, str):
        raise BrokenMessage(f"{name} is {shown(value)}, not a text")
    return value


def object_of(value: object, name: str) -> Json:
    """Return a JSON object. Raises BrokenMessage for anything else."""
    if not isinstance(value, dict):
        raise BrokenMessage(f"{name} is {shown(value)}, not an object")
    return value


def dicts(value: object) -> Iterator[Json]:
    """Yield the objects of a list; nothing if it is not a list."""
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def shown(value: object) -> str:
    """Return a value's type, not its content: problems are stored, messages must not be."""
    if isinstance(value, bool | int | float | Decimal) or value is None:
        return str(value)[:40]
    return {"str": "a text", "dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)


def broken(place: int | str, problem: Exception) -> Problem:
    if isinstance(problem, BrokenMessage):
        return Problem(place, "invalid_value", str(problem))
    return Problem(
        place, "invalid_value", f"the message has another form than this format's ({type(problem).__name__})"
    )


BROKEN = (BrokenMessage, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""Errors of reading a message of an unexpected form."""
