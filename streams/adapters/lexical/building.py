"""Builds the words of a partition in its own process: half a millisecond for each memory.

In the worker's process it would take the event loop from the partitions that are served, and one core for all
partitions. Rows of memories go to the process's standard input, each behind its length; it writes to the partition's
database, which the worker leaves alone meanwhile. The words are complete when it ends; if it fails, the caller has to
build them itself. The process ends with the worker, however that dies.
"""

import asyncio
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import structlog

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex

COMMIT_EVERY = 1000

WRITE_BYTES = 256 * 1024
"""Rows written to the process at a time."""

_LENGTH = struct.Struct(">I")

log = structlog.get_logger()


class LexicalBuilder:
    """Builds words, as many partitions at once as there are cores."""

    def __init__(self, directory: Path) -> None:
        """`directory` is that of the databases."""
        self._directory = directory.absolute()
        self._slots = asyncio.Semaphore(len(os.sched_getaffinity(0)))

    async def __call__(self, partition: int, rows: Iterable[bytes]) -> bool:
        """Write the words of these rows to a partition that has none; False on failure."""
        async with self._slots:
            try:
                if (code := await _run(self._directory, partition, rows)) == 0:
                    return True
                log.warning("a lexical index could not be built apart", partition=partition, exit_code=code)
            except OSError as problem:
                log.warning("a lexical index could not be built apart", partition=partition, problem=repr(problem))
        return False


async def _run(directory: Path, partition: int, rows: Iterable[bytes]) -> int:
    """Feed the rows to a process; return its exit code. Raises OSError if it ends before it has them."""
    command = (sys.executable, "-m", __name__, str(directory), str(partition))
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    try:
        for piece in _pieces(rows):
            process.stdin.write(piece)
            await process.stdin.drain()
        # End marker. A pipe closed without it means that the worker has died.
        process.stdin.write(_LENGTH.pack(0))
        await process.stdin.drain()
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _pieces(rows: Iterable[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for row in rows:
        piece += _LENGTH.pack(len(row)) + row
        if len(piece) >= WRITE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def main() -> None:
    """Build the words of the rows on standard input."""
    directory, partition = Path(sys.argv[1]), int(sys.argv[2])
    words = SqliteLexicalIndex(directory)
    words.open(partition)
    for number, row in enumerate(_rows(sys.stdin.buffer), start=1):
        words.put(partition, LexicalDocument(Memory.model_validate_json(row)))
        if number % COMMIT_EVERY == 0:
            words.commit(partition)
    words.complete(partition)
    words.close()


def _rows(source: BinaryIO) -> Iterator[bytes]:
    while length := _LENGTH.unpack(_read(source, _LENGTH.size))[0]:
        yield _read(source, length)


def _read(source: BinaryIO, length: int) -> bytes:
    found = source.read(length)
    if len(found) < length:
        sys.exit("the worker has ended")
    return found


if __name__ == "__main__":
    main()
