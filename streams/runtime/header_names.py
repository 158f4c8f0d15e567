r"""Lenient decoding of header names that are not UTF-8, as clients in C or Go can write them.

aiokafka decodes names in C and raises in the middle of a batch. A restart meets the same record again, so that one
record blocks its partition for good. Here the rest of such a fetch is read by aiokafka's own Python code, with invalid
bytes of a name as `\xff`. All other fetches cost the same as before.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any, SupportsIndex

from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords, _MemoryRecordsPy
from modestream_client.kafka.own_clients import fetch_until_closed, write_if_open

_fetch = Fetcher._fetch_requests_routine  # noqa: SLF001 (the task has no other name)


def patch_aiokafka() -> None:
    """Patch aiokafka for all connections of this process, and for the consumers that it creates from now on."""
    AIOKafkaConnection.send = write_if_open(AIOKafkaConnection.send)
    AIOKafkaConnection._send_sasl_token = write_if_open(AIOKafkaConnection._send_sasl_token)  # noqa: SLF001
    Fetcher._fetch_requests_routine = _fetch_until_closed  # noqa: SLF001


def patch_header_decoding() -> None:
    """Patch aiokafka for every consumer of this process; it has no option for it."""
    fetcher.MemoryRecords = FetchedRecords
    fetcher.PartitionRecords = LenientPartitionRecords


class FetchedRecords:
    """Fetched records of a partition, as aiokafka reads them, together with their bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._records = MemoryRecords(data)
        self.has_next = self._records.has_next
        self.next_batch = self._records.next_batch
        self.size_in_bytes = self._records.size_in_bytes


class LenientPartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """Iterates over the records of one fetch."""

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except UnicodeDecodeError:
            self._records: Any = _LenientRecords(self._records.data, self.next_fetch_offset)
            self._records_iterator = self._unpack_records()
            return super().__next__()


class _LenientRecords:
    """The same batches in Python, from the batch with this offset on: records before it are skipped."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._batches = deque(batch for batch in _batches(data) if batch.next_offset > offset)

    def has_next(self) -> bool:
        return bool(self._batches)

    def next_batch(self) -> Any:
        return self._batches.popleft()


def _batches(data: bytes) -> Iterator[Any]:
    records = _MemoryRecordsPy(data)
    while records.has_next():
        piece = records._next_slice  # noqa: SLF001 - the bytes of the next batch
        batch = records.next_batch()
        # Batches of older formats have no headers.
        yield _LenientBatch(piece) if isinstance(batch, DefaultRecordBatch) and piece is not None else batch


class _LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    """A batch that decodes any header name."""

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer: bytearray = _LenientBytes(self._buffer)


class _LenientBytes(bytearray):
    """Bytes with slices that decode without errors."""

    def __getitem__(self, place: SupportsIndex | slice) -> Any:
        found = super().__getitem__(place)
        return _LenientBytes(found) if isinstance(found, bytearray) else found

    def decode(self, encoding: str = "utf-8", _errors: str = "strict") -> str:
        """Decode, with invalid bytes as escapes."""
        return bytes(self).decode(encoding, "backslashreplace")


async def _fetch_until_closed(fetcher: Any) -> None:
    await fetch_until_closed(fetcher, partial(_fetch, fetcher), _fetch(fetcher))
