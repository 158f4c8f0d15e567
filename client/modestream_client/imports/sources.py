"""Input of the readers: plain files, JSON and lines as streams, zips.

Guaranteed: at most one value, line or piece of a member is kept; larger or damaged ones are reported as such.
"""

import codecs
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Protocol

from modestream_client.imports.reading import MAX_SHOWN_CHARS, BrokenMessage, Json, NotOfFormat, Problem, clean, shown

MAX_VALUE_CHARS = 64 * 1024 * 1024
"""Maximum characters of one conversation; also the bytes of a mail."""

MAX_LINE_BYTES = 32 * 1024 * 1024
"""Maximum bytes of a line: a session's has its images in it."""

MAX_DEPTH = 100

PARSED_BYTES = 4 * 1024 * 1024
"""Bytes per call of the parser, which rescans the received part of a long string on each call."""

MAX_UNPACKED_BYTES = 8 * 1024**3
"""Maximum bytes read of a zip's members together."""

MAX_MEMBERS = 200_000


class Source(Protocol):
    """The part of a file's interface that readers need."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self, size: int = -1, /) -> bytes: ...


class TooLarge:
    """Stands for a value larger than the part of an export kept at once."""


TOO_LARGE = TooLarge()


def json_values(source: Source, wanted: Collection[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values at these paths of a JSON text, one at a time; `item` is any index of a list.

    Numbers with a fraction are `Decimal`; a too large value is TOO_LARGE. Raises BrokenMessage for invalid JSON, or
    JSON that nests too deep.
    """
    try:
        yield from _values(source, wanted)
    except BrokenMessage:
        raise
    except ValueError:
        # The parser raises it late, for a number of thousands of digits.
        raise BrokenMessage("the JSON has an invalid number") from None


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
        # Only the first line of its message: the others repeat the text.
        reason = (str(problem).strip().splitlines() or [""])[0][:MAX_SHOWN_CHARS]
        raise BrokenMessage(f"the JSON breaks off or is broken: {reason}") from None


STARTS, ENDS = ("start_map", "start_array"), ("end_map", "end_array")
"""Events of a parser around the content of a container."""

VALUE_CHARS = 64
"""Cost of a value in addition to its characters."""


class _Value:
    """One value, built from a parser's events; a too large one is dropped, to its end."""

    def __init__(self) -> None:
        self.whole: Any = None
        self._open: list[Any] = []
        self._keys: list[str] = []
        self._size = 0

    def take(self, event: str, value: Any) -> None:
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
    """A source whose first bytes were already read."""

    def __init__(self, first: bytes, source: Source) -> None:
        self._first = first
        self._source = source

    def read(self, size: int = -1, /) -> bytes:
        if self._first and size:
            first, self._first = self._first, b""
            return first
        return self._source.read(size)


def lines(source: Source) -> Iterator[tuple[int, bytes | TooLarge]]:
    """Yield the lines with their numbers from 1, without line ends; a too long one is TOO_LARGE."""
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
    """Yield the objects of JSON lines, or why a line is broken; empty lines are skipped."""
    for number, line in lines(source):
        if isinstance(line, TooLarge):
            yield number, Problem(number, "too_large", f"a line has at most {MAX_LINE_BYTES} bytes")
        elif line.strip():
            try:
                value = _loaded(line)
            except (ValueError, RecursionError):
                yield number, Problem(number, "invalid_json", "the line is not JSON in UTF-8")
                continue
            if isinstance(value, dict):
                yield number, value
            else:
                yield number, Problem(number, "invalid_json", f"the line is {shown(value)}, not an object")


def _loaded(line: bytes) -> Any:
    """Return the value of a line; halves of surrogate pairs, which JSON texts can't have, are replaced."""
    value = json.loads(line.decode())
    # Most lines have none.
    return json.loads(clean(json.dumps(value, ensure_ascii=False))) if b"\\ud" in line.lower() else value


def is_zip(source: IO[bytes]) -> bool:
    start = source.read(4)
    source.seek(0)
    return start == b"PK\x03\x04"


DAMAGED = (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError, zlib.error, lzma.LZMAError)
"""Errors of unpacking a damaged or encrypted member."""


@contextmanager
def _damage_told(name: str) -> Iterator[None]:
    """Raise BrokenMessage for errors of unpacking."""
    try:
        yield
    except DAMAGED as damage:
        raise BrokenMessage(f"{name[:MAX_SHOWN_CHARS]} can't be unpacked: {type(damage).__name__}") from None


class _Limited:
    """A member of a zip, read only up to the limit of the whole zip."""

    def __init__(self, member: IO[bytes], room: list[int], name: str) -> None:
        self._member, self._room, self._name = member, room, name

    def read(self, size: int = -1, /) -> bytes:
        """Read the next bytes. Raises BrokenMessage."""
        return self._spent(self._member.read, size if size >= 0 else MAX_VALUE_CHARS)

    def readline(self, size: int = -1, /) -> bytes:
        """Read a line. Raises BrokenMessage."""
        return self._spent(self._member.readline, size)

    def _spent(self, read: Callable[[int], bytes], size: int) -> bytes:
        # Here, and not around its readers: a generator does not see its caller's exceptions.
        with _damage_told(self._name):
            piece = read(size)
        self._room[0] -= len(piece)
        if self._room[0] < 0:
            raise BrokenMessage(f"the zip unpacks to more than {MAX_UNPACKED_BYTES} bytes")
        return piece


class Archive:
    """The members of a zip, read as streams."""

    def __init__(self, source: IO[bytes]) -> None:
        """Raises NotOfFormat for a file that is not a zip, or has too many members."""
        try:
            self._zip = zipfile.ZipFile(source)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error):
            raise NotOfFormat("the zip is incomplete") from None
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
    """Yield the file itself, or the wanted members of a zip in the order of their names. Raises NotOfFormat."""
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
