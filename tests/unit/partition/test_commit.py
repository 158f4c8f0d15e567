"""The commit of a partition: events, then the rows of its changelogs, then its database."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiokafka.errors import MessageSizeTooLargeError

from schemas.failures import Unavailable
from streams.observability.metrics import Meters
from streams.partition import commit
from streams.partition.commit import PartitionCommits
from streams.partition.database import PartitionDatabases

MEMORIES, CLAIMS = "memories-changelog", "claims-changelog"
HERE, ELSEWHERE = 0, 1


class CommitHarness:
    """The commits of a worker with a changelog of memories and one of claims. Their acknowledgements can be held."""

    def __init__(self, directory: Path, interval_s: float = 0.0) -> None:
        self.databases = PartitionDatabases(directory)
        self.log: list[tuple[str, bytes, bytes | None]] = []
        """The rows in the changelogs, in their order."""
        self.are_acknowledged = asyncio.Event()
        self.are_acknowledged.set()
        self.refused: Exception | None = None
        self.on_row: Callable[[], None] = lambda: None
        """Called when a row is handed over."""
        self.flushed = 0
        self.commits = PartitionCommits(
            self.databases,
            Meters(),
            memories=MEMORIES,
            send_row=self._send_row,
            flush_events=self._flush,
            interval_s=interval_s,
        )

    async def _send_row(self, topic: str, _partition: int, key: bytes, value: bytes | None) -> Awaitable[int]:
        if self.refused is not None:
            raise self.refused
        self.log.append((topic, key, value))
        self.on_row()
        return self._acknowledged(sum(row[0] == topic for row in self.log) - 1)

    async def _acknowledged(self, offset: int) -> int:
        await self.are_acknowledged.wait()
        return offset

    def _flush(self) -> None:
        self.flushed += 1

    def write(self, key: str, changelog: str = MEMORIES, partition: int = HERE) -> None:
        """Write a row, as a table does."""
        self.databases.at(partition).table(changelog).put(key.encode(), b"v")
        self.commits.write(partition, changelog, key.encode(), b"v")

    async def written(self, key: str, *sent: Awaitable[object], changelog: str = MEMORIES) -> Awaitable[None]:
        """Write a row whose events are these."""
        writing = await self.commits.begin(HERE)
        self.write(key, changelog)
        return writing.finish(sent)

    def start_commit(self, *partitions: int) -> "asyncio.Task[None]":
        return asyncio.create_task(self.commits.commit(partitions or (HERE,)))

    def keys(self, changelog: str = MEMORIES) -> list[str]:
        return [key.decode() for topic, key, _ in self.log if topic == changelog]

    def durable(self, changelog: str = MEMORIES, partition: int = HERE) -> list[str]:
        """Return the keys of the rows that a restarted worker finds."""
        with closing(sqlite3.connect(self.databases.path(partition))) as connection:
            tables = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (f"rows_{changelog}",))
            if tables.fetchone() is None:
                return []
            return [key.decode() for (key,) in connection.execute(f'SELECT key FROM "rows_{changelog}"')]

    def durable_offset(self, log: str) -> int | None:
        with closing(sqlite3.connect(self.databases.path(HERE))) as connection:
            row = connection.execute("SELECT next_offset FROM offsets WHERE log = ?", (log,)).fetchone()
            return None if row is None else int(row[0])


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[CommitHarness]:
    worker = CommitHarness(tmp_path)
    yield worker
    worker.databases.close_all()


async def passes() -> None:
    """Let everything run that waits for nothing."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_committed_row_is_in_the_database(worker: CommitHarness) -> None:
    worker.write("a")
    await worker.commits.commit([HERE])
    assert worker.durable() == ["a"]


async def test_row_is_written_to_its_changelog_once(worker: CommitHarness) -> None:
    worker.write("a")
    await worker.commits.commit([HERE])
    await worker.commits.commit([HERE])
    assert worker.keys() == ["a"]


async def test_commit_has_the_offset_after_its_rows(worker: CommitHarness) -> None:
    worker.write("a")
    worker.write("b")
    await worker.commits.commit([HERE])
    assert worker.durable_offset(MEMORIES) == 2


async def test_commit_has_the_applied_offset_of_a_topic(worker: CommitHarness) -> None:
    worker.commits.set_applied(HERE, "turns", 7)
    await worker.commits.commit([HERE])
    assert worker.durable_offset("turns") == 7


async def test_applied_offset_is_not_durable_before_the_commit(worker: CommitHarness) -> None:
    worker.commits.set_applied(HERE, "turns", 7)
    assert worker.commits.applied(HERE, "turns") == 7
    assert worker.durable_offset("turns") is None


async def test_offset_of_a_changelog_never_falls(worker: CommitHarness) -> None:
    worker.databases.at(HERE).set_offset(MEMORIES, 9)
    worker.write("a")
    await worker.commits.commit([HERE])
    assert worker.durable_offset(MEMORIES) == 9


async def test_no_row_is_in_a_changelog_before_its_events_are_in_kafka(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    await worker.written("a", event)
    committing = worker.start_commit()
    await passes()
    assert worker.keys() == []
    event.set_result(None)
    await committing


async def test_no_row_is_durable_before_its_events_are_in_kafka(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    await worker.written("a", event)
    committing = worker.start_commit()
    await passes()
    assert worker.durable() == []
    event.set_result(None)
    await committing


async def test_commit_waits_for_writes_that_have_not_finished(worker: CommitHarness) -> None:
    writing = await worker.commits.begin(HERE)
    committing = worker.start_commit()
    await passes()
    assert not committing.done()
    writing.finish([])
    await committing


async def test_commit_waits_for_the_last_of_several_writes(worker: CommitHarness) -> None:
    first, second = await worker.commits.begin(HERE), await worker.commits.begin(HERE)
    committing = worker.start_commit()
    await first.finish([])
    assert not committing.done()
    second.finish([])
    await committing


async def test_waiting_commit_has_the_events_written_at_once(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    await worker.written("a", event)
    committing = worker.start_commit()
    await passes()
    assert worker.flushed == 1
    event.set_result(None)
    await committing


async def test_events_of_a_write_that_a_commit_waits_for_are_written_at_once(worker: CommitHarness) -> None:
    writing = await worker.commits.begin(HERE)
    committing = worker.start_commit()
    await passes()
    before = worker.flushed
    await writing.finish([])
    await committing
    assert worker.flushed == before + 1


async def test_finished_write_is_told_when_its_events_are_in_kafka(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    finishing = asyncio.ensure_future(await worker.written("a", event))
    await passes()
    assert not finishing.done()
    event.set_result(None)
    await finishing


async def test_rows_of_memories_come_after_those_of_other_tables(worker: CommitHarness) -> None:
    worker.write("m")
    worker.write("c", CLAIMS)
    await worker.commits.commit([HERE])
    assert [topic for topic, *_ in worker.log] == [CLAIMS, MEMORIES]


async def test_rows_of_a_changelog_are_in_the_order_of_their_writing(worker: CommitHarness) -> None:
    for key in ("b", "a", "b"):
        worker.write(key)
    await worker.commits.commit([HERE])
    assert worker.keys() == ["b", "a", "b"]


async def test_database_is_not_committed_before_the_changelogs_acknowledge(worker: CommitHarness) -> None:
    worker.are_acknowledged.clear()
    worker.write("a")
    committing = worker.start_commit()
    await passes()
    assert worker.keys() == ["a"]
    assert worker.durable() == []
    worker.are_acknowledged.set()
    await committing


async def test_rows_of_memories_are_not_sent_before_those_of_other_tables_are_acknowledged(
    worker: CommitHarness,
) -> None:
    worker.are_acknowledged.clear()
    worker.write("m")
    worker.write("c", CLAIMS)
    committing = worker.start_commit()
    await passes()
    assert worker.keys() == []
    worker.are_acknowledged.set()
    await committing


async def test_begin_waits_for_a_commit_that_is_under_way(worker: CommitHarness) -> None:
    worker.are_acknowledged.clear()
    worker.write("a")
    committing = worker.start_commit()
    await passes()
    beginning = asyncio.ensure_future(worker.commits.begin(HERE))
    await passes()
    assert not beginning.done()
    worker.are_acknowledged.set()
    await committing
    (await beginning).finish([])


async def test_begin_waits_for_a_commit_that_waits_for_events(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    await worker.written("a", event)
    committing = worker.start_commit()
    await passes()
    beginning = asyncio.ensure_future(worker.commits.begin(HERE))
    await passes()
    assert not beginning.done(), "events without an end would let no commit come"
    event.set_result(None)
    await committing
    (await beginning).finish([])


async def test_begin_in_another_partition_does_not_wait(worker: CommitHarness) -> None:
    writing = await worker.commits.begin(HERE)
    committing = worker.start_commit()
    await passes()
    (await asyncio.wait_for(worker.commits.begin(ELSEWHERE), 1)).finish([])
    writing.finish([])
    await committing


async def test_callers_share_the_next_commit(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    await worker.written("a", event)
    committed: list[None] = []
    worker.databases.at(HERE).on_commit = lambda: committed.append(None)
    committing = [worker.start_commit() for _ in range(3)]
    event.set_result(None)
    await asyncio.gather(*committing)
    assert len(committed) == 1


async def test_caller_during_a_commit_waits_for_the_next_one(worker: CommitHarness) -> None:
    later: list[asyncio.Task[None]] = []

    def write_more() -> None:
        worker.databases.at(HERE).on_commit = lambda: None
        worker.write("b")
        later.append(worker.start_commit())

    worker.databases.at(HERE).on_commit = write_more
    worker.write("a")
    await worker.commits.commit([HERE])
    await later[0]
    assert worker.durable() == ["a", "b"]


async def test_caller_that_is_cancelled_takes_the_commit_from_no_other(worker: CommitHarness) -> None:
    worker.are_acknowledged.clear()
    worker.write("a")
    leaving, staying = worker.start_commit(), worker.start_commit()
    await passes()
    leaving.cancel()
    await passes()
    worker.are_acknowledged.set()
    await staying
    assert worker.durable() == ["a"]


async def test_several_partitions_are_committed_together(worker: CommitHarness) -> None:
    worker.write("a")
    worker.write("b", partition=ELSEWHERE)
    await worker.commits.commit([HERE, ELSEWHERE])
    assert worker.durable() == ["a"]
    assert worker.durable(partition=ELSEWHERE) == ["b"]


async def test_rows_written_during_a_commit_are_in_the_changelog_before_the_database(worker: CommitHarness) -> None:
    """Agents that begin nothing write them: without a row in the changelog no other worker would ever have it."""
    worker.write("a")

    def write_once() -> None:
        worker.on_row = lambda: None
        worker.write("during", CLAIMS)

    worker.on_row = write_once
    await worker.commits.commit([HERE])
    assert worker.durable(CLAIMS) == ["during"]
    assert worker.keys(CLAIMS) == ["during"]


async def test_failed_event_fails_its_record(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    finishing = await worker.written("a", event)
    event.set_exception(ConnectionError("away"))
    with pytest.raises(ConnectionError):
        await finishing


async def test_failed_event_does_not_block_commits_for_ever(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    finishing = await worker.written("a", event)
    event.set_exception(ConnectionError("away"))
    await asyncio.gather(finishing, return_exceptions=True)
    await asyncio.wait_for(worker.commits.commit([HERE]), 1)


async def test_refused_row_fails_the_commit(worker: CommitHarness) -> None:
    worker.refused = MessageSizeTooLargeError("too large")
    worker.write("a")
    with pytest.raises(MessageSizeTooLargeError):
        await worker.commits.commit([HERE])


async def test_database_is_not_committed_without_a_refused_row(worker: CommitHarness) -> None:
    worker.refused = MessageSizeTooLargeError("too large")
    worker.write("a")
    await asyncio.gather(worker.commits.commit([HERE]), return_exceptions=True)
    assert worker.durable() == []


async def test_refused_row_is_durable_after_no_later_commit(worker: CommitHarness) -> None:
    worker.refused = MessageSizeTooLargeError("too large")
    worker.write("a")
    await asyncio.gather(worker.commits.commit([HERE]), return_exceptions=True)
    worker.refused = None
    await asyncio.gather(worker.commits.commit([HERE]), return_exceptions=True)
    assert worker.durable() == worker.keys()


async def test_begin_does_not_wait_for_a_commit_that_has_failed(worker: CommitHarness) -> None:
    worker.refused = MessageSizeTooLargeError("too large")
    worker.write("a")
    await asyncio.gather(worker.commits.commit([HERE]), return_exceptions=True)
    (await asyncio.wait_for(worker.commits.begin(HERE), 1)).finish([])


async def test_full_disk_is_unavailable_after_a_time(worker: CommitHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise Unavailable("full")

    monkeypatch.setattr(commit, "STORAGE_TIMEOUT_S", 0.0)
    worker.write("a")
    monkeypatch.setattr(worker.databases.at(HERE), "commit", refuse)
    with pytest.raises(Unavailable):
        await worker.commits.commit([HERE])


async def test_commit_of_a_partition_that_left_writes_no_row(worker: CommitHarness) -> None:
    worker.write("a")
    worker.databases.close(HERE)
    await worker.commits.commit([HERE])
    assert worker.log == []


async def test_commit_that_waits_for_events_as_its_partition_leaves_writes_no_row(worker: CommitHarness) -> None:
    event = asyncio.get_running_loop().create_future()
    await worker.written("a", event)
    committing = worker.start_commit()
    await passes()
    worker.databases.close(HERE)
    event.set_result(None)
    await committing
    assert worker.log == []


async def test_commit_opens_no_database_of_a_partition_that_left(worker: CommitHarness) -> None:
    worker.write("a")
    worker.databases.close(HERE)
    await worker.commits.commit([HERE])
    assert not worker.databases._open


async def test_commit_whose_changelog_answers_after_its_partition_left_commits_nothing(worker: CommitHarness) -> None:
    worker.are_acknowledged.clear()
    worker.write("a")
    committing = worker.start_commit()
    await passes()
    worker.databases.close(HERE)
    worker.are_acknowledged.set()
    await asyncio.gather(committing, return_exceptions=True)
    assert worker.durable() == []


async def test_writes_of_a_partition_that_left_are_forgotten_when_it_arrives(worker: CommitHarness) -> None:
    worker.write("a")
    worker.databases.close(HERE)
    worker.databases.at(HERE)
    await worker.commits.commit([HERE])
    assert worker.keys() == []


async def test_write_that_a_partition_left_behind_holds_up_no_commit_after_its_arrival(worker: CommitHarness) -> None:
    await worker.commits.begin(HERE)
    worker.databases.close(HERE)
    worker.databases.at(HERE)
    await asyncio.wait_for(worker.commits.commit([HERE]), 1)


async def test_second_commit_waits_for_its_time(tmp_path: Path) -> None:
    worker = CommitHarness(tmp_path, interval_s=60.0)
    worker.write("first")
    await worker.commits.commit([HERE])
    worker.write("a")
    committing = worker.start_commit()
    await passes()
    assert worker.keys() == ["first"]
    committing.cancel()


async def test_commit_that_a_caller_waits_for_hurries_the_others_on(tmp_path: Path) -> None:
    worker = CommitHarness(tmp_path, interval_s=60.0)
    worker.write("first")
    await worker.commits.commit([HERE])
    worker.write("a")
    committing = worker.start_commit()
    await worker.commits.commit([HERE], is_hurried=True)
    await committing
    assert worker.durable() == ["a", "first"]


async def test_commit_of_what_is_durable_does_nothing(worker: CommitHarness) -> None:
    worker.write("a")
    await worker.commits.commit([HERE])
    before = worker.flushed
    await worker.commits.commit([HERE])
    assert worker.flushed == before
