"""The tables of an in-memory worker: real ones over the databases of its directory, with changelogs in memory."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from faust.types import TP

from agents.ports.clock import Clock
from schemas.internal.changes import IssuedCommands
from schemas.internal.consolidation import RunHistory
from schemas.internal.job_history import JobHistory
from schemas.scope_models import bind_issued_scope
from schemas.state.modes import ModeDeclarations
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.bootstrap.context import build_stores
from streams.flow.boundary_changes import BoundaryChanges
from streams.flow.job_log import JobLog
from streams.flow.stores import ScopeStore, Table, UsageLog
from streams.observability.metrics import Meters
from streams.partition.commit import PartitionCommits
from streams.runtime.awaited_table import PartitionStore, databases_of
from streams.runtime.kafka_app import changelog_of, create_kafka_app, derive_rows, set_commits
from streams.settings import Settings
from streams.tables.json_table import JsonTable, ReceiptTable, ScopeTable, UsageTable
from streams.tables.memory_tables import MEMORIES, index_rows

Changelogs = defaultdict[tuple[str, int], list[tuple[bytes, bytes | None]]]
"""The rows of each changelog's partition, in their order."""


class InMemoryTables:
    """The tables of one life of a worker. Its end is that of a killed one: what is not committed is lost."""

    def __init__(
        self,
        settings: Settings,
        changelogs: Changelogs,
        meters: Meters,
        room: Callable[[], Awaitable[None]],
        complete_modes: Callable[[ModeDeclarations], ModeDeclarations],
        clock: Clock,
    ) -> None:
        """`room` waits while nothing may be written to Kafka."""
        self._changelogs = changelogs
        self._room = room
        self._partitions = range(settings.partitions)
        self.app = app = create_kafka_app(settings, "in-memory")
        self.words = SqliteLexicalIndex(databases_of(app))
        self.boundaries = BoundaryChanges()
        scope = settings.scope_model
        self.stores = build_stores(app, settings, self.words, self.boundaries, complete_modes)
        self.commits = PartitionCommits(
            databases_of(app),
            meters,
            memories=changelog_of(app, MEMORIES),
            send_row=self._send_row,
            flush_events=lambda: None,
            interval_s=0.0,
        )
        set_commits(app, self.commits)
        self.consolidations: ScopeStore[RunHistory] = ScopeTable(
            app, "consolidations", RunHistory, scope.boundary_fields
        )
        self.issued: Table[str, IssuedCommands] = JsonTable(app, "issued", bind_issued_scope(scope), key=str)
        self.jobs = JobLog(JsonTable(app, "jobs", JobHistory, key=str))
        self.receipts = ReceiptTable(app)
        self.usage_log = UsageLog(UsageTable(app), self.commits, clock)
        derive_rows(app, MEMORIES, lambda *rows: index_rows(self.words, *rows), self.words.drop)
        cast("Any", app.assignor).assigned_actives = lambda: {
            TP(table.changelog_topic.get_topic_name(), partition)
            for table in app.tables.values()
            for partition in self._partitions
        }
        # No file is locked: another life may not be collected yet.
        cast("Any", app).partition_locks = SimpleNamespace(is_held=lambda _: True)
        self._recover()

    def rows(self, table: str) -> Mapping[str, bytes]:
        return {key.decode(): value for key, value in cast("Any", self.app.tables[table]).items()}

    def lose_rows(self, table: str) -> None:
        """Delete all rows of a table, and its changelog."""
        topic = changelog_of(self.app, table)
        for partition in self._partitions:
            database = databases_of(self.app).at(partition)
            for key in list(database.table(table).keys()):
                database.table(table).delete(key)
            database.remove_offset(topic)
            database.commit()
            self._changelogs.pop((topic, partition), None)

    def end(self) -> None:
        """Close the files, as a kill does."""
        self.words.close()
        databases_of(self.app).close_all()

    def _recover(self) -> None:
        """Apply what the databases lack of the changelogs."""
        for table in self.app.tables.values():
            topic, store = table.changelog_topic.get_topic_name(), cast("PartitionStore", table.data)
            for partition in self._partitions:
                rows = self._changelogs[topic, partition]
                if not rows:
                    continue
                persisted = store.persisted_offset(TP(topic, partition))
                first = 0 if persisted is None else persisted + 1
                if first < len(rows):
                    store.apply_rows(TP(topic, partition), dict(rows[first:]), len(rows) - 1)
                    store.commit(partition)

    async def _send_row(self, topic: str, partition: int, key: bytes, value: bytes | None) -> Awaitable[int]:
        await self._room()
        rows = self._changelogs[topic, partition]
        rows.append((key, value))
        written: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        written.set_result(len(rows) - 1)
        return written
