"""Move the vectors of earlier releases, one root for all partitions, into a root for each partition.

Enters: the directory of all vectors, before any partition is opened. Leaves: the same points, by partition, and nothing
of the former root. Guaranteed: no vector is made again; a kill at any moment is followed by a new beginning or by the
rest of the move; of several processes one moves and the others wait for it.
"""

import asyncio
import fcntl
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import structlog

from schemas.models.vectors import Point
from schemas.state.modes import VectorSpace
from streams.adapters.durable_files import fsync_path, write_durably
from streams.adapters.vectors.embedded.edge_collections import OWNER_LOCK_FILE, PACKED_DIR
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_shard import FINGERPRINT_FILE
from streams.adapters.vectors.embedded.partitioned_index import PartitionedIndex

MOVING_DIR = ".moving"
"""In the directory: the new roots until all of them are complete."""

COMPLETE_FILE = "complete"
"""In `MOVING_DIR`, from the moment that it has all points."""

POLL_INTERVAL_S = 0.5
"""Between two looks whether another process has finished."""

PROGRESS_INTERVAL_S = 5.0

log = structlog.get_logger()


async def move_former_root(root: Path) -> None:
    """Move what an earlier release has left; returns at once where that is nothing."""
    while _is_former(root):
        try:
            if not (root / MOVING_DIR / COMPLETE_FILE).exists():
                await _copy(root)
            _replace(root)
        except (RuntimeError, BlockingIOError):
            # Another process moves it, or a worker of the earlier release is at work.
            log.info("waiting for the vectors, which another process has open", directory=str(root))
            await asyncio.sleep(POLL_INTERVAL_S)


def _is_former(root: Path) -> bool:
    has_collections = any(root.glob(f"[!.]*/{FINGERPRINT_FILE}"))
    return has_collections or (root / PACKED_DIR).exists() or (root / MOVING_DIR).exists()


def _replace(root: Path) -> None:
    """Put the copy, which counts from now on, in the place of the former root. Raises BlockingIOError."""
    moving = root / MOVING_DIR
    with (root / OWNER_LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not moving.exists():
            return
        for made in sorted(one for one in moving.iterdir() if one.is_dir()):
            made.rename(root / made.name)
        fsync_path(root)
        for path in [one for one in root.iterdir() if not one.name.isdigit() and one != moving]:
            _remove(path)
        shutil.rmtree(moving)


async def _copy(root: Path) -> None:
    """Copy all points into new roots in `MOVING_DIR`. Raises RuntimeError while another process owns the former one."""
    former = EdgeIndex(root)
    try:
        moving = root / MOVING_DIR
        _clear(root)
        moving.mkdir()
        parts = PartitionedIndex(moving)
        await _copy_points(former, parts)
        await parts.close()
        write_durably(moving / COMPLETE_FILE, "")
    finally:
        await former.close()


def _clear(root: Path) -> None:
    """Remove a copy that was begun, and roots of partitions: an earlier release has made its own since."""
    for stale in [one for one in root.iterdir() if one.name.isdigit() or one.name == MOVING_DIR]:
        shutil.rmtree(stale)


async def _copy_points(former: EdgeIndex, parts: PartitionedIndex) -> None:
    began = noticed = time.monotonic()
    done = 0
    for name, fingerprint in (await former.spaces()).items():
        space = VectorSpace.held_by(name, fingerprint)
        async for page in former.all_points(space):
            for partition, points in _by_partition(page).items():
                await parts.at(partition).upsert(space, points)
            done += len(page)
            if time.monotonic() - noticed >= PROGRESS_INTERVAL_S:
                noticed = time.monotonic()
                log.info("moving vectors into a directory for each partition", points=done)
    log.info("vectors are in a directory for each partition", points=done, seconds=round(time.monotonic() - began, 1))


def _by_partition(points: Iterable[Point]) -> Mapping[int, list[Point]]:
    by_partition: defaultdict[int, list[Point]] = defaultdict(list)
    for point in points:
        by_partition[point.partition].append(point)
    return by_partition


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
