"""Fills the changelogs of tables, so that Kafka compacts what was replaced; SQLite overwrites it at once."""

from typing import cast

from streams.runtime.kafka_app import App
from streams.runtime.safe_assignment_app import SafeAssignmentApp
from streams.wire.fillers import FILLER_KEY


class TableErasure:
    """Fills the changelogs of the tables of a worker."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def erase(self, partition: int) -> None:
        """Fill the changelogs of a partition."""
        commits = cast("SafeAssignmentApp", self._app).commits
        for changelog in self._app.tables.changelog_topics:
            commits.write(partition, changelog, FILLER_KEY.encode(), None)
        await commits.commit([partition])
