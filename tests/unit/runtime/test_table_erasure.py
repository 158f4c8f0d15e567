"""Each changelog gets a record more, so that Kafka compacts what was replaced."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import faust

from streams.runtime.awaited_table import create_table
from streams.runtime.partition_store import PARTITION_STORE
from streams.runtime.table_erasure import TableErasure
from streams.wire.fillers import FILLER_KEY


class Commits:
    """Commits that note what they get."""

    def __init__(self) -> None:
        self.written: list[tuple[int, str, bytes, bytes | None]] = []
        self.committed: list[tuple[int, str, bytes, bytes | None]] = []

    def write(self, partition: int, changelog: str, key: bytes, value: bytes | None) -> None:
        """Note a row."""
        self.written.append((partition, changelog, key, value))

    async def commit(self, partitions: Collection[int]) -> None:
        """Note the rows of these partitions."""
        self.committed += [row for row in self.written if row[0] in partitions]


async def test_changelogs_of_all_tables_are_filled(tmp_path: Path) -> None:
    app: Any = faust.App("t", broker="kafka://nowhere:1", store=f"{PARTITION_STORE}://", datadir=str(tmp_path))
    app.commits = commits = Commits()
    changelogs = [create_table(app, name).changelog_topic.get_topic_name() for name in ("memories", "modes")]
    await TableErasure(app).erase(0)
    assert sorted(commits.committed) == [(0, changelog, FILLER_KEY.encode(), None) for changelog in changelogs]
