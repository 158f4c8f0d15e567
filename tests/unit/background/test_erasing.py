"""An erasure writes to each log with texts, and empties the log beside the partition's database."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from schemas.failures import Unavailable
from streams.flow.background.archiving import ERASURE_METER, EraseTexts
from streams.observability.metrics import Meters
from streams.partition.commit import PartitionCommits
from streams.partition.database import PartitionDatabase, PartitionDatabases
from streams.topics import topics_with_prefix
from streams.wire.dead_letters import FILLER_KEY, FILLER_VALUE
from tests.fakes.publisher import FakePublisher

TOPICS = topics_with_prefix("memory.")
PARTITION = 2


class BusyWords:
    """An index whose log is in use for some calls."""

    def __init__(self, database: PartitionDatabase, busy: int) -> None:
        self._database = database
        self.busy = busy
        self.truncated: list[bool] = []
        """True for each call that found all writes committed."""

    def truncate(self, partition: int) -> None:
        """Note the call, or fail."""
        assert partition == PARTITION
        if self.busy:
            self.busy -= 1
            # What is written while the log is in use.
            self._database.set_offset("turns", self.busy)
            self._database.begin()
            raise Unavailable("in use")
        self.truncated.append(not self._database.connection.in_transaction)


class ErasingHarness:
    def __init__(self, directory: Path, busy: int = 0) -> None:
        self.publisher, self.meters = FakePublisher(), Meters()
        self.databases = PartitionDatabases(directory)
        self.words = BusyWords(self.databases.at(PARTITION), busy)
        self.rows: list[tuple[object, ...]] = []
        """The rows in the changelogs: topic, partition, key and value."""
        commit = PartitionCommits(
            self.databases, self.meters, memories="memories", send_row=self._send_row, flush_events=lambda: None
        )
        self.erase = EraseTexts(TOPICS, self.publisher, ["memories", "modes"], self.words, commit, self.meters)

    async def _send_row(self, *row: object) -> asyncio.Future[int]:
        self.rows.append(row)
        offset = asyncio.get_running_loop().create_future()
        offset.set_result(len(self.rows))
        return offset


@pytest.fixture
def filled(tmp_path: Path) -> ErasingHarness:
    """An erasure of one partition that is done."""
    harness = ErasingHarness(tmp_path)
    asyncio.run(harness.erase.erase(PARTITION))
    return harness


def test_each_log_with_texts_gets_a_filler(filled: ErasingHarness) -> None:
    topics = {out.topic for out in filled.publisher.sent}
    assert topics == {TOPICS.turns, TOPICS.archive, *TOPICS.internal_events()}


def test_fillers_are_in_the_partition(filled: ErasingHarness) -> None:
    assert {out.partition for out in filled.publisher.sent} == {PARTITION}


def test_filler_of_the_compacted_topic_is_a_tombstone(filled: ErasingHarness) -> None:
    values = Counter(out.value for out in filled.publisher.sent)
    assert values == {FILLER_VALUE: len(filled.publisher.sent) - 1, None: 1}, "it would keep a value for ever"


def test_each_changelog_gets_the_deletion_of_no_row(filled: ErasingHarness) -> None:
    key = FILLER_KEY.encode()
    assert filled.rows == [("modes", PARTITION, key, None), ("memories", PARTITION, key, None)]


async def test_database_is_committed_before_its_log_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.flow.background.archiving.TRUNCATE_PAUSE_S", 0.0)
    harness = ErasingHarness(tmp_path, busy=2)
    await harness.erase.erase(PARTITION)
    assert harness.words.truncated == [True]


async def test_erasure_that_fails_is_late_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.flow.background.archiving.TRUNCATE_PAUSE_S", 0.0)
    harness = ErasingHarness(tmp_path, busy=15)
    running = asyncio.create_task(harness.erase.run(lambda: [PARTITION], 0.01))
    while not harness.words.truncated:
        await asyncio.sleep(0.001)
    running.cancel()
    assert len(harness.rows) >= 4
    delay = harness.meters.registry.get_sample_value("modestream_retention_delay", {"what": ERASURE_METER})
    assert delay is not None
