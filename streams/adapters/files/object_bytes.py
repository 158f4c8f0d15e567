"""Bytes of files in a folder or in a bucket of an object store, by `obstore`; and bytes fetched from elsewhere."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import aiohttp
import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from agents.ports.files import FileBytes, StoredBytes
from agents.rules.memory.resources import may_fetch
from schemas.failures import Unavailable
from schemas.state.files import ReadFailed, file_prefix, uploaded_sha256

PIECE_BYTES = 1024 * 1024

CONNECT_S, SILENT_S, FETCH_S = 10.0, 30.0, 300.0
"""Seconds to connect, without any byte, and for all of a file."""

FAILURES = (BaseError, OSError, ValueError)
"""What obstore raises."""


class ObjectBytes:
    """Implements `agents.ports.files.FileBytes` over a folder or `s3://bucket/prefix`."""

    def __init__(self, place: str) -> None:
        """Creates a folder with its first file; opens a bucket with the environment variables of AWS's clients."""
        self._folder = None if "://" in place else Path(place).absolute()
        self._opened: Any = from_url(place) if self._folder is None else None

    @property
    def _store(self) -> Any:
        """The store, which makes the folder: a gateway whose disk is read only serves all but files."""
        if self._opened is None:
            self._opened = LocalStore(prefix=self._folder, automatic_cleanup=True, mkdir=True)
        return self._opened

    @property
    def _is_missing(self) -> bool:
        return self._folder is not None and not self._folder.is_dir()

    async def put(self, key: str, content: IO[bytes]) -> None:
        try:
            await obstore.put_async(self._store, key, content)
        except FAILURES as problem:
            raise Unavailable(f"files can't be stored: {problem}") from None

    async def find(self, prefix: str) -> list[StoredBytes]:
        """Return the files whose keys start with this prefix."""
        stored: list[StoredBytes] = []
        if self._is_missing:
            return stored
        try:
            async for page in obstore.list(self._store, prefix=prefix):
                stored += [
                    StoredBytes(str(entry["path"]), int(entry["size"]), entry["last_modified"]) for entry in page
                ]
        except FileNotFoundError:
            return []
        except FAILURES as problem:
            raise Unavailable(f"files can't be listed: {problem}") from None
        return stored

    async def unfinished(self, prefix: str) -> list[StoredBytes]:
        """Return what a folder has under prefix; of a bucket, whose own rules remove unfinished parts, nothing."""
        return [] if self._folder is None else await asyncio.to_thread(_unfinished, self._folder, prefix)

    async def read(self, *keys: str) -> AsyncIterator[bytes]:
        for key in () if self._is_missing else keys:
            try:
                try:
                    stored = await obstore.get_async(self._store, key)
                except FileNotFoundError:
                    # Removed since it was found: another upload of the file serves as well.
                    continue
                async for piece in stored.stream(min_chunk_size=PIECE_BYTES):
                    yield bytes(piece)
            except FAILURES as problem:
                raise Unavailable(f"files can't be read: {problem}") from None
            return
        raise FileNotFoundError(*keys)

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove files; in a folder one by one, so that a missing file does not stop the removal of others."""
        for key in () if self._is_missing else keys:
            try:
                if "#" in key and self._folder is not None:
                    # Unfinished: obstore removes none of its own names.
                    path = self._folder / key
                    path.unlink(missing_ok=True)
                    with suppress(OSError):  # other files are there
                        path.parent.rmdir()
                        path.parent.parent.rmdir()
                else:
                    await obstore.delete_async(self._store, key)
            except FileNotFoundError:
                continue
            except FAILURES as problem:
                raise Unavailable(f"files can't be removed: {problem}") from None


def _unfinished(folder: Path, prefix: str) -> list[StoredBytes]:
    unfinished = []
    # While obstore writes a file, its name ends in `#` and a number, which obstore never lists.
    for path in (folder / prefix).rglob("*#*"):
        with suppress(FileNotFoundError):  # just finished
            state = path.stat()
            modified = datetime.fromtimestamp(state.st_mtime, UTC)
            unfinished.append(StoredBytes(str(path.relative_to(folder)), state.st_size, modified))
    return unfinished


def open_file_bytes(place: str) -> ObjectBytes:
    """Open where the bytes of files are. Ends the process for a place that can't be."""
    try:
        return ObjectBytes(place)
    except (*FAILURES, TypeError) as problem:
        sys.exit(f"setting MODESTREAM_FILES: {problem}")


class ResourceBytes:
    """Implements `agents.ports.files.FileSource`: uploads, and addresses under allowed prefixes."""

    def __init__(self, files: FileBytes, prefixes: Collection[str], max_bytes: int) -> None:
        self._files = files
        self._prefixes = prefixes
        self._max_bytes = max_bytes

    async def fetch(self, uri: str, boundary: str, path: Path) -> None:
        try:
            async with asyncio.timeout(FETCH_S), aclosing(self._pieces(uri, boundary)) as pieces:
                size = 0
                with path.open("wb") as target:
                    async for piece in pieces:
                        size += len(piece)
                        if size > self._max_bytes:
                            raise ReadFailed("too_large", f"The file has more than {self._max_bytes:,} bytes.")
                        await asyncio.to_thread(target.write, piece)
        except FileNotFoundError:
            raise ReadFailed("unavailable", "There are no bytes of this file.") from None
        except (Unavailable, TimeoutError, aiohttp.ClientError, *FAILURES) as problem:
            raise ReadFailed("unavailable", f"The bytes can't be had now ({type(problem).__name__}).") from None

    async def _pieces(self, uri: str, boundary: str) -> AsyncGenerator[bytes]:
        sha256, scheme = uploaded_sha256(uri), urlsplit(uri).scheme.lower()
        if sha256 is not None:
            stored = await self._files.find(file_prefix(boundary, sha256))
            source = self._files.read(*sorted(found.key for found in stored))
        elif not may_fetch(uri, self._prefixes):
            raise ReadFailed("unavailable", "This address is not one of those that may be fetched.")
        else:
            source = _from_bucket(uri) if scheme == "s3" else _from_web(uri)
        async for piece in source:
            yield piece


async def _from_bucket(uri: str) -> AsyncIterator[bytes]:
    parts = urlsplit(uri)
    found = await obstore.get_async(from_url(f"s3://{parts.netloc}"), parts.path.lstrip("/"))
    async for piece in found.stream(min_chunk_size=PIECE_BYTES):
        yield bytes(piece)


async def _from_web(uri: str) -> AsyncIterator[bytes]:
    """Yield the content of an address. Redirects are not followed, as they may lead anywhere."""
    timeout = aiohttp.ClientTimeout(total=FETCH_S, sock_connect=CONNECT_S, sock_read=SILENT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(uri, allow_redirects=False) as answer:
        if answer.status != 200:
            raise ReadFailed("unavailable", f"The address answers {answer.status}.")
        async for piece in answer.content.iter_chunked(PIECE_BYTES):
            yield piece
