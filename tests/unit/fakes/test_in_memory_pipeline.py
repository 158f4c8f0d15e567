"""The in-memory pipeline forgets no table: neither from one wiring to the next, nor in a copy."""

import asyncio
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import ObservedTable
from streams.runtime.awaited_table import AwaitableTable
from streams.tables.json_table import InteractionTable
from streams.tables.memory_tables import MemoryTable
from tests.worlds.in_memory_pipeline import InMemoryPipeline


def stores(pipeline: InMemoryPipeline) -> dict[str, Any]:
    """Return what outlives a worker by name: every table of its context, the vector index, and the log of jobs."""
    _, ctx = pipeline.wire(SqliteLexicalIndex(pipeline.directory / "partitions"))
    parts = {each.name: getattr(holder, each.name) for holder in (ctx, ctx.stores) for each in fields(holder)}
    of_remember = (MemoryTable, InteractionTable)
    tables = {
        name: part for name, part in parts.items() if hasattr(part, "pending_writes") or isinstance(part, of_remember)
    }
    watched = {name: table._table if isinstance(table, ObservedTable) else table for name, table in tables.items()}
    return {**watched, "index": pipeline.index, "jobs": ctx.jobs}


def stopped(directory: Path) -> InMemoryPipeline:
    directory.mkdir()
    return InMemoryPipeline(directory)


def test_every_wiring_has_the_same_stores(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    before = stores(pipeline)
    assert len(before) > 2
    assert [name for name, store in stores(pipeline).items() if store is not before[name]] == []


@pytest.fixture
def marked(tmp_path: Path) -> InMemoryPipeline:
    """A stopped worker with a row in each table: for that of memories a tombstone, which has no words."""
    pipeline = stopped(tmp_path / "before")
    for table in pipeline.tables.app.tables.values():
        cast("AwaitableTable", table).write(0, "marked", b"removed")
    asyncio.run(pipeline.tables.commits.commit([0]))
    return pipeline


def test_copy_of_a_stopped_worker_has_the_rows_of_each_table(marked: InMemoryPipeline, tmp_path: Path) -> None:
    tables = marked.copy_to(tmp_path / "after").tables
    assert [name for name in tables.app.tables if "marked" not in tables.rows(name)] == []


def test_copy_of_a_stopped_worker_goes_on_in_each_changelog(marked: InMemoryPipeline, tmp_path: Path) -> None:
    assert marked.copy_to(tmp_path / "after").changelogs == marked.changelogs


def test_next_life_has_what_was_committed(marked: InMemoryPipeline) -> None:
    marked.end_life()
    tables = marked.tables
    assert [name for name in tables.app.tables if "marked" not in tables.rows(name)] == []


def test_worker_that_lost_its_disk_has_what_the_changelogs_have(marked: InMemoryPipeline) -> None:
    marked.lose_files("words")
    tables = marked.tables
    assert [name for name in tables.app.tables if "marked" not in tables.rows(name)] == []


def test_copy_of_a_stopped_worker_has_its_vectors(tmp_path: Path) -> None:
    pipeline = stopped(tmp_path / "before")
    cast("Any", pipeline.index).marked = True
    assert hasattr(pipeline.copy_to(tmp_path / "after").index, "marked")


def test_copy_shares_no_store(tmp_path: Path) -> None:
    pipeline = stopped(tmp_path / "before")
    before = stores(pipeline)
    copied = stores(pipeline.copy_to(tmp_path / "after"))
    assert [name for name, store in copied.items() if store is before[name]] == []
