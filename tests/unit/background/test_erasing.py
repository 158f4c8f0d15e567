"""An erasure writes to each log with texts, and empties the log beside the lexical index."""

import asyncio
from collections import Counter

import pytest

from schemas.failures import Unavailable
from streams.flow.background.erasing import METER, EraseTexts
from streams.flow.requests.events import notify_indexer
from streams.flow.support.interrupted_words import InterruptedWords
from streams.flow.support.lexical_commit import LexicalCommit
from streams.observability.metrics import Meters
from streams.topics import topics_with_prefix
from streams.wire.fillers import FILLER_VALUE
from tests.fakes.publisher import FakePublisher
from tests.fakes.tables.memories import FakeMemories

TOPICS = topics_with_prefix("memory.")
PARTITION = 2


class BusyWords:
    """An index that is in use for some calls."""

    def __init__(self, busy: int = 0) -> None:
        self.busy = busy
        self.calls: list[str] = []

    def commit(self, partition: int) -> None:
        """Note the call."""
        self.calls.append(f"commit {partition}")

    def rotate_unfinished(self, partition: int) -> None:
        """Do nothing."""

    def truncate(self, partition: int) -> None:
        """Note the call, or fail."""
        if self.busy:
            self.busy -= 1
            raise Unavailable("in use")
        self.calls.append(f"truncate {partition}")


class ErasingHarness:
    """An erasure with its parts."""

    def __init__(self, busy: int = 0) -> None:
        self.publisher, self.words, self.meters = FakePublisher(), BusyWords(busy), Meters()
        self.tables: list[int] = []
        notify = notify_indexer(self.publisher, TOPICS.remembered)
        interrupted = InterruptedWords(FakeMemories(), self.words, notify)  # type: ignore[arg-type]
        commit = LexicalCommit(self.words, self.meters, interrupted)  # type: ignore[arg-type]
        self.erase = EraseTexts(TOPICS, self.publisher, self._erase_tables, self.words, commit, self.meters)

    async def _erase_tables(self, partition: int) -> None:
        self.tables.append(partition)


async def test_each_log_with_texts_gets_a_filler_in_the_partition() -> None:
    harness = ErasingHarness()
    await harness.erase.erase(PARTITION)
    filled = {out.topic for out in harness.publisher.sent}
    assert filled == {TOPICS.turns, TOPICS.archive, *TOPICS.internal_events()}
    assert {out.partition for out in harness.publisher.sent} == {PARTITION}
    values = Counter(out.value for out in harness.publisher.sent)
    assert values == {FILLER_VALUE: len(filled) - 1, None: 1}, "a compacted topic would keep a value for ever"
    assert harness.tables == [PARTITION]


async def test_index_is_committed_before_its_log_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.flow.background.erasing.TRUNCATE_PAUSE_S", 0.0)
    harness = ErasingHarness(busy=2)
    await harness.erase.erase(PARTITION)
    assert harness.words.calls == ["commit 2", "commit 2", "commit 2", "truncate 2"]


async def test_erasure_that_fails_is_late_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.flow.background.erasing.TRUNCATE_PAUSE_S", 0.0)
    harness = ErasingHarness(busy=15)
    running = asyncio.create_task(harness.erase.run(lambda: [PARTITION], 0.01))
    while not harness.words.calls.count("truncate 2"):
        await asyncio.sleep(0.001)
    running.cancel()
    assert len(harness.tables) >= 2
    delay = harness.meters.registry.get_sample_value("modestream_retention_delay", {"what": METER})
    assert delay is not None
