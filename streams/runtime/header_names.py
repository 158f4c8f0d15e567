r"""Records with a header whose name is no UTF-8, as clients in C or Go can write them: read like all others.

aiokafka decodes names in C, and raises in the midst of a batch. Whoever begins anew meets the same record again, and
nobody's turns are read any more. Here the rest of such a fetch is read by aiokafka's own Python code, and what is no
UTF-8 in a name is written as `\xff`. All other fetches cost what they did.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, SupportsIndex

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords, _MemoryRecordsPy


def patch_header_decoding() -> None:
    """Have every consumer of this process read such records from now on. aiokafka has no other door for it."""
    fetcher.MemoryRecords = FetchedRecords
    fetcher.PartitionRecords = LenientPartitionRecords


class FetchedRecords:
    """What was fetched of a partition, as aiokafka reads it, with the bytes kept beside."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._records = MemoryRecords(data)
        self.has_next = self._records.has_next
        self.next_batch = self._records.next_batch
        self.size_in_bytes = self._records.size_in_bytes


class LenientPartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of one fetch, one after another."""

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except UnicodeDecodeError:
            self._records: Any = _LenientRecords(self._records.data, self.next_fetch_offset)
            self._records_iterator = self._unpack_records()
            return super().__next__()


class _LenientRecords:
    """The same batches in Python, from the one on that has this offset: records before it are passed over."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._batches = deque(one for one in _batches(data) if one.next_offset > offset)

    def has_next(self) -> bool:
        """Whether there is another."""
        return bool(self._batches)

    def next_batch(self) -> Any:
        """The next one."""
        return self._batches.popleft()


def _batches(data: bytes) -> Iterator[Any]:
    records = _MemoryRecordsPy(data)
    while records.has_next():
        piece = records._next_slice  # noqa: SLF001 - what the next batch is made of
        batch = records.next_batch()
        # Those of old formats have no headers.
        yield _LenientBatch(piece) if isinstance(batch, DefaultRecordBatch) and piece is not None else batch


class _LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    """A batch that decodes any name."""

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer: bytearray = _LenientBytes(self._buffer)


class _LenientBytes(bytearray):
    """Bytes of which any part can be decoded."""

    def __getitem__(self, place: SupportsIndex | slice) -> Any:
        found = super().__getitem__(place)
        return _LenientBytes(found) if isinstance(found, bytearray) else found

    def decode(self, encoding: str = "utf-8", _errors: str = "strict") -> str:
        """As text; what is none is told by its number."""
        return bytes(self).decode(encoding, "backslashreplace")
