"""One root for all partitions, as earlier releases have it, becomes a root for each partition with the same points."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.models.vectors import Matrix, MemoryFilter, Point
from streams.adapters.vectors.embedded import former_root
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.former_root import move_former_root
from streams.adapters.vectors.embedded.partitioned_index import PartitionedIndex
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import SPACE, memory, point

TOKEN_SPACE = space_of(dim=4, mode="code", token_dim=8)


def drawn(count: int) -> Matrix:
    """Return token vectors in the steps of packed ones."""
    return (np.random.default_rng(count).integers(-60, 60, (count, 8)) / 128).astype(np.float32)


def of_partition(number: int) -> Point:
    """Return a point of partition 0 or 1."""
    return point(number, partition=number % 2, boundary=f"u{number % 2}", content_hash=f"hash-{number}")


POINTS = [of_partition(number) for number in range(7)]


async def made_by_an_earlier_release(root: Path) -> None:
    index = EdgeIndex(root)
    await index.upsert(SPACE, POINTS)
    await index.upsert(TOKEN_SPACE, [replace(one, tokens=drawn(3)) for one in POINTS[:3]])
    await index.close()


async def hashes_of(root: Path, partition: int) -> dict[str, str]:
    index = PartitionedIndex(root)
    found = await index.at(partition).hashes(SPACE, [memory(number) for number in range(9)])
    await index.close()
    return dict(found)


async def is_whole(root: Path) -> bool:
    parts = [await hashes_of(root, partition) for partition in (0, 1)]
    expected = [{one.memory_id: one.content_hash for one in POINTS if one.partition == each} for each in (0, 1)]
    return parts == expected and sorted(one.name for one in root.iterdir()) == ["0", "1"]


async def test_points_are_moved_with_their_tokens(tmp_path: Path) -> None:
    root = tmp_path / "vectors"
    await made_by_an_earlier_release(root)
    former, where = EdgeIndex(root), MemoryFilter("u0")
    expected = await former.maxsim(TOKEN_SPACE, drawn(2), where, 9)
    await former.close()
    await move_former_root(root)
    assert await is_whole(root)
    index = PartitionedIndex(root)
    assert len(expected) == 2
    assert await index.at(0).maxsim(TOKEN_SPACE, drawn(2), where, 9) == expected
    assert await index.at(1).maxsim(TOKEN_SPACE, drawn(2), where, 9) == []
    await index.close()


async def test_moved_directory_is_left_alone(tmp_path: Path) -> None:
    await move_former_root(tmp_path / "nothing-there")
    root = tmp_path / "vectors"
    await made_by_an_earlier_release(root)
    for _ in range(2):
        await move_former_root(root)
        assert await is_whole(root)


@pytest.mark.parametrize("step", ["_clear", "write_durably", "_replace", "_remove", "fsync_path"])
async def test_kill_at_any_step_is_followed_by_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    root = tmp_path / "vectors"
    await made_by_an_earlier_release(root)

    def killed(*_: object) -> None:
        raise SystemError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(former_root, step, killed)
        with pytest.raises(SystemError):
            await move_former_root(root)
    await move_former_root(root)
    assert await is_whole(root)


async def test_vectors_of_an_earlier_release_that_was_started_again_replace_the_moved_ones(tmp_path: Path) -> None:
    root = tmp_path / "vectors"
    stale = PartitionedIndex(root)
    for partition in (1, 2):
        await stale.at(partition).upsert(SPACE, [replace(of_partition(8), partition=partition)])
    await stale.close()
    await made_by_an_earlier_release(tmp_path / "former")
    for one in (tmp_path / "former").iterdir():
        shutil.move(one, root / one.name)
    await move_former_root(root)
    assert await is_whole(root)
