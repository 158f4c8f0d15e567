"""The bytes of files in backups: copied with the logs, and back.

Guaranteed: a file has the bytes that its key names by their hash, or the copy fails; a backup has no file that was
forgotten before it.
"""

import hashlib
import tempfile
from collections.abc import Collection
from typing import NamedTuple

from operations.archive import InvalidBackup
from operations.deployment import Progress
from schemas.state.files import SHA256
from streams.adapters.files.object_bytes import ObjectBytes

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
    """Copy what the target lacks, and remove from it what the source has no more of forgotten memories.

    Nothing else is removed: a source may be lost. Raises Unavailable.
    """
    wanted = {found.key: found.size for found in await source.find("") if _hash_in(found.key) is not None}
    there = {found.key for found in await target.find("")}
    await target.remove(sorted(key for key in there - wanted.keys() if key.rpartition("/")[2] in forgotten))
    missing = sorted(wanted.keys() - there)
    with Progress("files", len(missing), "files") as progress:
        for number, key in enumerate(missing, 1):
            await _copy(source, target, key)
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


async def _copy(source: ObjectBytes, target: ObjectBytes, key: str) -> None:
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
        await target.put(key, spool)


def _hash_in(key: str) -> str | None:
    """Return the hash that a key names; None for what is no file of ours."""
    parts = key.split("/")
    return parts[1] if len(parts) == 3 and SHA256.fullmatch(parts[1]) else None
