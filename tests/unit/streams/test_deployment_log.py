"""Workers that start at once agree on one record of their deployment, which compaction keeps."""

import pytest
from pydantic import BaseModel

from schemas.messages.records import Record
from streams.adapters.kafka.deployment_log import values_by_key
from streams.deployment_log import agree, readable
from tests.fakes.deployment_log import FakeDeploymentLog

KEY = b"number"


class Number(BaseModel):
    number: int


def numbers(log: FakeDeploymentLog) -> list[int]:
    return [record.number for record in readable(log.written, Number)]


async def test_first_worker_writes_its_record() -> None:
    log = FakeDeploymentLog(KEY)
    assert await agree(log, KEY, Number(number=1)) == Number(number=1)
    assert numbers(log) == [1]


async def test_later_worker_takes_the_record_and_writes_nothing() -> None:
    log = FakeDeploymentLog(KEY, Number(number=1))
    assert await agree(log, KEY, Number(number=2)) == Number(number=1)
    assert numbers(log) == [1]


async def test_record_that_another_worker_writes_first_counts_and_is_the_last_one() -> None:
    log = FakeDeploymentLog(KEY)

    def write_first() -> None:
        log.before_write = lambda: None
        log.put(KEY, Number(number=1))

    log.before_write = write_first
    assert await agree(log, KEY, Number(number=2)) == Number(number=1)
    assert numbers(log) == [1, 2, 1]


@pytest.mark.parametrize(("there", "written"), [((1, 3), [1, 3]), ((3, 1), [3, 1, 3])])
async def test_what_is_merged_of_all_records_becomes_the_last_one(there: tuple[int, ...], written: list[int]) -> None:
    log = FakeDeploymentLog(KEY, *(Number(number=number) for number in there))
    await agree(log, KEY, Number(number=2), lambda records: max(records, key=lambda record: record.number))
    assert numbers(log) == written


async def test_what_a_later_release_writes_in_another_form_is_passed_over() -> None:
    log = FakeDeploymentLog(KEY)
    log.written.append(b'{"name": "another form"}')
    assert await agree(log, KEY, Number(number=1)) == Number(number=1)


def test_tombstone_removes_the_values_of_its_key_alone() -> None:
    written = [(b"a", b"1"), (b"b", b"2"), (b"a", None), (b"a", b"3")]
    records = [Record("service", 0, offset, 0, key, value) for offset, (key, value) in enumerate(written)]
    assert values_by_key(records) == {b"a": [b"3"], b"b": [b"2"]}
