"""Read files of turns in the background, and remove bytes that no memory has any more.

What is to be done stands in the table `files`, so that nothing is lost with this process: a file is `pending` until all
of its document memories are written, and read again after a kill. Users take turns. Document memories are written in
slices that give way to requests; the next ones wait until the indexer has embedded most of the last.
"""

import asyncio
import math
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import structlog

from agents.memory.files import KeepFiles
from agents.memory.items import MemoryEvent
from agents.memory.remember import Remember
from agents.memory.write_memory import Slices
from agents.ports.files import FileBytes, FileReader, FileSource, StoredBytes
from agents.ports.pipelines import State
from agents.rules.items.analysis import AnalysedText
from agents.rules.memory.resources import file_name, uploads_of
from schemas.failures import Rejected, Unavailable
from schemas.state.files import FileText, FileToRead, ReadFailed, without_upload
from schemas.state.memories import Memory, Resource
from streams.batching import batches
from streams.fair_queue import FairTurns
from streams.flow.pipelines.in_force import READ_FILES
from streams.flow.steps.remember import PrepareTurns, in_slices, records_of
from streams.flow.worker_context import WorkerContext

log = structlog.get_logger()

LOOK_INTERVAL_S = 5.0
"""Maximum seconds between two looks: a store of bytes that is away is tried again."""

WRITES_S = 0.05
"""Writes that follow one another within this time are one look."""

RETRY_S = 3.0
"""Pause after a defect."""

LAG_POLL_INTERVAL_S = 0.05

MAX_WAITING_OF_USER = 4
"""Turns of one user whose files are read or wait for that; further ones are found by the table."""

PARTS_PER_BATCH = 32
"""Document memories that are written, and embedded, before those of the next file."""

MAX_INDEXER_LAG = 32
"""Lag of the indexer, in events, above which the next ones wait: others' turns are embedded first."""

MAX_PAUSE_S = 0.5
"""The longest pause after a batch, half as long as it took, while requests come."""

DONE: list[MemoryEvent] = []


class ReadFiles:
    """Runs until it is cancelled."""

    def __init__(
        self,
        remember_at: Callable[[int], Remember],
        reader: FileReader,
        source: FileSource,
        indexer_lag: Callable[[], int],
        ctx: WorkerContext,
        *,
        at_once: int,
    ) -> None:
        """`indexer_lag` counts the events before the indexer; files of `at_once` turns are read at the same time."""
        self._remember_at = remember_at
        self._reader = reader
        self._source = source
        self._indexer_lag = indexer_lag
        self._ctx = ctx
        self._prepare = PrepareTurns(ctx.pipelines, ctx.stores, ctx.read_text, ctx.meters)
        self._turns = FairTurns(at_once, math.inf)
        self._writing = asyncio.Lock()
        """One batch at a time: files that are read together take turns."""
        self._tasks: dict[tuple[int, str], asyncio.Task[None]] = {}
        self._not_before: dict[str, datetime] = {}
        """When to look again at bytes that an edited turn has left."""

    async def run(self) -> None:
        try:
            while True:
                # Before the look: a write during it is seen by the next one.
                self._ctx.stores.files.due.clear()
                for partition in self._ctx.served_partitions():
                    try:
                        self._start(partition)
                        await self._remove(partition)
                    except (KeyError, Unavailable) as problem:
                        # The partition has left, or the store of bytes is away: the next look tries again.
                        log.info("files are looked at again", partition=partition, problem=repr(problem))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ctx.stores.files.due.wait(), LOOK_INTERVAL_S)
                await asyncio.sleep(WRITES_S)
        finally:
            for task in list(self._tasks.values()):
                task.cancel()

    def look(self) -> None:
        """Check now for work of newly arrived partitions."""
        self._ctx.stores.files.due.set()

    def _start(self, partition: int) -> None:
        for boundary, memory_ids in self._ctx.stores.files.pending(partition).items():
            waiting = [memory_id for memory_id in memory_ids if (partition, memory_id) in self._tasks]
            due = (memory_id for memory_id in memory_ids if memory_id not in waiting)
            for memory_id, _ in zip(due, range(MAX_WAITING_OF_USER - len(waiting)), strict=False):
                task = asyncio.create_task(self._read(partition, boundary, memory_id))
                self._tasks[partition, memory_id] = task
                task.add_done_callback(partial(self._done, partition, memory_id))

    def _done(self, partition: int, memory_id: str, _: object) -> None:
        del self._tasks[partition, memory_id]
        # Further turns of its user may have waited for this one.
        self.look()

    async def _read(self, partition: int, boundary: str, memory_id: str) -> None:
        async with self._turns.turn(boundary):
            try:
                turn = self._ctx.stores.memories.get(partition, memory_id)
                if turn is None:
                    return
                for resource in turn.resources:
                    if resource.status == "pending":
                        await self._read_resource(partition, boundary, turn, resource)
            except KeyError:
                log.info("a partition left while its files were read", partition=partition)
            except Unavailable as problem:
                log.info("files are read again", partition=partition, problem=str(problem))
                await asyncio.sleep(RETRY_S)
            except Exception:
                log.exception("reading the files of a turn failed", partition=partition)
                # Not at once again: whatever it is, others are read meanwhile.
                await asyncio.sleep(RETRY_S)

    async def _read_resource(self, partition: int, boundary: str, turn: Memory, resource: Resource) -> None:
        keep, memory_id, uri = self._keep(partition), turn.memory_id, resource.uri
        try:
            with tempfile.TemporaryDirectory(prefix="modestream-file-") as folder:
                path = Path(folder) / "file"
                await self._source.fetch(uri, boundary, path)
                media_type = resource.media_type or "application/octet-stream"
                text = await self._text_of(turn, FileToRead(path, uri, media_type, file_name(resource)))
        except ReadFailed as failed:
            failing = partial(keep.fail, memory_id, uri, failed.code, str(failed))
            await self._apply(partition, boundary, _once(failing))
            return
        await self._apply(partition, boundary, _once(partial(keep.begin, memory_id, uri, text)))
        for numbers in batches(range(len(text.segments)), PARTS_PER_BATCH):
            async with self._writing:
                parts = _parts(self._keep(partition), memory_id, uri, text, numbers)
                # Write a batch, and leave the processor to others for a while.
                writing = self._apply(partition, boundary, parts)
                clock = asyncio.get_running_loop().time
                began = clock()
                await writing
                while self._indexer_lag() > MAX_INDEXER_LAG:  # noqa: ASYNC110 - lag is Kafka's, and nothing tells of it
                    await asyncio.sleep(LAG_POLL_INTERVAL_S)
                if self._ctx.foreground.is_expected:
                    await asyncio.sleep(min((clock() - began) / 2, MAX_PAUSE_S))
        analysis = None
        if (read := self._keep(partition).as_read(memory_id, uri, text)) is not None:
            try:
                analysis = await self._prepare.analyse(partition, read, await self._prepare.in_force())
            except Rejected as problem:
                # Its parts are found all the same.
                log.warning("custom step refuses a file", problem=problem.code, partition=partition)
                analysis = AnalysedText.of(read, None, [])
        await self._apply(partition, boundary, self._keep(partition).finish(memory_id, uri, text, analysis))

    async def _text_of(self, turn: Memory, file: FileToRead) -> FileText:
        """Read a file by the step of the pipelines. Raises ReadFailed; Unavailable while that step can't run here."""
        active = await self._prepare.in_force()
        if active.awaits(READ_FILES):
            raise Unavailable("reading waits for the revision of the pipelines that counts")
        if not active.is_on(READ_FILES) and not active.has_custom(READ_FILES):
            raise ReadFailed("no_reader", f"{READ_FILES} is switched off.")

        async def read(_: State) -> State:
            return {"file_text": await self._reader.read(file.path, media_type=file.media_type, name=file.name)}

        state: State = {"memory": turn, "file": file, "file_text": FileText("", "none")}
        try:
            await active.run({READ_FILES: read}, state)
        except Rejected as problem:
            if problem.code == "unavailable":
                raise Unavailable(problem.message) from problem
            raise ReadFailed("unreadable", problem.message) from problem
        text: FileText = state["file_text"]
        return text if text.segments else replace(text, segments=self._reader.segments_of(text.text))

    async def _apply(self, partition: int, boundary: str, slices: Slices[list[MemoryEvent]]) -> None:
        """Write in slices and publish the resulting events; returns when all is durable."""
        sent, commit = [], self._ctx.commit
        writing = await commit.begin(partition)
        try:
            events = await in_slices(slices, self._ctx.foreground)
            for out in await records_of(self._ctx.topics, boundary, events, self._ctx.recent):
                sent.append(await self._ctx.publisher.send(out))  # noqa: PERF401 - those before are finished
        finally:
            finishing = writing.finish(sent)
        await commit.commit([partition])
        await finishing

    async def _remove(self, partition: int) -> None:
        """Remove bytes; none that a turn has brought again. Raises Unavailable."""
        files = self._ctx.stores.files
        due = [key for key in files.removals(partition) if self._is_due(partition, key)]
        if not due or self._ctx.file_bytes is None:
            return
        # The rows that say so are durable first.
        await self._ctx.commit.commit([partition])
        done = [key for key in due if await self._remove_bytes(self._ctx.file_bytes, partition, key)]

        def note() -> list[MemoryEvent]:
            for key in done:
                files.removed(partition, key)
            return DONE

        await self._apply(partition, "", _once(note))

    async def _remove_bytes(self, store: FileBytes, partition: int, key: str) -> bool:
        """Remove the bytes that a turn has brought; False if some may be of an upload whose turn is on its way."""
        self._not_before.pop(key, None)
        memories, grace = self._ctx.stores.memories, timedelta(seconds=self._ctx.files_grace_s)
        folder, _, memory_id = key.rpartition("/")
        stored = [found for found in await store.find(f"{folder}/") if without_upload(found.key) == key]
        if folder.rpartition("/")[2] in uploads_of(memories.get(partition, memory_id)):
            return True
        young: list[StoredBytes] = []
        if not memories.is_forgotten(partition, memory_id):
            # An edited turn may have the file again: bytes that have just been stored may be for that.
            until = self._ctx.clock.now() - grace
            young = [found for found in stored if found.modified > until]
        await store.remove([found.key for found in stored if found not in young])
        if young:
            self._not_before[key] = max(found.modified for found in young) + grace
        return not young

    def _is_due(self, partition: int, key: str) -> bool:
        is_forgotten = self._ctx.stores.memories.is_forgotten(partition, key.rpartition("/")[2])
        now = self._ctx.clock.now()
        return is_forgotten or self._not_before.get(key, now) <= now

    def _keep(self, partition: int) -> KeepFiles:
        if not self._ctx.is_assigned(partition):
            raise KeyError(partition)
        return self._remember_at(partition).files


def _once(work: Callable[[], object]) -> Slices[list[MemoryEvent]]:
    """Return one slice; what it returns are events if it is a list."""
    yield
    result = work()
    return result if isinstance(result, list) else DONE


def _parts(
    keep: KeepFiles, memory_id: str, uri: str, text: FileText, numbers: Iterable[int]
) -> Slices[list[MemoryEvent]]:
    events: list[MemoryEvent] = []
    for number in numbers:
        events += keep.put_part(memory_id, uri, text, number)
        yield
    return events
