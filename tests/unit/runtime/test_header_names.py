"""Header names that are not UTF-8, in a fetch as the broker sends it."""

import struct

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatchBuilder, _DefaultRecordBatchPy
from aiokafka.record.util import calc_crc32c

from streams.runtime.header_names import FetchedRecords, LenientPartitionRecords, patch_header_decoding

PLACEHOLDER, NAME = b"name-is-here", b"na\xffme-\xfe-\xe2\x9c\x93-"
assert len(PLACEHOLDER) == len(NAME)


def batch(first: int, name: str, compression: int = 0) -> bytes:
    """Build two records, the second with a header of this name."""
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, -1, 1 << 20)
    builder.append(0, timestamp=1, key=b"ana", value=b"first", headers=[])
    builder.append(1, timestamp=2, key=None, value=b"second", headers=[(name, b"v\xff"), ("none", None)])
    return struct.pack(">q", first) + bytes(builder.build())[8:]


def renamed(made: bytes) -> bytes:
    """Replace the name by one that is not UTF-8."""
    changed = made.replace(PLACEHOLDER, NAME)
    crc, after = _DefaultRecordBatchPy.CRC_OFFSET, _DefaultRecordBatchPy.ATTRIBUTES_OFFSET
    return changed[:crc] + struct.pack(">I", calc_crc32c(changed[after:])) + changed[after:]


def read(data: bytes, offset: int = 0) -> LenientPartitionRecords:
    place = TopicPartition("turns", 0)
    return LenientPartitionRecords(
        place, FetchedRecords(data), None, offset, None, None, True, fetcher.READ_UNCOMMITTED
    )


def test_aiokafka_itself_fails_on_such_a_batch() -> None:
    # Its own class: a consumer of an earlier test has put ours in its place.
    records = LenientPartitionRecords.__base__(
        TopicPartition("turns", 0),
        FetchedRecords(renamed(batch(0, PLACEHOLDER.decode()))),
        *(None, 0, None, None, True, fetcher.READ_UNCOMMITTED),
    )
    with pytest.raises(UnicodeDecodeError):
        list(records)


def test_every_record_is_read_once_in_order() -> None:
    bad, good = renamed(batch(2, PLACEHOLDER.decode())), batch(0, "plain")
    partition = read(good + bad + batch(4, "plain"))
    records = list(partition)
    assert [(record.offset, record.value) for record in records] == list(enumerate([b"first", b"second"] * 3))
    assert records[3].headers == (("na\\xffme-\\xfe-✓-", b"v\xff"), ("none", None))
    assert records[2].key == b"ana"
    assert records[3].key is None
    assert partition.next_fetch_offset == 6


def test_reading_begins_at_the_given_offset() -> None:
    assert [each.offset for each in read(renamed(batch(0, PLACEHOLDER.decode())), offset=1)] == [1]


def test_patch_replaces_the_classes_of_aiokafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "MemoryRecords", fetcher.MemoryRecords)
    monkeypatch.setattr(fetcher, "PartitionRecords", fetcher.PartitionRecords)
    patch_header_decoding()
    assert fetcher.MemoryRecords == FetchedRecords
    assert fetcher.PartitionRecords == LenientPartitionRecords
