"""Workers of two releases side by side, one that is too old, and data that is too old."""

import pytest

from schemas.internal.service import RELEASE_KEY, Release
from schemas.version import RELEASE, VERSION
from streams.bootstrap.deployment_records import OWN, READS_FROM, agree_on_release
from streams.deployment_log import readable
from tests.fakes.deployment_log import FakeDeploymentLog

FORMER, NEW = Release(number=2, oldest=1), Release(number=3, oldest=2)
LAST_READER = Release(number=4, oldest=4)


def log_of(*releases: Release) -> FakeDeploymentLog:
    return FakeDeploymentLog(RELEASE_KEY, *releases)


def written(log: FakeDeploymentLog) -> list[Release]:
    return readable(log.written, Release)


async def test_new_deployment_is_recorded_once() -> None:
    log = log_of()
    assert await agree_on_release(log) == OWN
    assert await agree_on_release(log) == OWN
    assert written(log) == [OWN]


async def test_worker_of_the_last_release_starts_beside_a_new_one_and_takes_nothing_back() -> None:
    log = log_of(FORMER)
    assert await agree_on_release(log, NEW) == NEW
    assert await agree_on_release(log, FORMER) == NEW
    assert written(log) == [FORMER, NEW]


async def test_worker_that_cannot_read_what_is_written_is_refused_and_writes_nothing() -> None:
    log = log_of(FORMER)
    assert await agree_on_release(log, LAST_READER) == LAST_READER
    for old in (FORMER, NEW):
        with pytest.raises(
            SystemExit, match=rf"release_too_old: .* release {old.number}; .* start release 4 or a later"
        ):
            await agree_on_release(log, old)
    assert written(log) == [FORMER, LAST_READER]


async def test_data_that_this_release_does_not_read_any_more_is_refused_with_the_way() -> None:
    log = log_of(FORMER)
    with pytest.raises(SystemExit, match=r"data_too_old: .* start release 3 once, and upgrade to 4 from there"):
        await agree_on_release(log, LAST_READER, reads_from=3)
    assert written(log) == [FORMER]
    log.put(RELEASE_KEY, NEW)
    assert await agree_on_release(log, LAST_READER, reads_from=3) == LAST_READER


async def test_limit_of_a_release_is_not_lowered_by_a_later_one() -> None:
    log = log_of(LAST_READER)
    later = Release(number=5, oldest=2)
    assert await agree_on_release(log, later) == Release(number=5, oldest=4)


def test_this_release_reads_and_works_beside_the_one_before() -> None:
    before = max(1, RELEASE - 1)
    assert OWN.number == RELEASE
    assert before >= OWN.oldest
    assert before >= READS_FROM


def test_first_release_is_1_0_0() -> None:
    assert VERSION != "1.0.0" or RELEASE == 1
