"""One partition's word index as a SQLite file: its tables, how it is opened, begun anew and deleted.

The file is derived data. One that is broken or of another form is deleted and begun anew, with no progress noted.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from schemas.failures import Unavailable

SCHEMA_VERSION = 6
"""The version of these tables. Raise it with every change of them, of how texts are cut into terms, or of what their
marks mean."""

NUMBER_BITS = 32
"""A memory's row is its boundary's id above its number, so that one boundary's rows lie side by side."""

NUMBER_MASK = (1 << NUMBER_BITS) - 1
"""The bits of a row that are the memory's number."""

# An id of a trait is never given twice: rosters in memory know traits by it.
_TABLES = """
CREATE TABLE boundaries (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE traits (
  id INTEGER PRIMARY KEY AUTOINCREMENT, boundary INTEGER NOT NULL, value TEXT NOT NULL, members INTEGER NOT NULL,
  UNIQUE (boundary, value));
CREATE TABLE memories (
  row INTEGER PRIMARY KEY, memory_id TEXT NOT NULL UNIQUE, trait INTEGER NOT NULL, occurred_ms INTEGER NOT NULL,
  source INTEGER NOT NULL, length INTEGER NOT NULL, importance REAL NOT NULL, superseded INTEGER NOT NULL, space TEXT,
  status TEXT NOT NULL, unread INTEGER NOT NULL, language INTEGER NOT NULL, marks INTEGER NOT NULL,
  digest BLOB NOT NULL, terms TEXT NOT NULL);
CREATE INDEX unready ON memories (status, row) WHERE status <> 'ready';
CREATE INDEX unread ON memories (row) WHERE unread = 1;
CREATE TABLE postings (
  boundary INTEGER NOT NULL, term TEXT NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (boundary, term, entry)
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


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to an index of today's form; transactions are begun and ended by the caller."""
    try:
        return _opened(path)
    except sqlite3.DatabaseError:
        delete_file(path)
    with translate_sqlite_errors():
        return _opened(path)


def delete_file(path: Path) -> None:
    """Delete an index and what SQLite keeps beside it; nothing when there is none."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def translate_sqlite_errors() -> Iterator[None]:
    """Turn SQLite's errors into `Unavailable`."""
    try:
        yield
    except sqlite3.Error as error:
        raise Unavailable(f"the word index can't be used: {error}") from error


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    try:
        connection.executescript(_PRAGMAS)
        _formed(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _formed(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file; refuse those of another form."""
    [form] = connection.execute("PRAGMA user_version").fetchone()
    if form == 0:
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    elif form != SCHEMA_VERSION:
        raise sqlite3.DatabaseError(f"form {form} instead of {SCHEMA_VERSION}")
