"""Imports: an export is spooled to disk, read in its own process, and published turn by turn.

Enters: a call, the options of an import, and the pieces of a file. Leaves: the id of a job that any gateway can report,
since the worker gets the progress every few seconds. Guaranteed: a body of another format is refused before anything is
stored; a file's cost in memory, time and disk is bounded, and borne by its sender; a gateway with a folder for exports
continues after a restart where it was, and counts only turns in flight twice.
"""

import asyncio
import fcntl
import logging
import os
import shutil
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from modestream_client.imports import EXPECTED, FORMATS, Entry, Problem, zone_of
from modestream_client.imports.publishing import RETRIABLE, ModesFor, Tally, TryAgain, publish
from modestream_client.imports.reading import MAX_ENTRY_BYTES, entry_of
from modestream_client.operations import REPORT_IMPORT
from modestream_client.records import build_record
from pydantic_core import from_json, to_json

from gateway.service.access import PROJECT, audited
from gateway.service.calls import RETRY_AFTER_S, Call, Caller, Json, Refused
from gateway.service.operations import Operations
from gateway.service.turns import FORGOTTEN, Turn, Turns
from schemas.failures import Rejected
from schemas.messages.decoding import decode
from schemas.messages.turns import Turn as TurnRecord
from schemas.scope_models import bind_scope
from schemas.scopes import Scope
from schemas.state.policies import Grant

log = logging.getLogger(__name__)

MAX_EXPORT_BYTES = 256 * 1024 * 1024
"""Bytes of an export (docs/contract.md)."""

MAX_SPOOLED_BYTES, MAX_SPOOLED_OF_SENDER = 16 * MAX_EXPORT_BYTES, 4 * MAX_EXPORT_BYTES
"""Maximum bytes of exports on disk: in total, and of one caller."""

MAX_IMPORTS, MAX_IMPORTS_OF_SENDER = 256, 32
"""Maximum imports accepted, running or waiting: in total, and of one caller. Each holds a file open and is reported."""

PIECE_BYTES = 1024 * 1024
"""Bytes written to disk at once."""

AT_ONCE, AT_ONCE_OF_SENDER, AT_ONCE_OF_USER = 8, 6, 3
"""Concurrent imports, in total, of one caller, and of one user; further ones wait."""

ENTRIES_AT_A_STRETCH = 50
"""Entries read before other calls are served again."""

LOOK_S, LOOKS_AT_ONCE = 30.0, 8
"""Time limit of checking a file's format, in seconds, and files checked at once."""

TURN_S, REPORT_S = 60.0, 20.0
"""Seconds of one attempt to store a turn, and to report."""

REPORT_EVERY_S = (0.3, 0.6, 1.0, 2.0)
"""Pauses before the first reports; the last one repeats."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of an import. `scope` has the fields named by the request, without the user."""

    format: str
    scope: Json = field(default_factory=dict)
    zone: str | None = None
    mode: str | None = None
    mode_for: tuple[str, ...] = ()

    @property
    def spans_projects(self) -> bool:
        return self.format == "jsonl" and PROJECT not in self.scope

    def check(self) -> None:
        """Raise Refused, `invalid_value`, for an invalid format, zone or rule."""
        if self.format not in FORMATS:
            raise Refused("invalid_value", f"give a format: {', '.join(FORMATS)}", "format")
        for name, read in (("zone", lambda: zone_of(self.zone)), ("mode_for", lambda: ModesFor(self.mode_for))):
            try:
                read()
            except ValueError as problem:
                raise Refused("invalid_value", str(problem), name) from None


@dataclass(slots=True)
class _Job:
    """An import on disk: its file, its caller, and its progress."""

    folder: Path
    job_id: str
    caller: Caller
    user_id: str
    request_id: str
    asked: Asked
    size: int = 0
    tally: Tally = field(default_factory=Tally)

    @property
    def file(self) -> Path:
        return self.folder / "export"

    def call(self, wait_s: float) -> Call:
        return Call.within(self.caller, self.user_id, wait_s, self.request_id)

    def save(self) -> None:
        """Write the progress atomically."""
        grants = self.caller.grants
        caller = {
            "name": self.caller.name,
            "principal": self.caller.principal,
            "own_user": self.caller.own_user,
            "is_operator": self.caller.is_operator,
            "grants": None if grants is None else [grant.model_dump(mode="json") for grant in grants],
        }
        about = {name: getattr(self, name) for name in ("job_id", "user_id", "request_id")}
        state = {**about, "caller": caller, "asked": asdict(self.asked), "tally": self.tally.result()}
        written = self.folder / "job.json.new"
        written.write_bytes(to_json(state))
        written.replace(self.folder / "job.json")

    @classmethod
    def saved_in(cls, folder: Path) -> "_Job":
        """Read an interrupted import. Raises OSError, ValueError, KeyError or TypeError."""
        state = from_json((folder / "job.json").read_bytes())
        caller, asked = state["caller"], state["asked"]
        grants = caller.pop("grants")
        granted = None if grants is None else tuple(Grant.model_validate(grant, strict=False) for grant in grants)
        return cls(
            folder=folder,
            caller=Caller(**caller, grants=granted),
            asked=Asked(**{**asked, "mode_for": tuple(asked["mode_for"])}),
            tally=Tally.of(state["tally"]),
            **{name: state[name] for name in ("job_id", "user_id", "request_id")},
        )


class Imports:
    """Imports of this gateway. `running` is entered as long as it serves."""

    def __init__(self, turns: Turns, operations: Operations, scope: type[Scope], folder: Path | None = None) -> None:
        """Without a `folder` exports are in a temporary one, and nothing continues after a restart."""
        self._turns = turns
        self._operations = operations
        self._records = {"turn.v1": bind_scope(TurnRecord, scope)}
        self._boundary = {*scope.boundary_fields}
        self._folder = folder
        self._own_folder: Path | None = None
        self._spooled: dict[str, int] = {}
        self._jobs: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._turns_of: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()
        """Locks of users and of callers, while one of their imports needs them."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Continue an earlier gateway's imports; at the end leave unfinished ones to a later one."""
        try:
            exports = self._folder.iterdir() if self._folder is not None and self._folder.is_dir() else ()
            for folder in sorted(filter(Path.is_dir, exports)):
                self._resume(folder)
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._own_folder is not None:
                shutil.rmtree(self._own_folder, ignore_errors=True)

    async def begin(self, call: Call, asked: Asked, pieces: AsyncIterable[bytes]) -> tuple[str, Json]:
        """Take a file, and start to import it; return the id of the job, and its counts. Raises Refused."""
        asked.check()
        if self._jobs[call.caller.name] >= MAX_IMPORTS_OF_SENDER or self._jobs.total() >= MAX_IMPORTS:
            raise _too_many()
        job_id = f"import-{uuid.uuid4().hex}"
        try:
            folder = self._root() / job_id
            folder.mkdir(mode=0o700)
        except OSError as problem:
            raise _no_room(problem) from None
        lock = _locked(folder)
        job = _Job(folder, job_id, call.caller, call.user_id, call.request_id, asked)
        self._jobs[job.caller.name] += 1
        try:
            await self._spool(job, pieces)
            await self._look(job)
            await self._report(job)
            job.save()
        except BaseException as problem:
            self._remove(job, lock)
            if isinstance(problem, OSError):
                raise _no_room(problem) from None
            raise
        self._start(job, lock)
        return job_id, job.tally.counts()

    def _root(self) -> Path:
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self._folder
        if self._own_folder is None:
            self._own_folder = Path(tempfile.mkdtemp(prefix="modestream-imports-"))
        return self._own_folder

    async def _spool(self, job: _Job, pieces: AsyncIterable[bytes]) -> None:
        """Write the file. Raises Refused."""
        waiting: list[bytes] = []
        size = pending = 0

        def write() -> None:
            with job.file.open("ab") as file:
                file.writelines(waiting)

        async for piece in pieces:
            size, pending = size + len(piece), pending + len(piece)
            if size > MAX_EXPORT_BYTES:
                most = MAX_EXPORT_BYTES // 1024**2
                raise Refused(
                    "too_large", f"an export has at most {most} MiB here; the command line imports larger ones"
                )
            self._take_room(job, len(piece))
            waiting.append(piece)
            if pending >= PIECE_BYTES:
                await asyncio.to_thread(write)
                waiting, pending = [], 0
        await asyncio.to_thread(write)

    def _take_room(self, job: _Job, size: int) -> None:
        of_caller = self._spooled.get(job.caller.name, 0) + size
        if of_caller > MAX_SPOOLED_OF_SENDER or sum(self._spooled.values()) + size > MAX_SPOOLED_BYTES:
            raise _too_many()
        self._spooled[job.caller.name] = of_caller
        job.size += size

    async def _look(self, job: _Job) -> None:
        """Raise Refused, `invalid_value`, for a file of another format."""
        try:
            async with self._looks, asyncio.timeout(LOOK_S), _lines_of(job) as lines:
                first = await anext(lines, None)
        except (TimeoutError, ValueError):
            first = None
        if first is None or "refused" in first:
            why = f"this is no {EXPECTED[job.asked.format]}" if first is None else first["refused"]  # type: ignore[index]
            raise Refused("invalid_value", why, "format")

    def _start(self, job: _Job, lock: int | None) -> None:
        task = asyncio.create_task(self._run(job, lock))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _resume(self, folder: Path) -> None:
        lock = None
        try:
            if (lock := _locked(folder)) is None:
                return
            job = _Job.saved_in(folder)
            job.size = job.file.stat().st_size
            self._jobs[job.caller.name] += 1
            self._spooled[job.caller.name] = self._spooled.get(job.caller.name, 0) + job.size
        except (OSError, ValueError, KeyError, TypeError) as problem:
            log.warning("an export that was not taken whole is removed: %s", type(problem).__name__)
            shutil.rmtree(folder, ignore_errors=True)
            if lock is not None:
                os.close(lock)
            return
        log.info("the import %s goes on behind %d messages", job.job_id, job.tally.read)
        self._start(job, lock)

    def _remove(self, job: _Job, lock: int | None) -> None:
        self._spooled[job.caller.name] = self._spooled.get(job.caller.name, 0) - job.size
        if self._spooled[job.caller.name] <= 0:
            del self._spooled[job.caller.name]
        self._jobs[job.caller.name] -= 1
        if not self._jobs[job.caller.name]:
            del self._jobs[job.caller.name]
        shutil.rmtree(job.folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)

    async def _run(self, job: _Job, lock: int | None) -> None:
        """Import a file to its end, and report that; a cancelled one stays on disk."""
        of_user = self._turns_of.setdefault(("user", job.user_id), asyncio.Semaphore(AT_ONCE_OF_USER))
        of_sender = self._turns_of.setdefault(("sender", job.caller.name), asyncio.Semaphore(AT_ONCE_OF_SENDER))
        outcome: Json
        reporting = asyncio.create_task(self._report_regularly(job))
        try:
            async with of_user, of_sender, self._at_once:
                with audited(job.call(TURN_S), "import", job.asked.scope, format=job.asked.format) as counts:
                    outcome = await self._publish(job)
                    counts.update(job.tally.counts())
        except asyncio.CancelledError:
            reporting.cancel()
            job.save()
            if lock is not None:
                os.close(lock)
            raise
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
        await self._report_end(job, outcome)
        self._remove(job, lock)

    async def _publish(self, job: _Job) -> Json:
        """Publish the entries; return the fields of the final report."""
        modes = ModesFor(job.asked.mode_for, job.asked.mode)

        async def entries() -> AsyncGenerator[Entry]:
            async with _lines_of(job) as lines:
                is_whole = False
                async for line in lines:
                    is_whole = is_whole or "is_whole" in line
                    if "place" in line or "count" in line:
                        yield modes.applied(entry_of(line))
            if not is_whole:
                message = "reading the file took more memory or time than an import may take: the rest was not read"
                yield Problem("the rest of the file", "too_large", message)

        async def send(turn: Json, place: int | str) -> Any:
            return await self._send(job, turn, place)

        try:
            await publish(entries(), send, job.tally)
        except Refused as refused:
            return {"error": {"code": refused.code, "message": refused.message, "field": refused.field}}
        except Exception as defect:
            log.exception("the import %s failed", job.job_id, exc_info=defect)
            return {"error": {"code": "internal", "message": "the import failed; the gateway's log has the reason"}}
        return {"result": {**job.tally.result(), "job_id": job.job_id}}

    async def _send(self, job: _Job, turn: Json, place: int | str) -> tuple[Any, str | None]:
        """Store a turn. Raises TryAgain."""
        stated = turn.get("scope") or {}
        scope = {name: value for name, value in stated.items() if name not in self._boundary} | job.asked.scope
        turn = {name: value for name, value in turn.items() if name != "scope"}
        call = job.call(TURN_S)
        try:
            # Checked here, so that a broken message does not become a dead letter.
            checked = {**scope, **dict.fromkeys(self._boundary, "checked")}
            decode(to_json(build_record("turn.v1", **{**turn, "scope": checked})), self._records)
            stored = await self._turns.add(call, Turn(scope, turn))
        except Rejected as error:
            return Problem(place, error.code, error.message, error.field or None), None
        except Refused as refused:
            if refused.code in RETRIABLE:
                raise TryAgain from refused
            return Problem(place, refused.code, refused.message, refused.field), None
        body = stored.body
        if any(warning["code"] == FORGOTTEN for warning in body["warnings"]):
            return "forgotten", body["read_after"]
        return "duplicate" if body["duplicate"] else "stored", body["read_after"]

    async def _report_regularly(self, job: _Job) -> None:
        pauses = iter(REPORT_EVERY_S)
        pause_s = 0.0
        while True:
            pause_s = next(pauses, pause_s)
            await asyncio.sleep(pause_s)
            # Even without changes: it shows that the import continues.
            with suppress(OSError):
                # A full disk does not end an import.
                job.save()
            with suppress(Refused):
                await self._report(job)

    async def _report(self, job: _Job, **end: Any) -> None:
        """Report an import's progress to the worker. Raises Refused."""
        fields = {"job_id": job.job_id, **job.tally.counts(), "all_projects": job.asked.spans_projects, **end}
        await self._operations.run(REPORT_IMPORT, job.call(REPORT_S), job.asked.scope, fields)

    async def _report_end(self, job: _Job, outcome: Json) -> None:
        """Report an import's end to the worker, as soon as it answers."""
        pause_s = 1.0
        while True:
            try:
                await self._report(job, **outcome)
            except Refused as refused:
                if refused.code not in RETRIABLE:
                    log.warning("the end of the import %s could not be reported: %s", job.job_id, refused.code)
                    return
            else:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 30.0)


def _too_many() -> Refused:
    message = "too many exports are being imported: wait until some are done"
    return Refused("too_many_requests", message, retry_after_s=RETRY_AFTER_S)


def _no_room(problem: OSError) -> Refused:
    log.error("exports can't be kept: %s", problem)
    return Refused(
        "unavailable", "this gateway has no room for exports now; try again later", retry_after_s=RETRY_AFTER_S
    )


def _locked(folder: Path) -> int | None:
    """Lock a job's folder for this process; None if another one has it. Raises OSError."""
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@asynccontextmanager
async def _lines_of(job: _Job) -> AsyncGenerator[AsyncGenerator[Mapping[str, Any]]]:
    """Read the file in its own process; it ends with the block."""
    command = [sys.executable, "-m", "modestream_client.imports", job.asked.format, str(job.file)]
    process = await asyncio.create_subprocess_exec(
        *command,
        *([job.asked.zone] if job.asked.zone else []),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2 * MAX_ENTRY_BYTES,
    )
    assert process.stdout is not None
    output = process.stdout

    async def lines() -> AsyncGenerator[Mapping[str, Any]]:
        taken = 0
        while (line := await output.readline()).endswith(b"\n"):
            yield from_json(line)
            taken += 1
            if taken % ENTRIES_AT_A_STRETCH == 0:
                # Buffered data is read without a pause.
                await asyncio.sleep(0)

    try:
        yield lines()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
