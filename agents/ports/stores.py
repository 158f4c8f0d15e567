"""The tables of one partition. Agents that read one take its first protocol.

Writing belongs to one agent a table: only its package takes the writer. A write belongs to the handling of an event of
the partition, and replaces what was there.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from agents.rules.maps.layout import MapLayout, StopCondition
from schemas.state.categories import Taxonomy
from schemas.state.files import FileHolders, FileStatuses
from schemas.state.intention import Intention
from schemas.state.interaction import InteractionCounts
from schemas.state.memories import Claim, Memory, MemoryExcerpt, VectorLocation
from schemas.state.modes import ModeDeclarations


class Memories(Protocol):
    """Reads records by memory id."""

    def get(self, memory_id: str) -> Memory | None:
        """Return the record, or None."""

    def excerpt(self, memory_id: str) -> MemoryExcerpt | None:
        """Return some fields of the record, or None: for answers about thousands of memories."""

    def is_removed(self, memory_id: str) -> bool:
        """True if a record of this id existed and was removed or forgotten."""

    def is_forgotten(self, memory_id: str) -> bool:
        """True if a record of this id existed and was forgotten."""

    def last_place(self, memory_id: str) -> VectorLocation | None:
        """Return the vector location that was given to `forget` or `remove`."""


class MemoryWriter(Memories, Protocol):
    """Reads and writes records. For `agents.memory` alone."""

    def put(self, memory: Memory) -> None:
        """Write a record."""

    def forget(self, memory_id: str, location: VectorLocation | None = None) -> None:
        """Replace a record by a permanent tombstone; `location` is the last known location of its vector."""

    def remove(self, memory_id: str, location: VectorLocation | None = None) -> None:
        """Replace a record by a tombstone that a new record of the same id may overwrite."""


class Files(Protocol):
    """Reads which memories have which files."""

    def holders(self, boundary: str, sha256: str) -> FileHolders:
        """Return the memories of a boundary that have a file."""

    def hashes(self, boundary: str) -> list[str]:
        """Return the files that memories of a boundary have."""

    def has_turns(self, boundary: str) -> bool:
        """True if a turn of a boundary has files that are read."""

    def turns(self, boundary: str) -> dict[str, FileStatuses]:
        """Return the turns of a boundary with files that are read, by memory id."""


class FileWriter(Files, Protocol):
    """Reads and writes which memories have which files. For `agents.memory` alone."""

    def put_holders(self, boundary: str, sha256: str, holders: FileHolders) -> None:
        """Write the memories that have a file; an empty set removes the row."""

    def put_turn(self, boundary: str, memory_id: str, statuses: FileStatuses) -> None:
        """Write the reading status of a turn's files; a turn with pending files is read."""

    def remove_bytes(self, key: str) -> None:
        """Have bytes removed, once that is durable."""


class Modes(Protocol):
    """Reads each boundary's declarations."""

    def get(self, boundary: str) -> ModeDeclarations:
        """Return the declarations; `general` alone for a boundary without any."""


class ModeWriter(Modes, Protocol):
    """Reads and writes declarations. For `agents.commands` alone."""

    def put(self, boundary: str, declared: ModeDeclarations) -> None:
        """Write the declarations of a boundary."""


class Categories(Protocol):
    def get(self, scope: Mapping[str, str]) -> Taxonomy:
        """Return the taxonomy of a scope; cheap.

        A summary may rest on memories that are gone: pass it through `visible_category` before it is shown.
        """


class CategoryWriter(Categories, Protocol):
    """Reads and writes the categories. For `agents.categories` alone."""

    def put(self, scope: Mapping[str, str], taxonomy: Taxonomy) -> None:
        """Write the taxonomy of a scope; an empty one leaves no row. Belongs to the handling of a partition's event."""

    def scopes(self, boundary: str) -> Sequence[Mapping[str, str]]:
        """Return the scopes of a boundary that have a row."""


class ClaimWriter(Protocol):
    """Reads and writes claims by key. For `agents.memory` alone."""

    def get(self, key: str) -> Claim:
        """Return the claim; an empty one for an unknown key."""

    def put(self, key: str, claim: Claim) -> None:
        """Write a claim; an empty one deletes the row. Belongs to the handling of an event of the partition."""


class Intentions(Protocol):
    """Reads intentions by scope. `agents.intentions.adjust.Intend` implements it with visible entries only."""

    def get(self, scope: Mapping[str, str]) -> Intention:
        """Return the intention of a scope; an empty one for a scope without any."""


class IntentionWriter(Intentions, Protocol):
    """Reads and writes the table itself; entries may rest on memories that are gone. For `agents.intentions` alone."""

    def put(self, scope: Mapping[str, str], intention: Intention) -> None:
        """Write the intention of a scope. Belongs to the handling of an event of the partition."""

    def scopes(self, boundary: str) -> Sequence[Mapping[str, str]]:
        """Return the scopes of a boundary that have an intention."""


class InteractionWriter(Protocol):
    """Reads and writes the counts of interaction modes. For `agents.memory` alone."""

    def get(self) -> InteractionCounts:
        """Return the counts; empty ones if there are none."""

    def put(self, counts: InteractionCounts) -> None:
        """Write the counts."""


Result = TypeVar("Result")


class MapLayouts(Protocol):
    """Keeps maps by boundary and collection, beyond the life of the process. No call fails: it may lose maps.

    A lost or damaged one is made again, perhaps with other places.
    """

    def collections(self, boundary: str) -> Sequence[str]:
        """Return the collections for which a boundary has a map; cheap."""

    async def load(self, boundary: str, collection: str) -> MapLayout | None:
        """Return the map; None if it is missing or unreadable."""

    async def save(self, boundary: str, collection: str, layout: MapLayout) -> None:
        """Replace the map; one without points is removed."""


class LayoutThreads(Protocol):
    """Runs the arithmetic of maps off the event loop."""

    def turn_soon(self) -> AbstractAsyncContextManager[None]:
        """Wait for a turn at `run`: one at a time holds the vectors of its map."""

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work of at most a second, which a request waits for."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for a turn at `run_long`, likewise."""

    async def run_long(self, work: Callable[[StopCondition], Result]) -> Result:
        """Run work of any length at low priority. It is told to stop when the process ends."""
