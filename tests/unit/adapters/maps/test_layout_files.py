"""Kept maps on the disk, and the threads of layouts."""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from agents.rules.maps.layout import MapLayout, StopCondition
from streams.adapters import map_layouts
from streams.adapters.map_layouts import LayoutFiles, LayoutThreads

NOW = datetime(2026, 3, 1, 10, 30, 0, 123456, tzinfo=UTC)


def layout_of(count: int) -> MapLayout:
    places = np.random.default_rng(1).uniform(-1, 1, (count, 2)).astype(np.float32)
    return MapLayout.new([f"00000000-0000-4000-8000-{n:012d}" for n in range(count)], places, count + 3, NOW)


async def test_map_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    saved = layout_of(20).without(["00000000-0000-4000-8000-000000000003"])
    await LayoutFiles(tmp_path).save("ana/é/../x", "general-abc", saved)
    loaded = await LayoutFiles(tmp_path).load("ana/é/../x", "general-abc")
    assert loaded is not None
    assert loaded.places.tobytes() == saved.places.tobytes()
    assert loaded.ids == saved.ids
    assert loaded.laid_out == 20
    assert loaded.remaining == 19
    assert loaded.total == 23
    assert loaded.made_at == NOW


async def test_maps_of_users_and_collections_are_apart(tmp_path: Path) -> None:
    files = LayoutFiles(tmp_path)
    await files.save("ana", "general-a", layout_of(3))
    await files.save("ana", "notes-a", layout_of(4))
    await files.save("ben", "general-a", layout_of(5))
    assert files.collections("ana") == ["general-a", "notes-a"]
    assert files.collections("cleo") == []
    assert await files.load("cleo", "general-a") is None
    found = await files.load("ben", "general-a")
    assert found is not None
    assert len(found.ids) == 5


async def test_map_without_points_leaves_nothing(tmp_path: Path) -> None:
    files = LayoutFiles(tmp_path)
    await files.save("ana", "general-a", layout_of(3))
    await files.save("ana", "general-a", layout_of(0))
    assert list(tmp_path.rglob("*")) == []
    await files.save("ana", "general-a", layout_of(0))


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
async def test_damaged_map_is_no_map(tmp_path: Path, damage: bytes | None) -> None:
    files = LayoutFiles(tmp_path)
    await files.save("ana", "general-a", layout_of(30))
    [file] = tmp_path.rglob("*.npz")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert await files.load("ana", "general-a") is None
    assert not file.exists()


async def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    files = LayoutFiles(tmp_path)
    await files.save("ana", "general-a", layout_of(30))
    [file] = tmp_path.rglob("*.npz")
    whole = bytearray(file.read_bytes())
    whole[whole.index(b"places.npy") + 200] ^= 0xFF
    file.write_bytes(bytes(whole))
    assert await files.load("ana", "general-a") is None


async def test_map_of_another_format_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LayoutFiles(tmp_path)
    await files.save("ana", "general-a", layout_of(3))
    monkeypatch.setattr(map_layouts, "FORMAT", 99)
    assert await files.load("ana", "general-a") is None


async def test_map_that_cannot_be_written_is_lost_and_leaves_no_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LayoutFiles(tmp_path)
    await files.save("ana", "general-a", layout_of(3))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    await files.save("ana", "general-a", layout_of(2))
    assert await files.load("ana", "general-a") is None


async def test_long_work_runs_beside_the_loop_in_a_daemon_thread() -> None:
    threads, started = LayoutThreads(), threading.Event()

    def work(should_stop: StopCondition) -> tuple[bool, bool]:
        started.set()
        return threading.current_thread().daemon, should_stop()

    assert await threads.run_long(work) == (True, False)
    assert await threads.run(lambda: 3) == 3


async def test_failure_of_long_work_reaches_its_caller() -> None:
    def work(_: StopCondition) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await LayoutThreads().run_long(work)


async def test_cancelled_work_is_told_to_stop() -> None:
    stopped, started = threading.Event(), threading.Event()

    def work(should_stop: StopCondition) -> None:
        started.set()
        while not should_stop():
            pass
        stopped.set()

    task = asyncio.create_task(LayoutThreads().run_long(work))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    assert await asyncio.to_thread(stopped.wait, 5)


async def test_one_has_a_turn_at_a_time() -> None:
    threads, inside, most = LayoutThreads(), 0, 0

    async def use() -> None:
        nonlocal inside, most
        async with threads.turn():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(use() for _ in range(5)))
    assert most == 1
