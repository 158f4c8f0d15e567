"""The collections of the embedded index: each a shard in a directory of its own, under a root with one owner.

Enters: vector spaces. Leaves: open shards. Guaranteed: shards are open only while this process owns the root; a shard
with another fingerprint than the space is refused.
"""

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path

from schemas.models.vectors import Point
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.durable_files import write_durably
from streams.adapters.vectors.embedded.edge_shard import FINGERPRINT_FILE, CollectionShard, translate_engine_errors
from streams.adapters.vectors.shared.qdrant_payload import alias_name, indexed_fields
from streams.adapters.vectors.shared.vector_contract import check_fingerprint

OWNER_LOCK_FILE = ".owner.lock"
"""The file in the root that the owner locks. The kernel releases the lock with the process."""


class EdgeCollections:
    """The shards under one root directory, opened at the first use."""

    def __init__(self, root: Path) -> None:
        """Lock the directory. Raises RuntimeError if another process owns it."""
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._lock = (root / OWNER_LOCK_FILE).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise RuntimeError(f"another process owns the vector index in {root}") from error
        self._shards: dict[str, CollectionShard] = {}

    def readable(self, space: VectorSpace) -> CollectionShard | None:
        """Return the collection, None if it does not exist. Raises ValueError for another fingerprint."""
        if self._lock.closed:
            # Another process may own the shard by now; opening it would damage it.
            raise RuntimeError(f"the vector index in {self._root} is closed")
        name = space.collection
        if name not in self._shards:
            if not (self._root / name).exists():
                return None
            self._shards[name] = CollectionShard(self._root / name)
        check_fingerprint(space, self._shards[name].fingerprint)
        return self._shards[name]

    def writable(self, space: VectorSpace, points: Sequence[Point]) -> CollectionShard:
        """Return a collection that is ready for these points: created, indexed, with its alias."""
        shard = self.readable(space) or self._create(space)
        shard.index(indexed_fields(points))
        return shard

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprints of the existing collections, by name."""
        files = self._root.glob(f"[!.]*/{FINGERPRINT_FILE}")
        return {file.parent.name: Fingerprint.model_validate_json(file.read_text()) for file in files}

    def close(self) -> None:
        """Flush and close every shard, then release the directory."""
        try:
            while self._shards:
                self._shards.popitem()[1].close()
        finally:
            self._lock.close()

    def _create(self, space: VectorSpace) -> CollectionShard:
        # The alias first: after a kill in between, the repeated write creates the collection that it names.
        translate_engine_errors(lambda: write_durably(self._root / alias_name(space.mode), space.collection))
        shard = CollectionShard.create(self._root / space.collection, space.fingerprint)
        self._shards[space.collection] = shard
        return shard
