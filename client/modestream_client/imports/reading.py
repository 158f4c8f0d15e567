"""What readers of exports share: entries, turns, JSON and lines as streams, zips, times.

A reader is a generator over one open file: it yields `Message`, `Problem` and `NOT_A_MESSAGE` in the export's order,
and keeps no more of the file than one conversation, line or mail. Guaranteed by `checked`: nothing is yielded of a file
that is not of the format; a long message is cut into several turns, so that nothing of it is lost.
"""

import codecs
import hashlib
import json
import lzma
import mimetypes
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import IO, Any, Protocol

Json = dict[str, Any]

MAX_CONTENT_CHARS = 32_768
"""Characters of a turn's content, and of a resource's text (docs/contract.md)."""

MAX_TURN_RESOURCES = 100
"""Resources of a turn (docs/contract.md)."""

MAX_RESOURCE_CHARS = 4 * MAX_CONTENT_CHARS
"""Characters that the resources of one turn have together: evidence and record of a turn fit into a Kafka record."""

MAX_ID_CHARS = 512

MAX_METADATA_CHARS = 1024
"""Characters of a text in a turn's metadata, such as the title of its conversation."""

MAX_VALUE_CHARS = 64 * 1024 * 1024
"""Characters of one conversation; also the bytes of a mail."""

MAX_LINE_BYTES = 32 * 1024 * 1024
"""Bytes of a line: a session's has its images in it."""

MAX_DEPTH = 100

PARSED_BYTES = 4 * 1024 * 1024
"""Bytes that the parser gets at once: of a longer string it looks at all that has come again with each."""

MAX_UNPACKED_BYTES = 8 * 1024**3
"""Bytes that are read of a zip's members together."""

MAX_MEMBERS = 200_000

MAX_PROBLEMS_BEFORE_A_MESSAGE = 100
"""A file that begins with more broken messages than this is not of the format."""

MAX_SHOWN_CHARS = 200


class Source(Protocol):
    """What readers need of a file."""

    def read(self, size: int = -1, /) -> bytes:
        """Read on."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """Read to the end of the line."""
        ...


class NotOfFormat(ValueError):
    """The file is no export of this format; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A message that is no turn. `place` is the number of its line, from 1, or its id in the export."""

    place: int | str
    code: str
    message: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message: `turn` has the fields of `turn.v1` without its `schema`; `scope` is in it where the export has one.

    `belongs_to` are the names by which a mode can be chosen for it: `project`, `conversation`.
    """

    place: int | str
    turn: Json
    belongs_to: Mapping[str, str | None] = field(default_factory=dict)


class _NotAMessage:
    """Something of the format that is no message, such as a service notice."""


NOT_A_MESSAGE = _NotAMessage()


@dataclass(frozen=True, slots=True)
class MoreProblems:
    """Further broken messages, of which only the number is kept."""

    count: int


Entry = Message | Problem | MoreProblems
Found = Message | Problem | _NotAMessage


def entry_line(entry: Entry) -> bytes:
    """Return an entry as a line of JSON of at most MAX_ENTRY_BYTES, for a reader in a process of its own."""
    if isinstance(entry, Message):
        fields: Json = {"place": entry.place, "turn": entry.turn, "belongs_to": entry.belongs_to}
    else:
        fields = asdict(entry)
    line = json.dumps(fields, ensure_ascii=False, default=float, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_ENTRY_BYTES and isinstance(entry, Message):
        return entry_line(Problem(entry.place, "too_large", f"a message has at most {MAX_ENTRY_BYTES} bytes"))
    return line


MAX_ENTRY_BYTES = 8 * 1024 * 1024
"""Bytes of a message: the service takes no larger record."""


def entry_of(line: Mapping[str, Any]) -> Entry:
    """Return the entry of such a line."""
    return Message(**line) if "turn" in line else MoreProblems(**line) if "count" in line else Problem(**line)


class BrokenMessage(ValueError):
    """A message that can't be understood; the text says why."""


def checked(found: Iterable[Found], expected: str) -> Iterator[Entry]:
    """Yield the entries of an export in their order, long ones in parts, messages of one moment a millisecond apart.

    Problems beyond those that a result names are counted together. Raises NotOfFormat, with what was `expected`, before
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
"""Broken messages that the result of an import names (docs/contract.md)."""

MAX_COUNTED_TOGETHER = 1000


def _told_apart(found: Iterable[Found], expected: str) -> Iterator[Message | Problem]:
    waiting: list[Problem] = []
    is_of_format = False
    clock = _Moments()
    for entry in _expecting(found, expected):
        each = entry if isinstance(entry, _NotAMessage) else replace(entry, place=_short_place(entry.place))
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


def _short_place(place: int | str) -> int | str:
    """Return a place as a result names it, however long the export's own id is."""
    return clean(place)[:MAX_SHOWN_CHARS] if isinstance(place, str) else place


def _expecting(found: Iterable[Found], expected: str) -> Iterator[Found]:
    try:
        yield from found
    except NotOfFormat as problem:
        raise NotOfFormat(f"this is no {expected}: {problem}") from None


class _Moments:
    """Keeps the order of messages that have the same time in the export, which has minutes or seconds alone."""

    def __init__(self) -> None:
        self._last: tuple[str, str | None] = ("", None)
        self._same = 0

    def told_apart(self, message: Message) -> Message:
        """Return a message at its time, some milliseconds later where earlier ones have the same."""
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
    """Cut what is longer than a turn may be; the first part has the message's own id."""
    turn = message.turn
    if "scope" in turn:
        # Lines of `turn.v1` are what they are: the service refuses a long one.
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
        # A text without any of them, such as a key, is cut where it must be.
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
    """Return a turn; one without words has what its resources are as its content, one with neither is no message."""
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
    """Return a resource as an export names it; its type is told by the name where the export does not say."""
    stated = media_type if isinstance(media_type, str) else None
    kind = stated or mimetypes.guess_type(name if isinstance(name, str) else uri)[0] or "application/octet-stream"
    return {
        "uri": clean(uri)[:2048],
        "media_type": clean(kind)[:255],
        "sha256": None,
        "text": clean(text or "") or None,
    }


def clean(text: str) -> str:
    """Return a text without what no JSON text may have: halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def short(name: str) -> str:
    """Return an id of the export; a digest of one that is too long."""
    cleaned = clean(name)
    return cleaned if 0 < len(cleaned) <= MAX_ID_CHARS else digest(name)


def digest(*parts: object) -> str:
    """Return a short id made of these parts."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True, default=str).encode()).hexdigest()[:32]


def iso(moment: datetime) -> str:
    """Return a time as the wire has it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(value: object) -> datetime:
    """Return the time of seconds since the epoch. Raises BrokenMessage."""
    try:
        # Of anything else it raises TypeError.
        return datetime.fromtimestamp(round(float(value), 6), UTC)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        raise BrokenMessage(f"the time {shown(value)} is none") from None


def moment_of(value: object, zone: tzinfo = UTC) -> datetime:
    """Return an ISO-8601 time; one without a zone is of `zone`. Raises BrokenMessage."""
    try:
        # Of anything else it raises TypeError.
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise BrokenMessage(f"the time {shown(value)} is none") from None


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
    """Yield the objects of a list; nothing of what is no list."""
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def shown(value: object) -> str:
    """Return what a value is, and not what it says: problems are kept, and messages are not theirs to keep."""
    if isinstance(value, bool | int | float | Decimal) or value is None:
        return str(value)[:40]
    return {"str": "a text", "dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)


def broken(place: int | str, problem: Exception) -> Problem:
    """Return the entry of a message that can't be understood."""
    if isinstance(problem, BrokenMessage):
        return Problem(place, "invalid_value", str(problem))
    return Problem(
        place, "invalid_value", f"the message has another form than this format's ({type(problem).__name__})"
    )


BROKEN = (BrokenMessage, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""What reading a message of an unexpected form raises."""


class TooLarge:
    """Stands for a value that is larger than what is kept of an export at once."""


TOO_LARGE = TooLarge()


def json_values(source: Source, wanted: Collection[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values at these paths of a JSON text, one at a time; `item` is any index of a list.

    Numbers with a fraction are `Decimal`; a value that is too large is TOO_LARGE. Raises BrokenMessage where the text
    is no JSON, or nests too deep.
    """
    try:
        yield from _values(source, wanted)
    except BrokenMessage:
        raise
    except ValueError:
        # The parser raises it late, of a number of thousands of digits.
        raise BrokenMessage("the JSON has a number that is none") from None


def _values(source: Source, wanted: Collection[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Any]]:
    depths = {len(path) for path in wanted}
    path: list[str] = []
    building: _Value | None = None
    start = 0
    for event, value in _events(source):
        if event in ENDS:
            path.pop()
        elif event == "map_key":
            path[-1] = value
        elif building is None and len(path) in depths and tuple(path) in wanted:
            building, start = _Value(), len(path)
        if building is not None:
            building.take(event, value)
        if event in STARTS:
            if len(path) >= MAX_DEPTH:
                raise BrokenMessage(f"the JSON nests deeper than {MAX_DEPTH} levels")
            path.append("item")
        elif building is not None and event != "map_key" and len(path) == start:
            yield tuple(path), building.whole
            building = None


def _events(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield a parser's events. Raises BrokenMessage."""
    try:
        import ijson  # noqa: PLC0415 - an extra of the distribution, needed for these formats alone
    except ImportError:
        message = "exports in JSON are read with ijson: pip install 'modestream-client[imports]'"
        raise ModuleNotFoundError(message) from None
    try:
        yield from ijson.basic_parse(
            _Rewound(source.read(3).removeprefix(codecs.BOM_UTF8), source), buf_size=PARSED_BYTES
        )
    except (ijson.JSONError, ValueError) as problem:
        # Of its message the first line: the others repeat the text.
        reason = (str(problem).strip().splitlines() or [""])[0][:MAX_SHOWN_CHARS]
        raise BrokenMessage(f"the JSON breaks off or is broken: {reason}") from None


STARTS, ENDS = ("start_map", "start_array"), ("end_map", "end_array")
"""Events of a parser around what is in a container."""

VALUE_CHARS = 64
"""What a value costs beside its characters."""


class _Value:
    """One value, built from a parser's events; what is too large is dropped, to its end."""

    def __init__(self) -> None:
        self.whole: Any = None
        self._open: list[Any] = []
        self._keys: list[str] = []
        self._size = 0

    def take(self, event: str, value: Any) -> None:
        """Take the next event."""
        if self.whole is TOO_LARGE:
            return
        if event in ENDS:
            self._open.pop()
            self._keys.pop()
            return
        self._size += VALUE_CHARS + (len(value) if isinstance(value, str) else 0)
        if self._size > MAX_VALUE_CHARS:
            self.whole, self._open, self._keys = TOO_LARGE, [], []
            return
        if event == "map_key":
            self._keys[-1] = value
            return
        made = {} if event == "start_map" else [] if event == "start_array" else value
        if not self._open:
            self.whole = made
        elif isinstance(container := self._open[-1], dict):
            container[self._keys[-1]] = made
        else:
            container.append(made)
        if event in STARTS:
            self._open.append(made)
            self._keys.append("")


class _Rewound:
    """A source of which the first bytes were read already."""

    def __init__(self, first: bytes, source: Source) -> None:
        self._first = first
        self._source = source

    def read(self, size: int = -1, /) -> bytes:
        """Read on."""
        if self._first and size:
            first, self._first = self._first, b""
            return first
        return self._source.read(size)


def lines(source: Source) -> Iterator[tuple[int, bytes | TooLarge]]:
    """Yield the lines with their numbers from 1, without what ends them; one that is too long is TOO_LARGE."""
    number = 0
    while piece := source.readline(MAX_LINE_BYTES):
        number += 1
        if number == 1:
            piece = piece.removeprefix(codecs.BOM_UTF8)
        if len(piece) == MAX_LINE_BYTES and not piece.endswith(b"\n"):
            # Its rest is read and dropped, so that the next line is the next line.
            while (rest := source.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, TOO_LARGE
        else:
            yield number, piece.rstrip(b"\r\n")


def json_lines(source: Source) -> Iterator[tuple[int, Json | Problem]]:
    """Yield the objects of JSON lines, or why a line is none; empty lines are passed over."""
    for number, line in lines(source):
        if isinstance(line, TooLarge):
            yield number, Problem(number, "too_large", f"a line has at most {MAX_LINE_BYTES} bytes")
        elif line.strip():
            try:
                value = _loaded(line)
            except (ValueError, RecursionError):
                yield number, Problem(number, "invalid_json", "the line is no JSON in UTF-8")
                continue
            if isinstance(value, dict):
                yield number, value
            else:
                yield number, Problem(number, "invalid_json", f"the line is {shown(value)}, not an object")


def _loaded(line: bytes) -> Any:
    """Return the value of a line; halves of surrogate pairs, which no JSON text may have, are replaced."""
    value = json.loads(line.decode())
    # Most lines have none.
    return json.loads(clean(json.dumps(value, ensure_ascii=False))) if b"\\ud" in line.lower() else value


def is_zip(source: IO[bytes]) -> bool:
    """True for a zip."""
    start = source.read(4)
    source.seek(0)
    return start == b"PK\x03\x04"


DAMAGED = (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError, zlib.error, lzma.LZMAError)
"""What unpacking a damaged or encrypted member raises."""


@contextmanager
def _damage_told(name: str) -> Iterator[None]:
    """Raise BrokenMessage for what unpacking raises."""
    try:
        yield
    except DAMAGED as damage:
        raise BrokenMessage(f"{name[:MAX_SHOWN_CHARS]} can't be unpacked: {type(damage).__name__}") from None


class _Limited:
    """A member of a zip, of which no more is read than the whole zip may have."""

    def __init__(self, member: IO[bytes], room: list[int], name: str) -> None:
        self._member, self._room, self._name = member, room, name

    def read(self, size: int = -1, /) -> bytes:
        """Read on. Raises BrokenMessage."""
        return self._spent(self._member.read, size if size >= 0 else MAX_VALUE_CHARS)

    def readline(self, size: int = -1, /) -> bytes:
        """Read a line. Raises BrokenMessage."""
        return self._spent(self._member.readline, size)

    def _spent(self, read: Callable[[int], bytes], size: int) -> bytes:
        # Here, and not around all that reads it: a generator hears nothing of what its caller raises.
        with _damage_told(self._name):
            piece = read(size)
        self._room[0] -= len(piece)
        if self._room[0] < 0:
            raise BrokenMessage(f"the zip unpacks to more than {MAX_UNPACKED_BYTES} bytes")
        return piece


class Archive:
    """The members of a zip, read as streams."""

    def __init__(self, source: IO[bytes]) -> None:
        """Raises NotOfFormat for what is no zip, or one with too many members."""
        try:
            self._zip = zipfile.ZipFile(source)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error):
            raise NotOfFormat("it is no whole zip") from None
        self.names = self._zip.namelist()
        if len(self.names) > MAX_MEMBERS:
            raise NotOfFormat(f"it has more than {MAX_MEMBERS} members")
        self._room = [MAX_UNPACKED_BYTES]

    @contextmanager
    def opened(self, name: str) -> Iterator[Source]:
        """Open a member. Raises BrokenMessage for a damaged or encrypted one, also while it is read."""
        with ExitStack() as stack:
            with _damage_told(name):
                member = stack.enter_context(self._zip.open(name))
            yield _Limited(member, self._room, name)


def members_of(source: IO[bytes], is_wanted: Callable[[str], object], expected: str) -> Iterator[Source]:
    """Yield the file itself, or of a zip its wanted members in the order of their names. Raises NotOfFormat."""
    if not is_zip(source):
        yield source
        return
    archive = Archive(source)
    names = sorted(filter(is_wanted, archive.names))
    if not names:
        raise NotOfFormat(f"it has no {expected}")
    for name in names:
        with archive.opened(name) as member:
            yield member
