"""Logs of a deployment as files: segments of JSON lines with checksums, and a manifest that names them.

Guaranteed: the manifest names only complete files, and is replaced atomically; a killed process leaves an unnamed file,
which the next one overwrites. Turns forgotten before the backup are written without their text. Keys, values and
headers are texts where they are UTF-8, otherwise `{"base64": "…"}`; null stays null.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json, to_json

from operations.copy.entry_builder import LOGS, Entry, EntryBuilder, Log, LogPartition, LogSource, Outcome, Positions
from schemas.internal.service import UNCHANGEABLE, ServiceRecord
from schemas.messages.records import Record
from streams.adapters.durable_files import fsync_path, write_durably

MANIFEST = "manifest.json"

FileName = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9.-]*\z")]
"""A plain file name, so that no path leads out of the folder."""


class InvalidBackup(ValueError):
    """The folder has no backup, one of another deployment, or a damaged one; the message says what to do."""


def digest_of(stored: Mapping[str, Any]) -> str:
    """Return the SHA-256, as hex digits, of a manifest without its digest, whatever the order of its keys."""
    said = {name: value for name, value in stored.items() if name != "digest"}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class StoredFile(BaseModel, frozen=True):
    file: FileName
    sha256: str
    size: int

    def check(self, folder: Path) -> bytes:
        """Return the content. Raises InvalidBackup if its checksum differs."""
        try:
            content = (folder / self.file).read_bytes()
        except OSError as problem:
            raise InvalidBackup(f"{self.file} can't be read: {problem}; use another copy of the backup") from problem
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InvalidBackup(f"{self.file} is damaged, its checksum differs; use another copy of the backup")
        return content


class Segment(StoredFile, frozen=True):
    """Records of one partition of a log: offsets from `first` to before `next`."""

    log: Log
    partition: int
    first: int
    next: int
    records: int

    @property
    def place(self) -> LogPartition:
        return self.log, self.partition


class Manifest(BaseModel, frozen=True, populate_by_name=True):
    """`service` is the record of the deployment; `outcome` is the state of the logs at `taken_at`.

    `revisions` are those of the pipelines. `digest` is that of `digest_of`.
    """

    schema_: Literal["backup.v1"] = Field(default="backup.v1", alias="schema")
    digest: str = ""
    taken_at: str
    service: ServiceRecord
    segments: tuple[Segment, ...] = ()
    outcome: StoredFile | None = None
    revisions: StoredFile | None = None

    def of(self, place: LogPartition) -> Iterator[Segment]:
        return (segment for segment in self.segments if segment.place == place)

    def end(self, place: LogPartition) -> int:
        """Return the first offset of a partition's next segment."""
        return max((segment.next for segment in self.of(place)), default=0)

    def signed(self) -> Self:
        return self.model_copy(update={"digest": digest_of(self.model_dump(mode="json", by_alias=True))})

    def save(self, folder: Path) -> None:
        """Write it; after a power cut the folder has the former one or this one."""
        write_durably(folder / MANIFEST, self.model_dump_json(by_alias=True, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read it; None if there is no manifest. Raises InvalidBackup, also if it was changed after it was written."""
        path = folder / MANIFEST
        if not path.exists():
            return None
        try:
            content = path.read_bytes()
            manifest = cls.model_validate_json(content)
        except ValidationError as problem:
            raise InvalidBackup(f"{path} can't be read by this release: {problem}") from problem
        # The JSON as stored: a later release may have further fields.
        if manifest.digest != digest_of(from_json(content)):
            raise InvalidBackup(
                f"{path} was changed after it was written, its digest differs; use another copy of the backup"
            )
        for segment in manifest.segments:
            if not 0 <= segment.partition < manifest.service.partitions:
                there = manifest.service.partitions
                raise InvalidBackup(f"{segment.file} is of partition {segment.partition}, and there are {there}")
        return manifest


def line_of(record: Record) -> bytes:
    """Return the line of a record, with its end."""
    return (
        to_json(
            {
                "offset": record.offset,
                "timestamp_ms": record.timestamp_ms,
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [[name, _text(value)] for name, value in record.headers],
            }
        )
        + b"\n"
    )


def record_in(line: bytes, topic: str, partition: int) -> Record:
    """Return the record of a line. Raises ValueError for an invalid line."""
    try:
        read = from_json(line)
        headers = tuple((str(name), _bytes(value)) for name, value in read["headers"])
        place = (topic, partition, int(read["offset"]), int(read["timestamp_ms"]))
        return Record(*place, _bytes(read["key"]), _bytes(read["value"]), headers)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"not a record: {problem!r}") from problem


def _text(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else str(value).encode()


SEGMENT_RECORDS = 10_000
"""Maximum records of one file; 1 MB of usual turns, compressed."""

SEGMENT_BYTES = 32 * 1024 * 1024
"""Bytes of one file before compression, exceeded by one record at most."""

READ_RECORDS = 1000


class BackupWriter:
    def __init__(self, folder: Path, source: LogSource, service: ServiceRecord, builder: EntryBuilder) -> None:
        """Raises InvalidBackup for a folder with a backup of another deployment."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._source = source
        self._builder = builder
        former = Manifest.load(folder)
        if former is not None:
            for name in UNCHANGEABLE:
                there, here = getattr(former.service, name), getattr(service, name)
                if there != here:
                    reason = f"{name} is {there} there and {here} here"
                    raise InvalidBackup(f"{folder} has a backup of another deployment: {reason}; choose another folder")
        self.manifest = former or Manifest(taken_at="", service=service)
        self.written = 0

    async def write(self, outcome: Outcome, advanced: Callable[[int, int], None]) -> None:
        """Write the new records; `advanced` gets the offsets passed, and the total."""
        ends = await self._source.ends()
        first = sum(self.manifest.end(place) for place in ends)
        for place, end in ends.items():
            await self._write_place(place, end, lambda: advanced(first + self.written, sum(ends.values())))
        content = {
            "forgotten": sorted(outcome.forgotten),
            "distilled": sorted(outcome.distilled),
            "consolidated": outcome.consolidated,
        }
        stored = self._store(f"outcome-{_digest(content)}.json.gz", to_json(content))
        revisions = b"".join(map(line_of, await self._source.revisions()))
        pipelines = self._store(f"pipelines-{_digest(revisions.decode())}.jsonl.gz", revisions)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        former = {
            stored_file.file
            for stored_file in (self.manifest.outcome, self.manifest.revisions)
            if stored_file is not None
        }
        self._save(self.manifest.model_copy(update={"outcome": stored, "revisions": pipelines, "taken_at": now}))
        for file in former - {stored.file, pipelines.file}:
            (self._folder / file).unlink(missing_ok=True)

    async def _write_place(self, place: LogPartition, end: int, advanced: Callable[[], None]) -> None:
        while (first := self.manifest.end(place)) < end:
            lines: list[bytes] = []
            offset = first
            while offset < end and len(lines) < SEGMENT_RECORDS and sum(map(len, lines)) < SEGMENT_BYTES:
                records, offset = await self._source.read(place, offset, READ_RECORDS)
                for record in records:
                    built = self._builder.build(place[0], record)
                    if isinstance(built, Entry) and built.is_forgotten:
                        record = replace(record, value=built.value)  # noqa: PLW2901
                    lines.append(line_of(record))
            log, partition = place
            stored = self._store(f"{log}-{partition}-{first:020}.jsonl.gz", b"".join(lines))
            segment = Segment(
                **stored.model_dump(), log=log, partition=partition, first=first, next=offset, records=len(lines)
            )
            self._save(self.manifest.model_copy(update={"segments": (*self.manifest.segments, segment)}))
            self.written += offset - first
            advanced()

    def _store(self, name: str, content: bytes) -> StoredFile:
        # No timestamp in the file: equal content gives an equal file.
        packed = gzip.compress(content, mtime=0)
        draft = self._folder / f"{name}.new"
        draft.write_bytes(packed)
        fsync_path(draft)
        draft.replace(self._folder / name)
        fsync_path(self._folder)
        return StoredFile(file=name, sha256=hashlib.sha256(packed).hexdigest(), size=len(packed))

    def _save(self, manifest: Manifest) -> None:
        self.manifest = manifest.signed()
        self.manifest.save(self._folder)


def _digest(content: object) -> str:
    # A new name, since the former manifest names the former file.
    return hashlib.sha256(to_json(content)).hexdigest()[:12]


class BackupLogs:
    """Reads the logs of a backup; implements `LogSource`. One file of each partition is in memory."""

    def __init__(self, folder: Path, digest: str | None = None) -> None:
        """Raises InvalidBackup for a folder without a complete backup, or with another `digest`."""
        manifest = Manifest.load(folder)
        if manifest is None or manifest.outcome is None:
            raise InvalidBackup(f"{folder} has no whole backup: back up into it again")
        if digest not in (None, manifest.digest):
            raise InvalidBackup(f"{folder} is not the backup with the digest {digest}: {manifest.digest}")
        self._folder = folder
        self._open: dict[LogPartition, tuple[Segment, list[Record]]] = {}
        self.manifest = manifest
        self.partitions = manifest.service.partitions

    def check(self) -> None:
        """Compare all files with the manifest: checksums, records, first and last offsets. Raises InvalidBackup."""
        for place in self._places():
            expected = 0
            for segment in self.manifest.of(place):
                if segment.first != expected:
                    raise InvalidBackup(f"{segment.file} begins at {segment.first}, not at {expected}")
                expected = segment.next
                self._check_records(segment)
        for stored in (self.manifest.outcome, self.manifest.revisions):
            if stored is not None:
                stored.check(self._folder)

    def _check_records(self, segment: Segment) -> None:
        offsets = [record.offset for record in self._records(segment)]
        if len(offsets) != segment.records:
            raise InvalidBackup(f"{segment.file} has {len(offsets)} records, and the manifest says {segment.records}")
        within = range(segment.first, segment.next)
        if (
            not within
            or offsets != sorted({*offsets})
            or any(end not in within for end in (*offsets[:1], *offsets[-1:]))
        ):
            raise InvalidBackup(f"{segment.file} has other records than those from {segment.first} to {segment.next}")

    async def ends(self) -> Positions:
        return {place: self.manifest.end(place) for place in self._places()}

    async def read(self, place: LogPartition, offset: int, most: int) -> tuple[list[Record], int]:
        segment = next(
            (candidate for candidate in self.manifest.of(place) if candidate.first <= offset < candidate.next), None
        )
        if segment is None:
            return [], offset
        following = [record for record in self._records(segment) if record.offset >= offset]
        if len(following) <= most:
            return following, segment.next
        return following[:most], following[most].offset

    async def outcome(self) -> Outcome:
        """Return the outcome stored by the last backup."""
        if self.manifest.outcome is None:
            return Outcome()
        outcome = from_json(gzip.decompress(self.manifest.outcome.check(self._folder)))
        consolidated = {int(partition): offset for partition, offset in outcome["consolidated"].items()}
        return Outcome(frozenset(outcome["forgotten"]), frozenset(outcome["distilled"]), consolidated)

    async def revisions(self) -> list[Record]:
        stored = self.manifest.revisions
        lines = b"" if stored is None else gzip.decompress(stored.check(self._folder))
        return [record_in(line, "pipelines", 0) for line in lines.splitlines()]

    def _records(self, segment: Segment) -> list[Record]:
        loaded = self._open.get(segment.place)
        if loaded is None or loaded[0] != segment:
            lines = gzip.decompress(segment.check(self._folder)).splitlines()
            try:
                records = [record_in(line, segment.log, segment.partition) for line in lines]
            except ValueError as problem:
                raise InvalidBackup(f"{segment.file} can't be read by this release: {problem}") from problem
            loaded = self._open[segment.place] = (segment, records)
        return loaded[1]

    def _places(self) -> list[LogPartition]:
        return [(log, number) for log in LOGS for number in range(self.partitions)]
