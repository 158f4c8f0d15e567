"""The embedded index: opened again, closed, with many modes, over an engine that stops flushing."""

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_edge import IntegerIndexParams, KeywordIndexParams, PayloadSchemaType, UpdateOperation

from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, PassageVectors, Point
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.edge_collections import OpenShards
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources
from streams.adapters.vectors.embedded.edge_shard import (
    FINGERPRINT_FILE,
    LOG_SEGMENT_BYTES,
    WAL_DIR,
    CollectionShard,
    load_shard,
    sync_log_files,
)
from tests.builders.spaces import space_of
from tests.harnesses.edge_index import ONES, SPACE, TOKEN_SPACE, kept_in, long_points, memory, points


async def test_reopened_index_has_everything(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.upsert(SPACE, points(range(10)))
    await first.delete(SPACE, [memory(3)])
    await first.close()
    again = EdgeIndex(tmp_path)
    assert await again.spaces() == {SPACE.collection: SPACE.fingerprint}
    found = await again.search(SPACE, ONES, MemoryFilter("u1", {"user_id": ("u1",)}, since_ms=2), 10)
    assert [memory.memory_id for memory in found] == [memory(number) for number in (2, 4, 5, 6, 7, 8, 9)]
    assert await again.count(SPACE, 0) == 9
    await again.close()


async def test_reopened_index_has_the_token_vectors(tmp_path: Path) -> None:
    first, question = EdgeIndex(tmp_path), np.eye(2, 4, dtype=np.float32)
    await first.upsert(TOKEN_SPACE, [*long_points(range(2)), *points(range(2, 4))])
    before = await first.maxsim(TOKEN_SPACE, question, MemoryFilter("u1"), 10)
    await first.close()
    again = EdgeIndex(tmp_path)
    assert await again.maxsim(TOKEN_SPACE, question, MemoryFilter("u1"), 10) == before
    assert [memory.memory_id for memory in before] == [memory(0), memory(1)]
    assert await again.spaces() == {TOKEN_SPACE.collection: TOKEN_SPACE.fingerprint}
    await again.close()


async def test_reopened_index_scores_a_cut_text_by_the_mean_of_its_passages(tmp_path: Path) -> None:
    space, first = space_of(dim=8, passages="400-1"), EdgeIndex(tmp_path)
    passages = PassageVectors(np.eye(2, 8, dtype=np.float32), np.zeros(2, np.int64))
    await first.upsert(space, [replace(point, passages=passages) for point in points(range(1))])
    await first.close()
    for cache in (BoundaryCache(), BoundaryCache(max_points=0)):
        again = EdgeIndex(tmp_path, EdgeResources(cache))
        for _ in range(2):
            [found] = await again.search(space, np.eye(1, 8, dtype=np.float32)[0], MemoryFilter("u1"), 10)
            assert found.score == pytest.approx(0.5, abs=1e-3)
        await again.close()


async def test_closed_index_refuses_calls(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(2)))
    await index.close()
    with pytest.raises(KeyError, match="closed"):
        await index.count(SPACE, 0)
    with pytest.raises(KeyError, match="closed"):
        await index.upsert(SPACE, points(range(2)))


async def test_engine_that_cannot_flush_is_reloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.adapters.vectors.embedded.edge_index.MAX_UNFLUSHED_WRITES", 1)
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(4)))
    # The engine damages its state when a second opening of the directory is refused.
    with pytest.raises(Exception, match="WAL"):
        load_shard(tmp_path / SPACE.collection)
    engine = index._collections._shards[SPACE.collection]._shard
    await index.upsert(SPACE, points(range(4, 8)))
    assert index._collections._shards[SPACE.collection]._shard is not engine
    assert await index.count(SPACE, 0) == 8
    await index.upsert(SPACE, points(range(8, 12)))
    await index.close()
    assert len(await kept_in(tmp_path, range(12))) == 12


async def test_an_error_of_the_engine_is_unavailable_with_its_cause(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(1)))
    index._collections._shards[SPACE.collection]._shard.close()
    hashes, upsert = index.hashes(SPACE, [memory(0)]), index.upsert(SPACE, points(range(1)))
    for call in (hashes, index.count(SPACE, 0), upsert):
        with pytest.raises(Unavailable) as caught:
            await call
        assert caught.value.__cause__
    index._collections._lock.close()


def test_renamed_log_segment_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {name: tmp_path / name for name in ("open-1", "open-2")}
    for path in parts.values():
        path.write_text("written")
    due, synced = {path.stat().st_ino for path in parts.values()}, list[int]()

    def fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        for path in [path for path in parts.values() if path.exists() and path.stat().st_ino not in synced]:
            path.rename(tmp_path / "closed")

    monkeypatch.setattr(os, "fsync", fsync)
    sync_log_files(tmp_path, set())
    assert set(synced) == due | {tmp_path.stat().st_ino}


async def test_many_modes_keep_few_shards_open_and_none_at_start(tmp_path: Path) -> None:
    spaces = [VectorSpace(f"mode{number}", SPACE.fingerprint) for number in range(12)]
    index = EdgeIndex(tmp_path, EdgeResources(open_shards=OpenShards(3)))
    for space in spaces:
        await index.upsert(space, points(range(2)))
        assert len(index._collections._shards) <= 3
    for space in spaces:
        assert set(await index.hashes(space, [memory(1)])) == {memory(1)}
    await index.close()
    again = EdgeIndex(tmp_path, EdgeResources(open_shards=OpenShards(3)))
    assert [await again.count(space, 0) for space in spaces] == [2] * 12
    assert not again._collections._shards
    await again.upsert(spaces[0], points(range(2, 5)))
    await again.delete(spaces[1], [memory(0), memory(1)])
    await again.close()
    last = EdgeIndex(tmp_path, EdgeResources(open_shards=OpenShards(3)))
    assert await last.count(spaces[0], 0) == 5
    assert set(await last.spaces()) == {space.collection for space in spaces if space != spaces[1]}
    await last.close()


async def test_filtered_fields_are_indexed_and_fingerprints_stored(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(1)))
    await index.close()
    shard = load_shard(tmp_path / SPACE.collection)
    schema = shard.info().payload_schema
    indexes = {path: found.data_type for path, found in schema.items()}
    shard.close()
    words = dict.fromkeys(("boundary", "mode", "type", "scope.user_id"), PayloadSchemaType.Keyword)
    assert indexes == words | dict.fromkeys(("partition", "occurred_ms"), PayloadSchemaType.Integer)
    boundary, partition, time = (schema[path].params for path in ("boundary", "partition", "occurred_ms"))
    assert isinstance(boundary, KeywordIndexParams)
    assert boundary.is_tenant
    assert isinstance(partition, IntegerIndexParams)
    assert partition.lookup is True
    assert partition.range is False
    assert isinstance(time, IntegerIndexParams)
    assert time.lookup is False
    assert time.range is True
    assert (tmp_path / "general.alias").read_text() == SPACE.collection
    kept = (tmp_path / SPACE.collection / FINGERPRINT_FILE).read_text()
    assert Fingerprint.model_validate_json(kept) == SPACE.fingerprint


@pytest.mark.parametrize("written", [points(range(1024)), long_points(range(32))], ids=["many", "long"])
async def test_large_write_yields_between_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: list[Point]
) -> None:
    index, calls = EdgeIndex(tmp_path), [0]
    await index.upsert(TOKEN_SPACE, points(range(1)))
    shard, log_is_synced = index._collections._shards[TOKEN_SPACE.collection], threading.Event()
    update = shard.update

    def counted(operation: UpdateOperation) -> None:
        calls[-1] += 1
        update(operation)

    monkeypatch.setattr(shard, "update", counted)
    monkeypatch.setattr(shard, "sync_log", log_is_synced.wait)
    writing = asyncio.create_task(index.upsert(TOKEN_SPACE, written))
    while sum(calls) < 4:
        calls.append(0)
        await asyncio.sleep(0)
    log_is_synced.set()
    await writing
    await index.close()
    assert max(calls) == 1


def test_full_log_segment_is_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("closed-0", "open-1"):
        (tmp_path / name).write_text("written")
    names = {path.stat().st_ino: path.name for path in tmp_path.iterdir()}
    full, synced = set[Path](), list[str]()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(names.get(os.fstat(handle).st_ino, "the directory")))
    for _ in range(2):
        sync_log_files(tmp_path, full)
    assert sorted(synced) == ["closed-0", "open-1", "open-1", "the directory", "the directory"]
    assert full == {tmp_path / "closed-0"}


async def test_log_is_short_once_it_is_flushed(tmp_path: Path) -> None:
    space, index = space_of(dim=384), EdgeIndex(tmp_path)
    some = [replace(point, vector=np.ones(384, np.float32)) for point in points(range(2000))]
    await index.upsert(space, some)
    await index.close()
    log = (tmp_path / space.collection / WAL_DIR).iterdir()
    assert sum(512 * path.stat().st_blocks for path in log) <= 3 * LOG_SEGMENT_BYTES
    assert len(await kept_in(tmp_path, range(2000), space)) == 2000


async def test_a_point_that_is_half_removed_has_no_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied to another collection, it would replace the whole one there."""
    first = EdgeIndex(tmp_path)
    await first.upsert(TOKEN_SPACE, long_points(range(2)))

    def fail(*_: object) -> None:
        raise Unavailable("no more room")

    with monkeypatch.context() as patched:
        patched.setattr(CollectionShard, "update", fail)
        with pytest.raises(Unavailable):
            await first.delete(TOKEN_SPACE, [memory(0)])
    await first.close()
    again = EdgeIndex(tmp_path)
    assert set(await again.vectors(TOKEN_SPACE, [memory(0), memory(1)])) == {memory(1)}
    await again.close()
