"""Damaged collections of the embedded index are set aside and made again; a lack of the system is no damage."""

import resource
import signal
from pathlib import Path

import pytest

from schemas.failures import Unavailable
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.call_mark import CallMark
from streams.adapters.vectors.embedded.edge_collections import is_lack
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_shard import translate_engine_errors
from tests.unit.adapters.vectors.test_edge_index import SPACE, memory, points, run_child


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


@pytest.mark.parametrize("deaths", [1, 2])
async def test_a_second_death_while_reading_sets_a_collection_aside(tmp_path: Path, deaths: int) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(4)))
    await index.close()
    for _ in range(deaths):
        code = "edge_shard.PackedVectors = edge_shard.edge.EdgeShard = type('S', (), {'load': die})"
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
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 1, limits[1]))
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
