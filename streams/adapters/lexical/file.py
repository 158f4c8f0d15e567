"""The tables of one partition's words, in the database of the partition.

They are derived from the rows of memories. Tables of another version are replaced by empty, incomplete ones.
"""

from streams.partition.database import PartitionDatabase

SCHEMA_VERSION = 12
"""The version of the words. Raise it with every change of the tables, of tokenisation, or of labels.

`tests/unit/adapters/lexical/test_schema_version.py` fails if the analysis has changed and the version has not.
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
  keys BLOB NOT NULL, accepted_ms INTEGER NOT NULL, superseded_ms INTEGER NOT NULL, digest BLOB NOT NULL,
  terms TEXT NOT NULL);
CREATE INDEX unready ON memories (status, row) WHERE status <> 'ready';
CREATE INDEX unread ON memories (row) WHERE unread = 1;
CREATE TABLE postings (
  boundary INTEGER NOT NULL, term TEXT NOT NULL, entry INTEGER NOT NULL, passages INTEGER NOT NULL,
  PRIMARY KEY (boundary, term, entry)
) WITHOUT ROWID;
"""

_VERSION = "lexical index"
"""Key, among the offsets, of the version of complete words."""

_NAMES = ("boundaries", "traits", "memories", "postings")


def ensure_words(database: PartitionDatabase) -> None:
    """Create the tables of the words, complete in a new database; replace those of another version."""
    if not (offsets := database.offsets()) or offsets.get(_VERSION) != SCHEMA_VERSION:
        empty_words(database)
        if not offsets:
            complete_words(database)
        # Readers with separate connections exist.
        database.commit()


def empty_words(database: PartitionDatabase) -> None:
    """Replace the tables of the words by empty, incomplete ones."""
    with database.savepoint():
        for name in _NAMES:
            database.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in filter(str.strip, _TABLES.split(";")):
            database.execute(statement)
    database.remove_offset(_VERSION)


def are_words_complete(database: PartitionDatabase) -> bool:
    return database.offset(_VERSION) == SCHEMA_VERSION


def complete_words(database: PartitionDatabase) -> None:
    """Mark the words of all rows as present."""
    database.set_offset(_VERSION, SCHEMA_VERSION)


MAX_CACHED_KEYS = 4096
"""Cached ids: under a megabyte."""

KeyName = str | tuple[int, str]
"""A boundary's name, or a boundary's id and a trait as text."""

_BOUNDARY = "SELECT id FROM boundaries WHERE name = ?"
_TRAIT = "SELECT id FROM traits WHERE boundary = ? AND value = ?"


class KeyCache:
    """The ids of one open index."""

    def __init__(self, database: PartitionDatabase) -> None:
        self._execute = database.execute
        self._cached: dict[KeyName, int] = {}

    def cached(self, name: str) -> int | None:
        return self._cached.get(name)

    def boundary(self, name: str) -> int | None:
        return self._id(name, _BOUNDARY, (name,))

    def trait(self, boundary: int, value: str) -> int | None:
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
