"""An outbox: turns are on this machine's disk before they are sent, and leave it when the service has answered.

    async with HttpMemoryClient("http://127.0.0.1:8080", user_id="u1", outbox="outbox") as memory:
        await memory.remember("The deploy target is fly.io now.")  # also while the service is away

Guaranteed: a turn for which `remember` has returned is eventually stored once, whichever process is killed, as long as
a client or `modestream hook flush` opens the same folder later; the turns of one user are sent in the order in which
they were added, by one process at a time. A turn that the service refuses stays in the outbox, marked, and blocks no
other. Only the owner can read the files, one a user; sent turns are overwritten, by the close of the file at the
latest.
"""

import asyncio
import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from modestream_client.answers import TURN_REPLY_FIELDS, Notice, Reply
from modestream_client.boundary import BoundaryFields
from modestream_client.failures import (
    MemoryClientError,
    MemoryClosed,
    MemoryOutboxFull,
    MemoryServiceError,
    MemoryTimeout,
    MemoryUnreachable,
)
from modestream_client.records import TURNS_TOPIC, Written, with_identity
from modestream_client.transport import Json, OnPartial, ReadAfter, Transport

MAX_BYTES = 256 * 1024 * 1024
"""Maximum bytes of one user's file: about 300,000 turns."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Pauses between attempts while the service is away."""

LOCK_TIMEOUT_S = 10.0
"""How long a file is waited for that another process has locked."""

OF_THE_KEY = ("not_allowed", "unauthenticated")

PASSING = ("unavailable", "timeout", "too_many_requests", "internal", *OF_THE_KEY)
"""Codes of errors that are not the turn's fault: it is sent again."""

UNSENT = Written(-1, -1)
"""The place of a turn that waits in the outbox."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY AUTOINCREMENT, turn TEXT NOT NULL, principal TEXT, refused TEXT
);
CREATE TABLE IF NOT EXISTS transcripts (
    path TEXT PRIMARY KEY, format TEXT NOT NULL, messages INTEGER NOT NULL, bytes INTEGER NOT NULL,
    start INTEGER NOT NULL, tail TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS left_out (
    path TEXT NOT NULL, offset INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (path, offset)
);
CREATE TABLE IF NOT EXISTS failure (id INTEGER PRIMARY KEY CHECK (id = 0), at REAL NOT NULL, error TEXT NOT NULL)
"""
"""`refused` is the service's error; a row of `transcripts` is a `Transcript`, one of `left_out` a lost line."""


USED_BYTES = """
SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""


@dataclass(frozen=True, slots=True)
class Queued:
    number: int
    turn: Json
    principal: str | None = None
    refused: str | None = None


class Transcript(NamedTuple):
    """What was read of a session's transcript."""

    format: str
    messages: int = 0
    """Messages read from `start` on."""
    bytes: int = 0
    """Size of the file."""
    start: int = 0
    """Offset of the line from which the next call reads."""
    tail: str = ""
    """Digest of the last bytes."""


def describe_problem(path: Path, problem: Exception) -> str:
    """Describe the problem with an outbox, and the way out."""
    name = getattr(problem, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"{path} is locked by another process: try again"
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        way_out = "move it away; turns of a hook come back by `modestream import` of the agent's transcripts"
        return f"{path} is damaged: {way_out} ({problem})"
    return f"{path}: {problem}"


class Outbox:
    """The file of one user. Methods may be called from any thread, and by several processes at once."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        self._database = sqlite3.connect(path, timeout=lock_timeout_s, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = WAL")
        # A turn is on disk when it is added, and nothing of it after it has been sent and the log is gone.
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("PRAGMA secure_delete = ON")
        self._database.executescript(SCHEMA)

    @staticmethod
    def path_of(folder: Path, key: str) -> Path:
        """Return the file of the user with this boundary key; it has no name in it."""
        return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.sqlite"

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def add(self, turns: Iterable[Json], principal: str | None = None) -> list[int]:
        """Append turns; return their numbers. Raises `MemoryOutboxFull`."""
        with self._transaction():
            return [self._insert(turn, principal) for turn in turns]

    def add_transcript(
        self, path: str, seen: Transcript, turns: Iterable[Json], left_out: Mapping[int, str] = {}, read_from: int = 0
    ) -> dict[int, str]:
        """Add the new turns of a transcript, and save the position up to which it was read.

        `left_out` are the lines from the offset `read_from` on that can't become turns, with the reasons; returns those
        that were not known.
        """
        with self._transaction():
            for turn in turns:
                self._insert(turn, None)
            self._database.execute("INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?, ?)", (path, *seen))
            again = "FROM left_out WHERE path = ? AND offset >= ?"
            known = dict(self._database.execute(f"SELECT offset, reason {again}", (path, read_from)).fetchall())
            self._database.execute(f"DELETE {again}", (path, read_from))
            rows = [(path, at, reason) for at, reason in left_out.items()]
            self._database.executemany("INSERT INTO left_out VALUES (?, ?, ?)", rows)
            return {at: reason for at, reason in left_out.items() if known.get(at) != reason}

    def left_out(self) -> list[tuple[str, int, str]]:
        """Return the lines of transcripts that could not become turns: path, offset and reason."""
        return self._rows("SELECT path, offset, reason FROM left_out ORDER BY path, offset")

    def transcripts(self) -> dict[str, Transcript]:
        """Return the positions in the transcripts, by path."""
        return {path: Transcript(*seen) for path, *seen in self._rows("SELECT * FROM transcripts")}

    def first(self) -> Queued | None:
        """Return the first turn that was not refused."""
        return next(iter(self._queued("refused IS NULL ORDER BY number LIMIT 1")), None)

    def refused(self) -> list[Queued]:
        return self._queued("refused IS NOT NULL ORDER BY number")

    def count(self) -> int:
        """Return how many turns wait."""
        return int(self._rows("SELECT count(*) FROM turns WHERE refused IS NULL")[0][0])

    def remove(self, number: int) -> None:
        self._rows("DELETE FROM turns WHERE number = ?", number)

    def refuse(self, number: int, error: str) -> None:
        self._rows("UPDATE turns SET refused = ? WHERE number = ?", error, number)

    def retry(self) -> None:
        """Let refused turns wait again."""
        self._rows("UPDATE turns SET refused = NULL")

    def note_failure(self, error: str) -> None:
        """Save why turns could not be sent, for the command that shows what waits."""
        self._rows("INSERT OR REPLACE INTO failure VALUES (0, ?, ?)", time.time(), error)

    def failure(self) -> tuple[float, str] | None:
        """Return when and why sending failed last, in seconds since 1970; it may have succeeded since."""
        rows = self._rows("SELECT at, error FROM failure")
        return rows[0] if rows else None

    @contextmanager
    def sending(self) -> Iterator[bool]:
        """Yield True if no other process sends from this file; none starts before the block ends."""
        lock = sqlite3.connect(f"{self.path}-sending", timeout=0, isolation_level=None, check_same_thread=False)
        try:
            # Held by the file system for this process, and free when it dies.
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            yield False
        else:
            yield True
        finally:
            lock.close()

    def _insert(self, turn: Json, principal: str | None) -> int:
        encoded = json.dumps(turn, ensure_ascii=False, allow_nan=False)
        [used] = self._database.execute(USED_BYTES).fetchone()
        if used + len(encoded.encode()) > self._max_bytes:
            raise MemoryOutboxFull(f"the outbox {self.path} has {self._max_bytes} bytes: is the service away for long?")
        added = self._database.execute("INSERT INTO turns (turn, principal) VALUES (?, ?)", (encoded, principal))
        assert added.lastrowid is not None
        return added.lastrowid

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()

    def _queued(self, condition: str) -> list[Queued]:
        rows = self._rows(f"SELECT number, turn, principal, refused FROM turns WHERE {condition}")  # noqa: S608 - ours
        return [Queued(number, json.loads(turn), principal, refused) for number, turn, principal, refused in rows]


class _Sender:
    """Sends the turns of one outbox while there are some; `answers` are futures of callers, by number."""

    def __init__(self, box: Outbox, transport: "OutboxTransport") -> None:
        self.box = box
        self._transport = transport
        self._answers: dict[int, asyncio.Future[tuple[Reply, Written | None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._is_due = False
        """A turn was added since the last check."""
        self._away: str | None = None
        """Why the last attempt failed, during the pause after it."""

    async def remember(self, turn: Json, principal: str | None, timeout: float) -> tuple[Reply, Written | None]:
        """Add a turn; return the service's reply, or a reply saying that the turn is queued."""
        try:
            [number] = await asyncio.to_thread(self.box.add, [turn], principal)
        except sqlite3.ProgrammingError as problem:
            raise MemoryClosed("the client was closed before the turn was stored") from problem
        if self._is_closed:
            return _waiting(turn, _CLOSED)
        if self._away is not None:
            return _waiting(turn, self._away)
        answer: asyncio.Future[tuple[Reply, Written | None]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self.wake()
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except (TimeoutError, _Away) as reason:
            return _waiting(turn, str(reason) or f"no reply within {timeout:g} s")
        finally:
            self._answers.pop(number, None)

    def wake(self) -> None:
        """Send all turns that wait."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        _fail(self._answers.values(), _Away(_CLOSED))
        await asyncio.to_thread(self.box.close)

    async def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while self._is_due or await asyncio.to_thread(self.box.count) > 0:
            self._is_due = False
            away = await self._send_all()
            if away is None:
                pause_s = FIRST_PAUSE_S
                continue
            self._away = str(away)
            if away.is_failure:
                await asyncio.to_thread(self.box.note_failure, str(away))
            _fail(self._answers.values(), away)
            await asyncio.sleep(pause_s)
            self._away = None
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _send_all(self) -> "_Away | None":
        """Send turns; return why some are left."""
        with self.box.sending() as is_alone:
            if not is_alone:
                return _Away("another process sends the turns of this user", is_failure=False)
            try:
                while True:
                    asked = list(self._answers.values())
                    if (queued := await asyncio.to_thread(self.box.first)) is None:
                        # They are gone: another process has sent them.
                        _fail(asked, _Away("another process has sent it"))
                        return None
                    await self._send(queued)
            except _Away as away:
                return away

    async def _send(self, queued: Queued) -> None:
        try:
            sent = await self._transport.request(
                TURNS_TOPIC, queued.turn, principal=queued.principal, timeout=None, deadline=False
            )
        except MemoryServiceError as error:
            if error.code in PASSING:
                raise _Away(str(error)) from error
            # Its caller may have begun to wait after it was sent.
            answer = self._answers.get(queued.number)
            if answer is None or answer.done():
                await asyncio.to_thread(self.box.refuse, queued.number, str(error))
            else:
                await asyncio.to_thread(self.box.remove, queued.number)
                answer.set_exception(error)
        except (MemoryTimeout, MemoryUnreachable, MemoryClosed) as error:
            raise _Away(str(error)) from error
        else:
            await asyncio.to_thread(self.box.remove, queued.number)
            answer = self._answers.get(queued.number)
            if answer is not None and not answer.done():
                answer.set_result(sent)


def _fail(answers: Iterable[asyncio.Future[tuple[Reply, Written | None]]], reason: "_Away") -> None:
    for answer in answers:
        if not answer.done():
            answer.set_exception(reason)


_CLOSED = "the client was closed"


class _Away(Exception):
    """Turns can't be sent for the moment; the text says why. `is_failure`: because of the service, or the way there."""

    def __init__(self, reason: str, *, is_failure: bool = True) -> None:
        super().__init__(reason)
        self.is_failure = is_failure


def _waiting(turn: Json, reason: str) -> tuple[Reply, Written]:
    fields = dict.fromkeys(TURN_REPLY_FIELDS) | {"turn_id": turn.get("turn_id")}
    return Reply(fields, (Notice("queued", f"the turn is in the outbox and will be sent: {reason}"),)), UNSENT


class OutboxTransport:
    """A transport with an outbox in a folder. Belongs to one event loop. Implements `Transport`."""

    def __init__(
        self, transport: Transport, folder: str | PathLike[str], timeout: float, boundary: BoundaryFields
    ) -> None:
        """`timeout`: seconds that `remember` waits by default."""
        self._transport = transport
        self._folder = Path(folder)
        self._timeout = timeout
        self._boundary = boundary
        self._senders: dict[Path, _Sender] = {}
        self._opening = asyncio.Lock()
        self._is_open = self._is_closed = False
        self._failed: tuple[float, MemoryUnreachable] | None = None

    async def open(self) -> None:
        """Connect, and start to send the folder's turns. A service that is away is not an error; a wrong key is."""
        self._failed, self._is_closed = None, False
        try:
            await self._reach()
        except MemoryUnreachable:
            pass
        except MemoryServiceError as error:
            # Such as a proxy before a gateway that is away.
            if error.code not in PASSING or error.code in OF_THE_KEY:
                raise
        for path in await asyncio.to_thread(lambda: sorted(self._folder.glob("*.sqlite"))):
            # A broken file is an error of its user's calls alone.
            with suppress(sqlite3.DatabaseError):
                (await self._sender(path)).wake()

    async def close(self) -> None:
        """Stop sending, and disconnect; unsent turns wait for the next client."""
        self._is_closed = True
        senders, self._senders = self._senders, {}
        for sender in senders.values():
            await sender.close()
        self._is_open = False
        await self._transport.close()

    async def remember(
        self, turn: Json, *, principal: str | None, timeout: float | None
    ) -> tuple[Reply, Written | None]:
        """Store a turn on disk and send it; return the service's reply, or one saying that it is queued."""
        self._check_open()
        turn = with_identity(turn, round(time.time() * 1000))
        path = Outbox.path_of(self._folder, self._boundary.key(turn["scope"]))
        try:
            sender = await self._sender(path)
            return await sender.remember(turn, principal, self._timeout if timeout is None else timeout)
        # A timeout is an OSError, too.
        except MemoryClientError:
            raise
        except (sqlite3.Error, OSError) as problem:
            raise MemoryClientError(f"the turn is stored nowhere: {describe_problem(path, problem)}") from problem

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | str | None:
        """Return `read_after` as records of the transport have it."""
        await self._reach()
        return await self._transport.resolve_read_after(user_id, read_after)

    async def write(self, topic: str, record: Json, *, principal: str | None, timeout: float | None) -> Written:
        """Send a record without the outbox."""
        await self._reach()
        return await self._transport.write(topic, record, principal=principal, timeout=timeout)

    async def request(
        self,
        topic: str,
        record: Json,
        *,
        principal: str | None,
        timeout: float | None,
        deadline: bool,
        on_partial: OnPartial | None = None,
    ) -> tuple[Reply, Written | None]:
        """Send a record without the outbox, and wait for its reply."""
        await self._reach()
        return await self._transport.request(
            topic, record, principal=principal, timeout=timeout, deadline=deadline, on_partial=on_partial
        )

    async def _reach(self) -> None:
        """Open the connection unless it is open. Raises `MemoryUnreachable`, for a moment after a failure at once."""
        async with self._opening:
            self._check_open()
            if self._is_open:
                return
            now = asyncio.get_running_loop().time()
            if self._failed is not None and now < self._failed[0]:
                raise self._failed[1]
            try:
                await self._transport.open()
            except MemoryUnreachable as error:
                self._failed = asyncio.get_running_loop().time() + FIRST_PAUSE_S, error
                raise
            self._is_open = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise MemoryClosed(_CLOSED)

    async def _sender(self, path: Path) -> _Sender:
        if path not in self._senders:
            box = await asyncio.to_thread(Outbox, path)
            if path in self._senders:
                box.close()
            else:
                self._senders[path] = _Sender(box, self)
        return self._senders[path]


def with_outbox(
    transport: Transport, folder: str | PathLike[str] | None, timeout: float, boundary: BoundaryFields
) -> Transport:
    return transport if folder is None else OutboxTransport(transport, folder, timeout, boundary)
