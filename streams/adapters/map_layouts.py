"""Kept maps as files, and the threads in which they are laid out.

A file for each collection of a user, below a folder for the user. Enters: maps of memories, which are ids with places,
no texts. Leaves: the same after a restart. Guaranteed: a damaged file is deleted, and a map that can't be written is
lost: it is derived, and made again. Files are replaced as a whole. A long layout delays no end of the process: its
thread is a daemon's, and ends with its next piece.
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import structlog

from agents.rules.maps.layout import MapLayout, StopCondition
from streams.adapters.child_processes import LOW_PRIORITY

FORMAT = 1
"""Of the files; those of another format are made again."""

SUFFIX = ".npz"

log = structlog.get_logger()


class LayoutFiles:
    """Implements `agents.ports.stores.MapLayouts` in a directory of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def collections(self, boundary: str) -> Sequence[str]:
        folder = self._folder(boundary)
        return sorted(file.name.removesuffix(SUFFIX) for file in folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []

    async def load(self, boundary: str, collection: str) -> MapLayout | None:
        file = self._file(boundary, collection)
        return await asyncio.to_thread(_read, file) if file.exists() else None

    async def save(self, boundary: str, collection: str, layout: MapLayout) -> None:
        await asyncio.to_thread(_write, self._file(boundary, collection), layout)

    def _folder(self, boundary: str) -> Path:
        # A boundary may have any characters, and more than a file name.
        return self._root / hashlib.sha256(boundary.encode()).hexdigest()[:32]

    def _file(self, boundary: str, collection: str) -> Path:
        return self._folder(boundary) / f"{collection}{SUFFIX}"


def _read(file: Path) -> MapLayout | None:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            format_, laid_out, remaining, total = stored["numbers"].tolist()
            ids, places = tuple(memory_id.decode() for memory_id in stored["ids"].tolist()), stored["places"]
            made_at = datetime.fromisoformat(str(stored["made_at"]))
        has_shape = places.shape == (len(ids), 2) and remaining <= len(ids)
        if format_ != FORMAT or not has_shape or not np.isfinite(places).all():
            raise ValueError("not the file of a map")  # noqa: TRY301 - handled as a broken archive is
    # A broken archive raises what its parser happens to meet.
    except Exception as problem:
        log.warning("a kept map can't be read: it is made again", problem=repr(problem))
        file.unlink(missing_ok=True)
        return None
    return MapLayout(ids, places, laid_out, remaining, total, made_at)


def _write(file: Path, layout: MapLayout) -> None:
    if not layout.ids:
        file.unlink(missing_ok=True)
        if file.parent.is_dir() and not any(file.parent.iterdir()):
            file.parent.rmdir()
        return
    draft = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as out:
            np.savez(
                out,
                numbers=np.array([FORMAT, layout.laid_out, layout.remaining, layout.total]),
                ids=np.array(layout.ids, np.bytes_),
                places=layout.places,
                made_at=np.array(layout.made_at.isoformat()),
            )
        draft.replace(file)
    except OSError as problem:
        log.warning("a map can't be kept: it is made again", problem=repr(problem))
        # The former file may have points of what is forgotten.
        shutil.rmtree(file.parent, ignore_errors=True)


Result = TypeVar("Result")


class LayoutThreads:
    """Implements `agents.ports.stores.LayoutThreads`."""

    def __init__(self) -> None:
        self._soon = asyncio.Lock()
        self._long = asyncio.Lock()

    @asynccontextmanager
    async def turn_soon(self) -> AsyncIterator[None]:
        async with self._soon:
            yield

    async def run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.to_thread(work)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        async with self._long:
            yield

    async def run_long(self, work: Callable[[StopCondition], Result]) -> Result:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            lower_priority()
            finish: Callable[[], None]
            try:
                finish = partial(future.set_result, work(future.cancelled))
            except BaseException as problem:
                finish = partial(future.set_exception, problem)
            # The loop may be closed by now.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: None if future.done() else finish())

        threading.Thread(target=run, name="map-layout", daemon=True).start()
        return await future


def lower_priority() -> None:
    """Lower the priority of the calling thread, where the system has one for each thread."""
    if hasattr(os, "setpriority") and os.uname().sysname == "Linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
