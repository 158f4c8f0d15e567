"""The manifest of a backup: what was backed up, in which files, and how far."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from operations.copy.logs import Log, LogPartition
from schemas.internal.service import ServiceRecord
from streams.adapters.durable_files import write_durably

MANIFEST = "manifest.json"

FileName = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9.-]*\z")]
"""A file in the folder itself: no path leads out of it."""


class InvalidBackup(ValueError):
    """The folder is no backup, of another deployment, or damaged; the message says what to do."""


def digest_of(stored: Mapping[str, Any]) -> str:
    """Return the SHA-256, as hex digits, of all that a manifest says but its digest, whatever the order of its keys."""
    said = {name: value for name, value in stored.items() if name != "digest"}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class StoredFile(BaseModel, frozen=True):
    """A file of the backup, with its checksum."""

    file: FileName
    sha256: str
    size: int

    def check(self, folder: Path) -> bytes:
        """Return the content. Raises InvalidBackup if it is not what was written."""
        try:
            content = (folder / self.file).read_bytes()
        except OSError as problem:
            raise InvalidBackup(f"{self.file} can't be read: {problem}; use another copy of the backup") from problem
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InvalidBackup(f"{self.file} is damaged, its checksum differs; use another copy of the backup")
        return content


class Segment(StoredFile, frozen=True):
    """Records of one partition of a log: from the offset `first` on, the next one would have `next`."""

    log: Log
    partition: int
    first: int
    next: int
    records: int

    @property
    def place(self) -> LogPartition:
        """The log and the partition."""
        return self.log, self.partition


class Manifest(BaseModel, frozen=True, populate_by_name=True):
    """`service` is the record of the deployment; `outcome` is what the logs had led to at `taken_at`.

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
        """Yield the segments of a partition, in their order."""
        return (one for one in self.segments if one.place == place)

    def end(self, place: LogPartition) -> int:
        """Return the offset that the next segment of a partition begins with."""
        return max((one.next for one in self.of(place)), default=0)

    def signed(self) -> Self:
        """Return it with its digest."""
        return self.model_copy(update={"digest": digest_of(self.model_dump(mode="json", by_alias=True))})

    def save(self, folder: Path) -> None:
        """Write it; after a power cut the folder has the former one or this one."""
        write_durably(folder / MANIFEST, self.model_dump_json(by_alias=True, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read it; None if there is none. Raises InvalidBackup, also for one that was changed after it was written."""
        path = folder / MANIFEST
        if not path.exists():
            return None
        try:
            content = path.read_bytes()
            manifest = cls.model_validate_json(content)
        except ValidationError as problem:
            raise InvalidBackup(f"{path} can't be read by this release: {problem}") from problem
        # What is stored, not what this release reads of it: a later one may have written further fields.
        if manifest.digest != digest_of(from_json(content)):
            raise InvalidBackup(
                f"{path} was changed after it was written, its digest differs; use another copy of the backup"
            )
        for segment in manifest.segments:
            if not 0 <= segment.partition < manifest.service.partitions:
                there = manifest.service.partitions
                raise InvalidBackup(f"{segment.file} is of partition {segment.partition}, and there are {there}")
        return manifest
