"""The in-memory pipeline forgets no table: neither from one wiring to the next, nor in a copy."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores.watched_table import WatchedTable
from tests.worlds.in_memory_pipeline import InMemoryPipeline


def stores(pipeline: InMemoryPipeline) -> dict[str, Any]:
    """Return what outlives a worker by name: every table of its context, the vector index, and the log of jobs."""
    _, ctx = pipeline.wire(SqliteLexicalIndex(pipeline.directory / "words"))
    parts = {field.name: getattr(holder, field.name) for holder in (ctx, ctx.stores) for field in fields(holder)}
    tables = {name: part for name, part in parts.items() if hasattr(part, "pending_writes")}
    watched = {name: table._table if isinstance(table, WatchedTable) else table for name, table in tables.items()}
    return {**watched, "index": pipeline.index, "jobs": ctx.jobs}


def stopped(directory: Path) -> InMemoryPipeline:
    directory.mkdir()
    return InMemoryPipeline(directory)


def test_every_wiring_has_the_same_stores(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    before = stores(pipeline)
    assert len(before) > 2
    assert [name for name, store in stores(pipeline).items() if store is not before[name]] == []


def test_copy_of_a_stopped_worker_has_what_each_store_holds(tmp_path: Path) -> None:
    pipeline = stopped(tmp_path / "before")
    for store in stores(pipeline).values():
        store.marked = True
    copied = stores(pipeline.copy_to(tmp_path / "after"))
    assert [name for name, store in copied.items() if not hasattr(store, "marked")] == []


def test_copy_shares_no_store(tmp_path: Path) -> None:
    pipeline = stopped(tmp_path / "before")
    before = stores(pipeline)
    copied = stores(pipeline.copy_to(tmp_path / "after"))
    assert [name for name, store in copied.items() if store is before[name]] == []
