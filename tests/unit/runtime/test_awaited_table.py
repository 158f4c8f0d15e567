"""Rows of a table: in the database at once, in the changelog with the next commit."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import faust
import pytest

from schemas.failures import RowTooLarge
from streams.runtime.awaited_table import PARTITION_STORE, AwaitableTable, create_table
from streams.topics import MAX_OUTPUT_BYTES

CHANGELOG = "t-memories-changelog"


class Commits:
    def __init__(self) -> None:
        self.rows: list[tuple[int, str, bytes, bytes | None]] = []
        self.committed: list[set[int]] = []

    def write(self, partition: int, changelog: str, key: bytes, value: bytes | None) -> None:
        self.rows.append((partition, changelog, key, value))

    async def commit(self, partitions: Collection[int], *, is_hurried: bool = False) -> None:
        self.committed.append(set(partitions))


@pytest.fixture
def commits() -> Commits:
    return Commits()


@pytest.fixture
def table(tmp_path: Path, commits: Commits) -> AwaitableTable:
    app: Any = faust.App("t", broker="kafka://nowhere:1", store=f"{PARTITION_STORE}://", datadir=str(tmp_path))
    app.commits = commits
    return create_table(app, "memories")


def test_written_row_is_read_before_the_commit(table: AwaitableTable) -> None:
    table.write(0, "k", b"v")
    assert table.read(0, "k") == b"v"


def test_deleted_row_is_gone_before_the_commit(table: AwaitableTable) -> None:
    table.write(0, "k", b"v")
    table.delete(0, "k")
    assert table.read(0, "k") is None


def test_rows_are_handed_to_the_commit_of_their_partition_in_order(table: AwaitableTable, commits: Commits) -> None:
    table.write(0, "k", b"v")
    table.write(1, "other", b"x")
    table.delete(0, "k")
    assert commits.rows == [(0, CHANGELOG, b"k", b"v"), (1, CHANGELOG, b"other", b"x"), (0, CHANGELOG, b"k", None)]


async def test_pending_writes_are_the_commit_of_the_partitions_written_since(
    table: AwaitableTable, commits: Commits
) -> None:
    table.write(0, "k", b"v")
    table.write(1, "k", b"v")
    for pending in table.pending_writes():
        await pending
    assert commits.committed == [{0, 1}]


def test_nothing_is_pending_twice(table: AwaitableTable) -> None:
    table.write(0, "k", b"v")
    table.pending_writes()
    assert table.pending_writes() == []


def test_pending_write_that_nobody_awaits_commits_nothing(table: AwaitableTable, commits: Commits) -> None:
    table.write(0, "k", b"v")
    table.pending_writes()
    assert commits.committed == []


@pytest.fixture
def refused(table: AwaitableTable) -> AwaitableTable:
    """A table that has refused a row that Kafka would never take."""
    table.write(0, "k", b"before")
    table.pending_writes()
    with pytest.raises(RowTooLarge):
        table.write(0, "k", b"v" * MAX_OUTPUT_BYTES)
    return table


def test_row_too_large_leaves_the_former_one(refused: AwaitableTable) -> None:
    assert refused.read(0, "k") == b"before"


@pytest.mark.usefixtures("refused")
def test_row_too_large_is_not_for_the_changelog(commits: Commits) -> None:
    assert [value for *_, value in commits.rows] == [b"before"]


def test_row_too_large_leaves_nothing_pending(refused: AwaitableTable) -> None:
    assert refused.pending_writes() == []


def test_changelog_accepts_the_largest_records(table: AwaitableTable) -> None:
    assert table.changelog_topic.config is not None
    assert table.changelog_topic.config["max.message.bytes"] == str(16 * 1024 * 1024)


def test_changelog_is_compacted(table: AwaitableTable) -> None:
    assert table.changelog_topic.compacting
