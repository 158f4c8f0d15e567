"""Damaged collections of the embedded index are set aside and made again; a lack of the system is no damage."""

import resource
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.edge_failures import MAX_FAILED_CALLS, CallMark, is_lack, translate_engine_errors
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from tests.harnesses.edge_index import ONES, SPACE, TOKEN_SPACE, memory, points, run_child


async def test_a_damaged_collection_is_set_aside_and_made_again(tmp_path: Path) -> None:
    index, losses = EdgeIndex(tmp_path), list[int]()
    await index.upsert(SPACE, points(range(1)))
    await index.close()
    [segment] = (tmp_path / SPACE.collection / "segments").glob("*/segment.json")
    segment.write_text("{")
    again = EdgeIndex(tmp_path)
    again.watch_losses(lambda: losses.append(1))
    await again.upsert(SPACE, points(range(1, 3)))
    assert losses == [1]
    assert again.set_aside() == [SPACE.collection]
    assert await again.count(SPACE, 0) == 2
    await again.close()
    [kept] = (tmp_path / f".damaged-{SPACE.collection}" / "segments").glob("*/segment.json")
    assert kept.read_text() == "{"


async def test_damage_that_shows_while_open_sets_a_collection_aside(tmp_path: Path) -> None:
    losses = list[int]()
    index = await _reopened_with_points(tmp_path)
    index.watch_losses(lambda: losses.append(1))
    _overwrite(tmp_path.rglob("segments/**/*.dat"))
    for _ in range(3 * MAX_FAILED_CALLS):
        with suppress(Unavailable):
            await index.hashes(TOKEN_SPACE, [memory(2)])
    assert losses == [1]
    assert index.set_aside() == [TOKEN_SPACE.collection]
    await index.upsert(TOKEN_SPACE, points(range(300, 303)))
    found = await index.search(TOKEN_SPACE, ONES, MemoryFilter("u1"), 5)
    assert [memory.memory_id for memory in found] == [memory(number) for number in range(300, 303)]
    await index.close()


async def test_damaged_packed_vectors_set_the_collections_aside_that_have_their_tokens_there(tmp_path: Path) -> None:
    index, lost = await _reopened_with_points(tmp_path), Mock()
    index.watch_losses(lost)
    index._packed._store.close()
    index._packed._store = Mock(**{"get.side_effect": Exception("Corruption: block checksum mismatch")})
    failures = await _count_failures(lambda: index.vectors(TOKEN_SPACE, [memory(3)]))
    assert failures == MAX_FAILED_CALLS
    assert await index.search(TOKEN_SPACE, ONES, MemoryFilter("u1"), 500) == []
    assert index.set_aside() == [TOKEN_SPACE.collection]
    lost.assert_called_once()
    await index.upsert(TOKEN_SPACE, points(range(3)))
    assert len(await index.search(TOKEN_SPACE, ONES, MemoryFilter("u1"), 500)) == 3
    await index.close()


async def _count_failures(call: Callable[[], Awaitable[object]]) -> int:
    failures = 0
    for _ in range(2 * MAX_FAILED_CALLS):
        try:
            await call()
        except Unavailable:
            failures += 1
    return failures


async def _reopened_with_points(root: Path) -> EdgeIndex:
    index = EdgeIndex(root)
    packable = np.full((256, 4), 0.5, np.float32)
    await index.upsert(TOKEN_SPACE, [replace(point, tokens=packable) for point in points(range(300))])
    await index.close()
    index = EdgeIndex(root)
    assert len(await index.hashes(TOKEN_SPACE, [memory(1)])) == 1
    return index


def _overwrite(files: Iterable[Path]) -> None:
    for file in [file for file in files if file.is_file()]:
        file.write_bytes(b"\xa5" * file.stat().st_size)


async def test_calls_that_fail_for_a_lack_set_nothing_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(2)))
    full = OSError(28, "No space left on device")
    with monkeypatch.context() as patched:
        patched.setattr(index._packed, "_store", Mock(**{"get.return_value": b"", "write.side_effect": full}))
        for _ in range(3 * MAX_FAILED_CALLS):
            with pytest.raises(Unavailable):
                await index.upsert(SPACE, points(range(2, 4)))
    await index.upsert(SPACE, points(range(2, 4)))
    assert await index.count(SPACE, 0) == 4
    assert index.set_aside() == []
    await index.close()


@pytest.mark.parametrize("deaths", [1, 2])
async def test_a_second_death_while_reading_sets_a_collection_aside(tmp_path: Path, deaths: int) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(4)))
    await index.close()
    for _ in range(deaths):
        code = "edge_shard.edge.EdgeShard = type('S', (), {'load': die})"
        with run_child(tmp_path, f"{code}\nasyncio.run(write_once())") as child:
            assert child.wait() == -signal.SIGKILL
    again = EdgeIndex(tmp_path)
    assert again.set_aside() == ([SPACE.collection] if deaths == 2 else [])
    assert await again.count(SPACE, 0) == (4 if deaths == 1 else 0)
    await again.close()


async def test_a_lack_of_descriptors_damages_nothing_is_told_and_passes(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(2)))
    await index.close()
    again, limits = EdgeIndex(tmp_path), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) - 1, limits[1]))
    try:
        with pytest.raises(Unavailable):
            await again.hashes(SPACE, [memory(1)])
        assert "open files" in (again.problem() or "")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert set(await again.hashes(SPACE, [memory(1)])) == {memory(1)}
    assert again.problem() is None
    assert again.set_aside() == []
    await again.close()


@pytest.mark.parametrize("content", [b"{", b"\xff", b"{}"])
async def test_a_damaged_fingerprint_concerns_its_collection_alone(tmp_path: Path, content: bytes) -> None:
    other = VectorSpace("other", SPACE.fingerprint)
    index = EdgeIndex(tmp_path)
    for space in (SPACE, other):
        await index.upsert(space, points(range(2)))
    await index.close()
    (tmp_path / SPACE.collection / "fingerprint.json").write_bytes(content)
    again = EdgeIndex(tmp_path)
    assert set(await again.spaces()) == {other.collection}
    assert again.set_aside() == [SPACE.collection]
    assert await again.count(SPACE, 0) == 0
    await again.close()


async def test_deaths_of_different_collections_are_not_added_up(tmp_path: Path) -> None:
    for name in ("one", "other", "one"):
        mark = CallMark(tmp_path)
        mark._set(name.encode())
    assert CallMark(tmp_path).deaths == {"one": 1}
    assert CallMark(tmp_path).deaths == {}


def test_a_panic_of_the_engine_is_unavailable() -> None:
    def panic() -> None:
        raise type("PanicException", (BaseException,), {})("index out of bounds")

    with pytest.raises(Unavailable, match="index out of bounds"):
        translate_engine_errors(panic)


@pytest.mark.parametrize("number", [5, 24, 28, 30, 122])
def test_a_lack_of_the_system_is_no_damage(number: int) -> None:
    assert is_lack(Unavailable(f"the embedded vector index failed: (os error {number})"))
    assert not is_lack(Unavailable("the embedded vector index failed: (os error 2)"))


async def test_full_disk_during_creation_is_unavailable_and_passes(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    obstacle = tmp_path / "general.alias.new"
    obstacle.mkdir()
    with pytest.raises(Unavailable):
        await index.upsert(SPACE, points(range(1)))
    obstacle.rmdir()
    await index.upsert(SPACE, points(range(1)))
    await index.close()
