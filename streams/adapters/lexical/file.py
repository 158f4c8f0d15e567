"""The SQLite file of one partition's lexical index: its tables, and how it is opened, replaced and deleted.

The file is derived data. A file of another version is replaced by an empty one without progress; a damaged one is set
aside first, whenever the damage shows.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from schemas.failures import Unavailable
from streams.damaged_stores import OnDamage, set_aside

SCHEMA_VERSION = 9
"""The version of the file. Raise it with every change of the tables, of tokenisation, or of what is labelled.

`tests/unit/adapters/lexical/test_schema_version.py` fails where the analysis has changed and the version has not.
"""

NUMBER_BITS = 32
"""Bits of a memory's number in its row id; the boundary's id is above them, so a boundary's rows are adjacent."""

NUMBER_MASK = (1 << NUMBER_BITS) - 1

# AUTOINCREMENT: the ids of traits are never reused, as cached columns refer to them.
_TABLES = """
CREATE TABLE boundaries (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE traits (
  id INTEGER PRIMARY KEY AUTOINCREMENT, boundary INTEGER NOT NULL, value TEXT NOT NULL, members INTEGER NOT NULL,
  UNIQUE (boundary, value));
CREATE TABLE memories (
  row INTEGER PRIMARY KEY, memory_id TEXT NOT NULL UNIQUE, trait INTEGER NOT NULL, occurred_ms INTEGER NOT NULL,
  source INTEGER NOT NULL, length INTEGER NOT NULL, importance REAL NOT NULL, superseded INTEGER NOT NULL, space TEXT,
  held TEXT NOT NULL, status TEXT NOT NULL, unread INTEGER NOT NULL, language INTEGER NOT NULL, marks INTEGER NOT NULL,
  digest BLOB NOT NULL, terms TEXT NOT NULL);
CREATE INDEX unready ON memories (status, row) WHERE status <> 'ready';
CREATE INDEX unread ON memories (row) WHERE unread = 1;
CREATE TABLE postings (
  boundary INTEGER NOT NULL, term TEXT NOT NULL, entry INTEGER NOT NULL, passages INTEGER NOT NULL,
  PRIMARY KEY (boundary, term, entry)
) WITHOUT ROWID;
CREATE TABLE progress (topic TEXT PRIMARY KEY, next_offset INTEGER NOT NULL) WITHOUT ROWID;
"""

_PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA secure_delete = ON;
PRAGMA cache_size = -8000;
PRAGMA temp_store = MEMORY;
"""


_BESIDE = ("-wal", "-shm", "-journal")

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

ErrorTranslation = Callable[[], AbstractContextManager[None]]
"""Makes the context in which SQLite is called."""


class _OtherVersionError(sqlite3.DatabaseError):
    """The file has another `SCHEMA_VERSION`."""


def index_path(directory: Path, partition: int) -> Path:
    """Return the file of a partition's index."""
    return directory / f"words-{partition}.sqlite"


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
    """Delete a file and SQLite's files beside it, if they exist."""
    for suffix in ("", *_BESIDE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def translate_sqlite_errors() -> Iterator[None]:
    """Raise SQLite's errors as `Unavailable`."""
    try:
        yield
    except sqlite3.Error as error:
        raise Unavailable(f"the lexical index failed: {error}") from error


def is_damage(error: sqlite3.Error) -> bool:
    """True if the content of the file is broken: no repetition succeeds. The low byte is the kind of error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def set_damage_aside(path: Path, on_damage: OnDamage) -> ErrorTranslation:
    """Return `translate_sqlite_errors` for one file: at damage it is set aside and `on_damage` is called."""

    @contextlib.contextmanager
    def translate() -> Iterator[None]:
        with translate_sqlite_errors():
            try:
                yield
            except sqlite3.DatabaseError as error:
                if is_damage(error):
                    set_aside(path, error, _BESIDE)
                    on_damage()
                raise

    return translate


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    try:
        connection.executescript(_PRAGMAS)
        _ensure_schema(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _ensure_schema(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file; refuse a file of another version."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    elif version != SCHEMA_VERSION:
        raise _OtherVersionError(f"schema version {version} instead of {SCHEMA_VERSION}")


MAX_CACHED_KEYS = 4096
"""Cached ids: under a megabyte."""

KeyName = str | tuple[int, str]
"""A boundary's name, or a boundary's id and a trait as text."""

_BOUNDARY = "SELECT id FROM boundaries WHERE name = ?"
_TRAIT = "SELECT id FROM traits WHERE boundary = ? AND value = ?"


class KeyCache:
    """The ids of one open index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self._cached: dict[KeyName, int] = {}

    def cached(self, name: str) -> int | None:
        """Return the id of a boundary if it is cached."""
        return self._cached.get(name)

    def boundary(self, name: str) -> int | None:
        """Return the id of a boundary, None if it is unknown."""
        return self._id(name, _BOUNDARY, (name,))

    def trait(self, boundary: int, value: str) -> int | None:
        """Return the id of a trait, None if it is unknown."""
        return self._id((boundary, value), _TRAIT, (boundary, value))

    def clear(self) -> None:
        """Clear the cache, after a deletion or a rollback."""
        self._cached.clear()

    def _id(self, name: KeyName, statement: str, arguments: tuple[object, ...]) -> int | None:
        key = self._cached.get(name)
        if key is None and (found := self._execute(statement, arguments).fetchone()):
            if len(self._cached) == MAX_CACHED_KEYS:
                self._cached.clear()
            key = self._cached[name] = int(found[0])
        return key
