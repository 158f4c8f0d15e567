"""The logs of a backup, as they are read."""

import gzip
from pathlib import Path

from pydantic_core import from_json

from operations.archive.lines import record_in
from operations.archive.manifest import InvalidBackup, Manifest, Segment
from operations.copy.logs import LOGS, LogPartition, Outcome, Positions
from schemas.messages.records import Record


class BackupLogs:
    """Reads the logs of a backup; implements `LogSource`. One file of each partition is in memory."""

    def __init__(self, folder: Path, digest: str | None = None) -> None:
        """Raises InvalidBackup for a folder without a whole backup, or with one that has another `digest`."""
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
        """Compare all files with the manifest: checksums, records, where they begin and end. Raises InvalidBackup."""
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
        """Return the offsets after the last records."""
        return {place: self.manifest.end(place) for place in self._places()}

    async def read(self, place: LogPartition, offset: int, most: int) -> tuple[list[Record], int]:
        """Return records from an offset on, and the offset to read next."""
        segment = next((one for one in self.manifest.of(place) if one.first <= offset < one.next), None)
        if segment is None:
            return [], offset
        following = [one for one in self._records(segment) if one.offset >= offset]
        if len(following) <= most:
            return following, segment.next
        return following[:most], following[most].offset

    async def outcome(self) -> Outcome:
        """Return what the logs had led to at the last backup."""
        if self.manifest.outcome is None:
            return Outcome()
        known = from_json(gzip.decompress(self.manifest.outcome.check(self._folder)))
        consolidated = {int(partition): offset for partition, offset in known["consolidated"].items()}
        return Outcome(frozenset(known["forgotten"]), frozenset(known["distilled"]), consolidated)

    async def revisions(self) -> list[Record]:
        """Return the revisions of the pipelines."""
        stored = self.manifest.revisions
        lines = b"" if stored is None else gzip.decompress(stored.check(self._folder))
        return [record_in(line, "pipelines", 0) for line in lines.splitlines()]

    def _records(self, segment: Segment) -> list[Record]:
        known = self._open.get(segment.place)
        if known is None or known[0] != segment:
            lines = gzip.decompress(segment.check(self._folder)).splitlines()
            try:
                records = [record_in(line, segment.log, segment.partition) for line in lines]
            except ValueError as problem:
                raise InvalidBackup(f"{segment.file} can't be read by this release: {problem}") from problem
            known = self._open[segment.place] = (segment, records)
        return known[1]

    def _places(self) -> list[LogPartition]:
        return [(log, number) for log in LOGS for number in range(self.partitions)]
