"""The collections of the embedded index: each a shard in a directory of its own, under a root that has one owner.

In go spaces; out come open shards. Guaranteed: no shard is opened before the root is this process's, nor after it is
let go; one whose fingerprint is another than the space's is given to nobody.
"""

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path

from schemas.modes import Fingerprint, VectorSpace
from schemas.vectors import Point
from streams.adapters.durable_files import write_durably
from streams.adapters.vectors.embedded.edge_shard import FINGERPRINT_FILE, CollectionShard, translate_engine_errors
from streams.adapters.vectors.shared.qdrant_payload import alias_name, indexed_fields
from streams.adapters.vectors.shared.vector_contract import check_fingerprint

OWNER_LOCK_FILE = ".owner.lock"
"""The file in the root directory whose lock its owner holds. The kernel frees it with the process."""


class EdgeCollections:
    """The shards under one root directory, opened when they are first asked for."""

    def __init__(self, root: Path) -> None:
        """Take the directory. Raises RuntimeError when another process has it."""
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
        """Give the collection, or None where it does not exist. Raises ValueError for another fingerprint."""
        if self._lock.closed:
            # Opening a shard that another process may own by now would damage it.
            raise RuntimeError(f"the vector index in {self._root} is closed")
        name = space.collection
        if name not in self._shards:
            if not (self._root / name).exists():
                return None
            self._shards[name] = CollectionShard(self._root / name)
        check_fingerprint(space, self._shards[name].fingerprint)
        return self._shards[name]

    def writable(self, space: VectorSpace, points: Sequence[Point]) -> CollectionShard:
        """Give the collection when it can take these points: made, indexed, with an alias in front."""
        shard = self.readable(space) or self._created(space)
        shard.index(indexed_fields(points))
        return shard

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Give the collections that exist, by name, with the fingerprint that is kept in each."""
        files = self._root.glob(f"[!.]*/{FINGERPRINT_FILE}")
        return {file.parent.name: Fingerprint.model_validate_json(file.read_text()) for file in files}

    def close(self) -> None:
        """Flush and close every shard, then let the directory go."""
        try:
            while self._shards:
                self._shards.popitem()[1].close()
        finally:
            self._lock.close()

    def _created(self, space: VectorSpace) -> CollectionShard:
        # The alias first: killed in between, it names a collection that the repeated write makes.
        translate_engine_errors(lambda: write_durably(self._root / alias_name(space.mode), space.collection))
        shard = CollectionShard.create(self._root / space.collection, space.fingerprint)
        self._shards[space.collection] = shard
        return shard
