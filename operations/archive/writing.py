"""Write the logs of a deployment into a folder, from where the folder ends.

Guaranteed: the manifest names whole files only, and is replaced at once; a process that is killed leaves a file that
nothing names, which the next one overwrites. What was forgotten before is written without what was said.
"""

import gzip
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic_core import to_json

from operations.archive.lines import line_of
from operations.archive.manifest import InvalidBackup, Manifest, Segment, StoredFile
from operations.copy.entries import EntryBuilder
from operations.copy.logs import Entry, LogPartition, LogSource, Outcome
from schemas.internal.service import UNCHANGEABLE, ServiceRecord
from schemas.messages.records import Record
from streams.adapters.durable_files import fsync_path

SEGMENT_RECORDS = 10_000
"""Records of one file; of usual turns 1 MB, compressed."""

SEGMENT_BYTES = 32 * 1024 * 1024
"""Bytes of one file before it is compressed, and one record more."""

READ_RECORDS = 1000
"""Records that are read at once."""


class BackupWriter:
    """Writes one backup."""

    def __init__(self, folder: Path, source: LogSource, service: ServiceRecord, builder: EntryBuilder) -> None:
        """Raises InvalidBackup for a folder with a backup of another deployment."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._source = source
        self._builder = builder
        former = Manifest.load(folder)
        if former is not None:
            _check_same(former.service, service, folder)
        self.manifest = former or Manifest(taken_at="", service=service)
        self.written = 0

    async def write(self, outcome: Outcome, advanced: Callable[[int, int], None]) -> None:
        """Write what is new; `advanced` gets the offsets passed, and in all."""
        ends = await self._source.ends()
        first = sum(self.manifest.end(place) for place in ends)
        for place, end in ends.items():
            await self._write_place(place, end, lambda: advanced(first + self.written, sum(ends.values())))
        known = {
            "forgotten": sorted(outcome.forgotten),
            "distilled": sorted(outcome.distilled),
            "consolidated": outcome.consolidated,
        }
        stored = self._store(f"outcome-{_digest(known)}.json.gz", to_json(known))
        revisions = b"".join(map(line_of, await self._source.revisions()))
        pipelines = self._store(f"pipelines-{_digest(revisions.decode())}.jsonl.gz", revisions)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        former = {one.file for one in (self.manifest.outcome, self.manifest.revisions) if one is not None}
        self._save(self.manifest.model_copy(update={"outcome": stored, "revisions": pipelines, "taken_at": now}))
        for file in former - {stored.file, pipelines.file}:
            (self._folder / file).unlink(missing_ok=True)

    async def _write_place(self, place: LogPartition, end: int, advanced: Callable[[], None]) -> None:
        while (first := self.manifest.end(place)) < end:
            lines: list[bytes] = []
            offset = first
            while offset < end and len(lines) < SEGMENT_RECORDS and sum(map(len, lines)) < SEGMENT_BYTES:
                records, offset = await self._source.read(place, offset, READ_RECORDS)
                lines += [line_of(self._without_forgotten(place, one)) for one in records]
            self._add(place, first, offset, lines)
            self.written += offset - first
            advanced()

    def _without_forgotten(self, place: LogPartition, record: Record) -> Record:
        built = self._builder.build(place[0], record)
        return replace(record, value=built.value) if isinstance(built, Entry) and built.is_forgotten else record

    def _add(self, place: LogPartition, first: int, following: int, lines: Sequence[bytes]) -> None:
        log, partition = place
        stored = self._store(f"{log}-{partition}-{first:020}.jsonl.gz", b"".join(lines))
        segment = Segment(
            **stored.model_dump(), log=log, partition=partition, first=first, next=following, records=len(lines)
        )
        self._save(self.manifest.model_copy(update={"segments": (*self.manifest.segments, segment)}))

    def _store(self, name: str, content: bytes) -> StoredFile:
        # Without the time: the same content is the same file.
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


def _digest(known: object) -> str:
    # A name of its own: the manifest of before names the file of before.
    return hashlib.sha256(to_json(known)).hexdigest()[:12]


def _check_same(former: ServiceRecord, present: ServiceRecord, folder: Path) -> None:
    for name in UNCHANGEABLE:
        if getattr(former, name) != getattr(present, name):
            reason = f"{name} is {getattr(former, name)} there and {getattr(present, name)} here"
            raise InvalidBackup(f"{folder} has a backup of another deployment: {reason}; choose another folder")
