"""The database of a partition: one SQLite file, one connection, one transaction at a time.

Rows of all tables, the lexical index and their log offsets become durable together, with `commit`. A write is visible
to every later read of this connection at once. The content is derived from a changelog, or from rows. A file of another
version is replaced by an empty one; a damaged one is set aside first, whenever the damage shows.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from schemas.failures import Unavailable
from streams.damaged_stores import OnDamage, set_aside

FORMAT_VERSION = 1000
"""The version of the file's own tables. Those of the words have a separate one: they are derived from rows."""

CACHE_KIB = 16_000
"""Cached pages. Others are in the system's file cache: about 5 us a row."""

CHANGES_A_CHECKPOINT = 10_000
"""Changed rows after which a thread copies the write-ahead log to the file and syncs both: about 500 short turns."""

MAX_LOG_PAGES = 4_000
"""Log pages after which a commit copies the last of them itself: 16 MB. The log restarts from its beginning only if all
of it was copied before the next write, which in a flood comes at once."""

MAX_LOG_BYTES = 16 * 2**20
"""The length to which a restarting log is cut."""

PAGE_ROWS = 200
"""Rows of a table read at a time: no statement stays open in between."""

_TABLES = """
CREATE TABLE offsets (log TEXT PRIMARY KEY, next_offset INTEGER NOT NULL) WITHOUT ROWID;
"""

_PRAGMAS = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA secure_delete = ON;
PRAGMA cache_size = -{CACHE_KIB};
PRAGMA temp_store = MEMORY;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = {MAX_LOG_BYTES};
"""

_BESIDE = ("-wal", "-shm", "-journal")

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class _OtherVersionError(sqlite3.DatabaseError):
    """The file has another `FORMAT_VERSION`."""


class PartitionDatabase:
    """An open database. Belongs to one thread.

    If SQLite rolls back the whole open transaction, and with it earlier calls, all later writes raise `Unavailable`
    until the partition is reopened with its committed state.
    """

    def __init__(self, path: Path, on_damage: OnDamage = lambda: None) -> None:
        """`on_damage` is called when a file in use was set aside."""
        self._path, self._on_damage = path, on_damage
        self.connection = open_file(path)
        self.execute = self.connection.execute
        self.on_rollback: Callable[[], None] = lambda: None
        """Called when writes were rolled back: caches of them are wrong."""
        self.on_commit: Callable[[], None] = lambda: None
        self._checkpoint = Checkpoint(path)
        self._is_lost = False
        self._offsets: dict[str, int] = {}
        """Offsets since the last commit; the next one writes them, once for many records."""

    def table(self, name: str) -> "TableRows":
        """Return the rows of a table; create it if it is new."""
        with self.translate():
            # Not `WITHOUT ROWID`: rows of a kilobyte in an index take three times as long to find.
            self.execute(
                f'CREATE TABLE IF NOT EXISTS "rows_{name}"'
                " (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
            )
        return TableRows(self, name)

    def offset(self, log: str) -> int | None:
        """Return the next offset of a log; None if it was never set."""
        if (pending := self._offsets.get(log)) is not None:
            return pending
        with self.translate():
            stored = self.execute("SELECT next_offset FROM offsets WHERE log = ?", (log,)).fetchone()
        return None if stored is None else int(stored[0])

    def offsets(self) -> dict[str, int]:
        """Return the next offset of each log."""
        with self.translate():
            return {**dict(self.execute("SELECT log, next_offset FROM offsets")), **self._offsets}

    def set_offset(self, log: str, next_offset: int) -> None:
        """Set the next offset of a log; durable with the next commit."""
        self.require_usable()
        self._offsets[log] = next_offset

    def remove_offset(self, log: str) -> None:
        self._offsets.pop(log, None)
        with self.writing():
            self.execute("DELETE FROM offsets WHERE log = ?", (log,))

    def begin(self) -> None:
        if not self.connection.in_transaction:
            self.execute("BEGIN")

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """Write all of the block, or nothing of it."""
        self.require_usable()
        with self.translate():
            self.begin()
            self.execute("SAVEPOINT call")
            try:
                yield
            except BaseException:
                self._note_lost()
                if not self._is_lost:
                    self.execute("ROLLBACK TO call")
                    self.execute("RELEASE call")
                raise
            self.execute("RELEASE call")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Run one statement, which SQLite writes as a whole or not at all."""
        self.require_usable()
        with self.translate():
            self.begin()
            try:
                yield
            except BaseException:
                self._note_lost()
                raise

    def commit(self) -> None:
        """Make all writes durable, with the offsets. Raises Unavailable; it may be repeated."""
        self.require_usable()
        if self._offsets:
            with self.savepoint():
                self.connection.executemany("REPLACE INTO offsets VALUES (?, ?)", self._offsets.items())
        if not self.connection.in_transaction:
            return
        try:
            with self.translate():
                self.execute("COMMIT")
        except Unavailable:
            self._note_lost()
            raise
        self._offsets.clear()
        self.on_commit()
        if self._checkpoint.is_log_too_long(self.connection.total_changes):
            with self.translate():
                self.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    @property
    def is_committed(self) -> bool:
        """True if nothing was written since the last commit."""
        return not (self._offsets or self.connection.in_transaction)

    def truncate_log(self) -> None:
        """Empty the write-ahead log, which holds deleted rows until they are overwritten.

        Raises Unavailable while another connection reads, or a transaction is open.
        """
        self._checkpoint.wait()
        with self.translate():
            [wait_ms] = self.execute("PRAGMA busy_timeout").fetchone()
            # Don't wait for a reader: that would block the worker.
            self.execute("PRAGMA busy_timeout = 0")
            try:
                [busy, *_] = self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self.execute(f"PRAGMA busy_timeout = {wait_ms}")
        if busy:
            raise Unavailable("the database of the partition is read by another connection")

    def close(self) -> None:
        """Close the file; uncommitted writes are lost."""
        self._checkpoint.wait()
        with translate_sqlite_errors():
            self.connection.close()

    def require_usable(self) -> None:
        """Raise Unavailable if only committed writes are left."""
        if self._is_lost:
            raise Unavailable("the database of the partition lost uncommitted writes: open the partition again")

    @contextlib.contextmanager
    def translate(self) -> Iterator[None]:
        """Raise SQLite's errors as `Unavailable`; at damage the file is set aside, and `on_damage` called."""
        try:
            yield
        except sqlite3.Error as error:
            if is_damage(error):
                set_aside(self._path, error, _BESIDE)
                self._on_damage()
            raise Unavailable(f"the database of the partition failed: {error}") from error

    def _note_lost(self) -> None:
        self._is_lost = not self.connection.in_transaction
        self.on_rollback()


_CHECKPOINTS = ThreadPoolExecutor(1, "checkpoint")
"""One thread for all databases of the process: they are on one disk."""


class Checkpoint:
    """Copies the write-ahead log of one database to its file, in a separate thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._copied_changes = 0
        self._running: Future[int] | None = None

    def is_log_too_long(self, changes: int) -> bool:
        """Copy the log, if enough was changed since; `changes`: rows since the file was opened.

        True once after a copy that found a log of more than `MAX_LOG_PAGES`.
        """
        is_too_long = False
        if self._running is not None and self._running.done():
            is_too_long = self._running.result() > MAX_LOG_PAGES
            self._running = None
        if self._running is None and changes - self._copied_changes >= CHANGES_A_CHECKPOINT:
            self._copied_changes = changes
            self._running = _CHECKPOINTS.submit(self._copy)
        return is_too_long

    def wait(self) -> None:
        if self._running is not None:
            self._running.result()

    def _copy(self) -> int:
        # A failed copy is repeated later; errors of the file show to its readers.
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(self._path)) as connection:
            return int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])
        return 0


AFTER_TEXT = b"\xff"
"""A byte after all those of UTF-8, in which keys are."""

_STATEMENTS = (
    "SELECT value FROM rows WHERE key = ?",
    "INSERT INTO rows (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    "DELETE FROM rows WHERE key = ?",
    "SELECT number, key, value FROM rows WHERE number > ? ORDER BY number LIMIT ?",
    "SELECT key FROM rows WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
)
"""For a table of this name."""


class TableRows:
    """The rows of one table of an open database, by key."""

    def __init__(self, database: PartitionDatabase, name: str) -> None:
        self._database = database
        self._execute = database.execute
        self._read, self._upsert, self._remove, self._page, self._keys = (
            statement.replace("rows", f'"rows_{name}"') for statement in _STATEMENTS
        )

    def get(self, key: bytes) -> bytes | None:
        # Spelled out, as a question reads a thousand values.
        try:
            row = self._execute(self._read, (key,)).fetchone()
        except sqlite3.Error:
            with self._database.translate():
                raise
        return None if row is None else row[0]

    def put(self, key: bytes, value: bytes) -> None:
        with self._database.writing():
            self._execute(self._upsert, (key, value))

    def delete(self, key: bytes) -> None:
        with self._database.writing():
            self._execute(self._remove, (key,))

    def apply(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write rows in this order; None deletes."""
        with self._database.savepoint():
            for key, value in rows:
                if value is None:
                    self._execute(self._remove, (key,))
                else:
                    self._execute(self._upsert, (key, value))

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows in the order in which they were first written. Rows may be written meanwhile."""
        last = -1
        while rows := self._fetched(self._page, last):
            yield from ((key, value) for _, key, value in rows)
            last = rows[-1][0]

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """Iterate over the keys with a prefix in their order."""
        first, end = prefix, prefix + AFTER_TEXT
        while rows := self._fetched(self._keys, first, end):
            yield from (key for (key,) in rows)
            first = rows[-1][0] + b"\0"

    def _fetched(self, statement: str, *bounds: int | bytes) -> list[Any]:
        with self._database.translate():
            return self._execute(statement, (*bounds, PAGE_ROWS)).fetchall()


class PartitionDatabases:
    """The open databases of one worker."""

    def __init__(self, directory: Path, on_damage: OnDamage = lambda: None) -> None:
        """`on_damage` is called when a file in use turned out damaged and was set aside."""
        self._directory, self._on_damage = directory, on_damage
        self._open: dict[int, PartitionDatabase] = {}
        self.prepare: Callable[[PartitionDatabase], None] = lambda _: None
        """Creates further tables in an opened database."""

    def at(self, partition: int) -> PartitionDatabase:
        """Return the database of a partition, opening it if needed."""
        database = self._open.get(partition)
        if database is None:
            database = PartitionDatabase(self.path(partition), self._on_damage)
            self.prepare(database)
            self._open[partition] = database
        return database

    def opened(self, partition: int) -> PartitionDatabase | None:
        return self._open.get(partition)

    def close(self, partition: int) -> None:
        """Close the database of a partition, if it is open; uncommitted writes are lost."""
        if (database := self._open.pop(partition, None)) is not None:
            database.close()

    def path(self, partition: int) -> Path:
        return database_path(self._directory, partition)

    def close_all(self) -> None:
        """Close all databases; uncommitted writes are lost."""
        for partition in list(self._open):
            self.close(partition)


def database_path(directory: Path, partition: int) -> Path:
    return directory / f"partition-{partition}.sqlite"


def open_file(path: Path) -> sqlite3.Connection:
    """Open a file of the current version; the caller begins and ends transactions."""
    try:
        return _connect(path)
    except _OtherVersionError:
        delete_file(path)
    except sqlite3.DatabaseError as error:
        if path.is_dir() or is_damage(error):
            set_aside(path, error, _BESIDE)
    with translate_sqlite_errors():
        return _connect(path)


def delete_file(path: Path) -> None:
    """Delete a file and its SQLite side files, if they exist."""
    for suffix in ("", *_BESIDE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def translate_sqlite_errors() -> Iterator[None]:
    """Raise SQLite's errors as `Unavailable`."""
    try:
        yield
    except sqlite3.Error as error:
        raise Unavailable(f"the database of the partition failed: {error}") from error


def is_damage(error: sqlite3.Error) -> bool:
    """True if the content of the file is broken: no repetition succeeds. The low byte is the kind of error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    try:
        connection.executescript(_PRAGMAS)
        _ensure_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _ensure_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file; refuse a file of another version."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {FORMAT_VERSION}; COMMIT;")
    elif version != FORMAT_VERSION:
        raise _OtherVersionError(f"version {version} instead of {FORMAT_VERSION}")
    # Read first by recovery: damage shows now.
    connection.execute("SELECT * FROM offsets").fetchall()
