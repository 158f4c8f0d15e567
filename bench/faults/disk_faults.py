"""Disks that are full: each store on a small file system in memory, which is cut to what is used and grown again."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from bench.faults.load import Load
from bench.faults.row import Fault
from bench.faults.world import Models, World
from bench.harness.system import System, running

ROOM_MIB = 600
FULL_S = 15.0
STORES = {"partitions": "databases of the partitions", "vectors": "vectors", "kafka": "Kafka's log"}
"""Directories of a data directory, and what they hold."""


def can_mount() -> bool:
    """True if this process may mount a file system."""
    with tempfile.TemporaryDirectory() as directory:
        if subprocess.run(_mount(directory), check=False, capture_output=True).returncode:
            return False
        subprocess.run(["umount", directory], check=True)
        return True


def _mount(directory: str | Path) -> list[str]:
    return ["mount", "-t", "tmpfs", "-o", f"size={ROOM_MIB}m", "tmpfs", str(directory)]


@asynccontextmanager
async def new_up_on_small_disks() -> AsyncIterator[System]:
    """Run `streams up` with each store on a file system of its own."""
    with tempfile.TemporaryDirectory(prefix="modestream-faults-") as directory, ExitStack() as stack:
        for store in STORES:
            place = Path(directory) / store
            place.mkdir()
            await asyncio.to_thread(subprocess.run, _mount(place), check=True)
            stack.callback(subprocess.run, ["umount", str(place)], check=True)
        async with running(Path(directory), Models.settings()) as system:
            yield system


def _resize(place: Path, kib: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kib}k", str(place)], check=True)


def _cut(place: Path) -> None:
    """Leave no room. What is used may grow between the look and the cut."""
    for _ in range(20):
        disk = os.statvfs(place)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize // 1024
        try:
            _resize(place, used)
        except subprocess.CalledProcessError:
            continue
        return
    raise RuntimeError(f"{place} could not be filled")


def full_disk(store: str) -> Fault:
    """Return the fault of a full disk under one store."""

    async def act(world: World, _load: Load) -> str:
        assert isinstance(world, System)
        place = world.data_dir / store
        _cut(place)
        await asyncio.sleep(FULL_S)
        _resize(place, ROOM_MIB * 1024)
        return ""

    return Fault(f"disk full for {FULL_S:g} s: {STORES[store]}", new_up_on_small_disks, act)


DISK_FAULTS = [full_disk(store) for store in STORES]
