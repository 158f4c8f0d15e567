"""Back up the logs of a deployment into files, and restore them into an empty deployment; the bytes of files too.

Guaranteed: a file has the bytes that its key names by their hash, or the copy fails; a backup has no file that was
forgotten before it.
"""

import hashlib
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import NamedTuple

from operations.archive import BackupLogs, BackupWriter, InvalidBackup
from operations.copy.entry_builder import EntryBuilder
from operations.copy.kafka_source import open_logs
from operations.copy.kafka_target import open_target
from operations.deployment import Progress, deployment_at, named_scope, read_service_record
from operations.migrate import CopyRun, print_report
from schemas.internal.service import ServiceRecord
from schemas.state.files import SHA256, boundary_prefix, file_key, without_upload
from streams.adapters.files.object_bytes import ObjectBytes, open_file_bytes
from streams.settings import Settings


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """`check_only` compares the checksums, and writes nothing. `digest`: the expected one; None for any."""

    folder: Path
    principal: str | None = None
    check_only: bool = False
    digest: str | None = None


async def back_up(folder: Path, settings: Settings) -> int:
    """Write the records that the folder lacks; return 0."""
    source = await deployment_at(settings)
    service = await read_service_record(source)
    if service is None:
        raise InvalidBackup("the record of the deployment is gone")
    with locked(folder):
        return await _write(folder, source, service)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from writing into a backup's folder. Raises InvalidBackup while one does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise InvalidBackup(f"another process is writing a backup into {folder}") from None
        yield


async def _write(folder: Path, source: Settings, service: ServiceRecord) -> int:
    async with open_logs(source) as logs:
        outcome = await logs.outcome()
        builder = EntryBuilder(source.partitions, source.scope_model, source.scope_model, outcome.forgotten)
        writer = BackupWriter(folder, logs, service, builder)
        with Progress("backup", 0, "records") as progress:
            await writer.write(outcome, progress.reach)
    # After the logs: each turn of theirs has its bytes, or was forgotten since.
    kept = ObjectBytes(str(folder / FOLDER))
    files = await copy_files(open_file_bytes(source.file_place), kept, forgotten=outcome.forgotten)
    segments = writer.manifest.segments
    records, size = sum(segment.records for segment in segments), sum(segment.size for segment in segments)
    sys.stdout.write(
        f"backup: {writer.written} new offsets; {records} records in {len(segments)} files of {size} bytes,"
        f" {len(outcome.forgotten)} forgotten ids\nbackup: {files.copied} new files, {files.present} there,"
        f" {files.size} bytes in all\nbackup: digest {writer.manifest.digest}\n"
    )
    return 0


async def restore(options: RestoreOptions, settings: Settings) -> int:
    """Write the logs of a backup into the deployment of the settings, whose worker rebuilds the memories.

    Return 0, or 1 if a command was refused, or a record could not be written.
    """
    logs = BackupLogs(options.folder, options.digest)
    logs.check()
    taken = f"taken at {logs.manifest.taken_at}, digest {logs.manifest.digest}"
    sys.stderr.write(f"{options.folder}: {taken}; all files are as the manifest says\n")
    kept = ObjectBytes(str(options.folder / FOLDER))
    if options.check_only:
        sys.stderr.write(f"{await check_files(kept)} files of turns are as their names say\n")
        return 0
    made = await read_service_record(settings)
    target = settings if made is None else settings.model_copy(update={"partitions": made.partitions})
    fields = logs.manifest.service.scope_fields
    if tuple(sorted(settings.scope_model.model_fields)) != fields:
        raise InvalidBackup(f"the backup has scopes of {', '.join(fields)}: set MODESTREAM_SCOPE_MODEL accordingly")
    # Before the logs: the worker reads files as soon as it has their turns.
    await copy_files(kept, open_file_bytes(settings.file_place))
    outcome = await logs.outcome()
    builder = EntryBuilder(logs.partitions, settings.scope_model, settings.scope_model, outcome.forgotten)
    name = named_scope(str(options.folder.resolve()), target.broker, target.topic_prefix)
    path = settings.data_dir / "run" / f"copy-{name}.json"
    with Progress("restore", 0, "records") as progress:
        async with open_target(target, options.principal, progress.say) as opened:
            report = await CopyRun("restore", logs, builder, outcome, path).to(opened, progress)
    print_report("restore", report)
    return 1 if report.refusals or report.lost else 0


SPOOLED_BYTES = 8 * 1024 * 1024
"""Bytes of a file that are held in memory on the way; larger ones lie on disk."""

FOLDER = "files"
"""Where they are in the folder of a backup."""


class CopiedFiles(NamedTuple):
    """Files that were copied, and that were there; and their bytes together."""

    copied: int
    present: int
    size: int


async def copy_files(
    source: ObjectBytes, target: ObjectBytes, *, forgotten: Collection[str] = frozenset()
) -> CopiedFiles:
    """Copy the files that the target lacks, and remove its files of memories forgotten at the source.

    Nothing else is removed: a source may be lost. Raises Unavailable.
    """
    wanted = {found.key: found.size for found in await source.find("") if _hash_in(found.key) is not None}
    there = {found.key for found in await target.find("")}
    await target.remove(sorted(key for key in there - wanted.keys() if _turn_in(key) in forgotten))
    missing = sorted(wanted.keys() - there)
    with Progress("files", len(missing), "files") as progress:
        for number, key in enumerate(missing, 1):
            await _copy(source, key, target, key)
            progress.reach(number)
    return CopiedFiles(len(missing), len(wanted) - len(missing), sum(wanted.values()))


async def check_files(files: ObjectBytes) -> int:
    """Compare each file with its hash; return their number. Raises InvalidBackup."""
    stored = await files.find("")
    for found in stored:
        digest = hashlib.sha256()
        async for piece in files.read(found.key):
            digest.update(piece)
        if digest.hexdigest() != _hash_in(found.key):
            raise InvalidBackup(f"{FOLDER}/{found.key} has other bytes than its name says")
    return len(stored)


async def fork_files(files: ObjectBytes, boundary: str, fork: str, turns: Mapping[str, str]) -> int:
    """Copy the files of a boundary's turns to a fork; return how many it lacked. `turns` has the new id of each.

    Raises Unavailable.
    """
    there = {found.key for found in await files.find(boundary_prefix(fork))}
    copied = 0
    for found in await files.find(boundary_prefix(boundary)):
        sha256, memory_id = _hash_in(found.key), _turn_in(found.key)
        if sha256 is None or memory_id not in turns:
            continue
        key = file_key(fork, sha256, turns[memory_id])
        if key not in there:
            await _copy(files, found.key, files, key)
            there.add(key)
            copied += 1
    return copied


async def _copy(source: ObjectBytes, key: str, target: ObjectBytes, target_key: str) -> None:
    with tempfile.SpooledTemporaryFile(SPOOLED_BYTES) as spool:
        digest = hashlib.sha256()
        try:
            async for piece in source.read(key):
                digest.update(piece)
                spool.write(piece)
        except FileNotFoundError:
            # Forgotten since it was listed.
            return
        if digest.hexdigest() != _hash_in(key):
            raise InvalidBackup(f"{key} has other bytes than its name says")
        spool.seek(0)
        await target.put(target_key, spool)


def _turn_in(key: str) -> str:
    return without_upload(key).rpartition("/")[2]


def _hash_in(key: str) -> str | None:
    """Return the hash that a key names; None for keys of other files."""
    parts = key.split("/")
    return parts[1] if len(parts) == 3 and SHA256.fullmatch(parts[1]) else None
