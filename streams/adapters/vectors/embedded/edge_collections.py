"""The collections under one root: shards opened at the first use, as many at once as the system grants.

Guaranteed: shards are open only while this process owns the root; of all open ones of the process the least recently
used one is closed for another; an empty collection is removed when it is closed. One that can't be read, during whose
reading the process died twice, whose calls go on failing after it was loaded anew, or whose packed rows are lost,
is set aside under another name: the vectors are made again from the records. A lack of descriptors or memory
damages nothing.
"""

import asyncio
import fcntl
import resource
import shutil
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from schemas.failures import Unavailable
from schemas.models.vectors import Point
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.durable_files import fsync_path, write_durably
from streams.adapters.vectors.embedded.edge_failures import MAX_DEATHS, CallMark, is_lack, translate_engine_errors
from streams.adapters.vectors.embedded.edge_shard import FINGERPRINT_FILE, CollectionShard, read_counts
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import check_fingerprint

log = structlog.get_logger()

MAX_OPEN_SHARDS = 32
"""Open shards: 224 descriptors, 2,700 memory maps and 32 threads. Opening a closed one takes 40 ms, closing 12."""

MIN_OPEN_SHARDS = 2

SHARD_DESCRIPTORS = 16
"""Descriptors of a shard: 7 are measured, more while segments are written."""

SHARD_MAPS = 256
"""Memory maps of a shard: 83 are measured with one segment."""

MAX_MAP_COUNT_FILE = Path("/proc/sys/vm/max_map_count")


def granted_open_shards() -> int:
    """Return the bound for this process, after raising its soft limit of open files to the hard one."""
    soft, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    maps = int(MAX_MAP_COUNT_FILE.read_text()) if MAX_MAP_COUNT_FILE.exists() else -1
    # Half of each is left to the rest of the process; -1 is no limit.
    by_limits = [
        limit // 2 // each for limit, each in ((descriptors, SHARD_DESCRIPTORS), (maps, SHARD_MAPS)) if limit > 0
    ]
    return max(MIN_OPEN_SHARDS, min([MAX_OPEN_SHARDS, *by_limits]))


class OpenShards:
    """The order in which the open shards of several roots were used."""

    def __init__(self, max_open: int | None = None) -> None:
        """At most `max_open` shards are open at once, or fewer if the system's limit is lower."""
        self._max_open = max_open or granted_open_shards()
        self._order: OrderedDict[tuple[EdgeCollections, str], None] = OrderedDict()

    def used(self, owner: "EdgeCollections", name: str) -> None:
        """Note a use of a shard, or its opening."""
        self._order[owner, name] = None
        self._order.move_to_end((owner, name))

    def closed(self, owner: "EdgeCollections", name: str) -> None:
        self._order.pop((owner, name), None)

    def make_room(self) -> None:
        """Close the least recently used shards without a call under way, so that one more can be opened."""
        idle = [(owner, name) for owner, name in self._order if owner.is_idle(name)]
        for owner, name in idle[: max(0, len(self._order) + 1 - self._max_open)]:
            owner.close_idle(name)


OWNER_LOCK_FILE = ".owner.lock"
"""The file in the root that the owner locks. The kernel releases the lock with the process."""

DAMAGED_PREFIX = ".damaged-"
"""Starts the name of a collection that was set aside; the newest one of each name is kept."""

PACKED_DIR = ".packed"
"""In the root: the packed vectors of all collections."""

LOST_ROWS = "its packed rows are lost"
"""The reason why a collection is set aside whose points lie in the engine alone."""

REMOVED_PREFIX = ".removed-"
"""Starts the name of an empty collection while its files are removed."""


PAUSE_SHARE = 2
"""How much longer than the opening took the next one waits for requests under way, as a multiple of that time."""

MAX_PAUSE_S = 0.25
"""The longest of both pauses: a disk that is slow for a moment delays its caller, and not for long."""

UntilQuiet = Callable[[float], Awaitable[None]]
"""Waits until no request is in progress, at most this many seconds."""


async def no_requests(_at_most_s: float) -> None:
    """Return at once: an index used alone serves no requests."""


class EdgeCollections:
    """The shards under one root directory."""

    def __init__(self, root: Path, open_shards: OpenShards | None = None) -> None:
        """Lock the directory; `open_shards` counts those of other roots, too.

        Raises RuntimeError if another process owns it.
        """
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._lock = (root / OWNER_LOCK_FILE).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise RuntimeError(f"another process owns the vector index in {root}") from error
        self.packed = PackedVectors(root / PACKED_DIR)
        """The vectors of all collections, by boundary."""
        self._open_shards = open_shards or OpenShards()
        self._shards: dict[str, CollectionShard] = {}
        self._fingerprints: dict[str, Fingerprint] = {}
        self._failures: dict[str, str] = {}
        self._reloaded: set[str] = set()
        self.on_lost: Callable[[str], object] = lambda _name: None
        """Called with the name of a collection that was set aside."""
        self._mark = CallMark(root)
        for name in [name for name, deaths in self._mark.deaths.items() if deaths >= MAX_DEATHS]:
            self._set_aside(name, f"the process died {MAX_DEATHS} times while reading it")
        for name in _names(root.glob(f"[!.]*/{FINGERPRINT_FILE}")):
            if not self.packed.is_complete(name):
                self._set_aside(name, LOST_ROWS)

    @property
    def problem(self) -> str | None:
        """The last failure to open a collection that has not been opened since."""
        return next(reversed(self._failures.values()), None)

    @property
    def set_aside(self) -> list[str]:
        """The names of the collections that were set aside and are kept."""
        return sorted(path.name.removeprefix(DAMAGED_PREFIX) for path in self._root.glob(f"{DAMAGED_PREFIX}*"))

    def holds(self, space: VectorSpace) -> bool:
        """True if the collection exists, open or closed. Raises ValueError for another fingerprint."""
        self.require_owned()
        name = space.collection
        if name not in self._fingerprints:
            if not (self._root / name).exists():
                return False
            if (fingerprint := self._read_fingerprint(name)) is None:
                return False
            self._fingerprints[name] = fingerprint
        check_fingerprint(space, self._fingerprints[name])
        return True

    def require_owned(self) -> None:
        """Raise KeyError, as other stores of a partition that has left do, once the directory is released."""
        if self._lock.closed:
            # Another process may own the shards by now; opening one would damage it.
            raise KeyError(f"the vector index in {self._root} is closed")

    def is_open(self, space: VectorSpace) -> bool:
        """True if a call on the collection needs to load nothing."""
        return space.collection in self._shards

    def readable(self, space: VectorSpace) -> CollectionShard | None:
        """Return the open collection, None if it does not exist. Raises ValueError for another fingerprint."""
        name = space.collection
        if name in self._shards and self._shards[name].is_failing and not self._shards[name].calls:
            self._pop(name).abandon()
            # Loaded anew the first time, set aside the second time.
            if name in self._reloaded:
                self._set_aside(name, "its calls fail, also after it was loaded anew")
            else:
                self._reloaded.add(name)
        if name in self._shards and not self._shards[name].calls and not self.packed.is_complete(name):
            self._pop(name).abandon()
            self._set_aside(name, LOST_ROWS)
        if not self.holds(space) or (name not in self._shards and not self._open(name)):
            return None
        self._open_shards.used(self, name)
        return self._shards[name]

    def writable(self, space: VectorSpace, points: Sequence[Point]) -> CollectionShard:
        """Return a collection that is ready for these points: created, indexed, with its alias."""
        shard, name = self.readable(space), space.collection
        if shard is None:
            self._open_shards.make_room()
            # The alias first: after a kill in between, the repeated write creates the collection that it names. What is
            # packed of an earlier collection goes before there is a new one.
            try:
                translate_engine_errors(lambda: write_durably(self._root / payload.alias_name(space.mode), name))
                self.packed.begin(name)
                shard = CollectionShard.create(self._root / name, space.fingerprint, self._mark)
            except Unavailable as problem:
                self._failures[name] = str(problem)
                raise
            self._shards[name] = shard
            self._open_shards.used(self, name)
            self._failures.clear()
            self._fingerprints[name] = space.fingerprint
        shard.index(payload.indexed_fields(points))
        return shard

    def count(self, space: VectorSpace, partition: int) -> int:
        """Count a partition's points; those of a closed collection are known without opening it."""
        name = space.collection
        if self.holds(space) and name not in self._shards:
            counts = read_counts(self._root / name)
            if counts is not None:
                return counts.get(partition, 0)
        shard = self.readable(space)
        return 0 if shard is None else shard.count(partition)

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprints of the existing collections, by name."""
        self.require_owned()
        files = self._root.glob(f"[!.]*/{FINGERPRINT_FILE}")
        read = {name: self._fingerprints.get(name) or self._read_fingerprint(name) for name in _names(files)}
        return {name: fingerprint for name, fingerprint in read.items() if fingerprint is not None}

    def close(self) -> None:
        """Flush and close every shard, then release the directory."""
        try:
            while self._shards:
                self._close(next(iter(self._shards)))
            self._mark.close()
            self.packed.close()
        finally:
            self._lock.close()

    def _read_fingerprint(self, name: str) -> Fingerprint | None:
        """Return the fingerprint of a collection; None if it was damaged and the collection is set aside."""
        content = translate_engine_errors((self._root / name / FINGERPRINT_FILE).read_bytes)
        try:
            return Fingerprint.model_validate_json(content)
        except ValueError as problem:
            self._set_aside(name, str(problem))
            return None

    def _open(self, name: str) -> bool:
        """Open a collection; False if it was damaged and set aside. Raises Unavailable for a lack of the system."""
        if not self.packed.is_complete(name):
            self._set_aside(name, LOST_ROWS)
            return False
        self._open_shards.make_room()
        try:
            self._shards[name] = CollectionShard(self._root / name, self._mark)
        except Unavailable as problem:
            if is_lack(problem):
                self._failures[name] = str(problem)
                raise
            self._set_aside(name, str(problem))
            return False
        self._failures.clear()
        return True

    def is_idle(self, name: str) -> bool:
        """True if no call on the open collection is under way."""
        return not self._shards[name].calls

    def close_idle(self, name: str) -> None:
        """Close a collection for another one; raises nothing for what a later opening mends."""
        try:
            self._close(name)
        except Unavailable as problem:
            # Its writes are in its log, which the next opening replays: the caller wants another collection.
            self._failures[name] = str(problem)

    def _pop(self, name: str) -> CollectionShard:
        self._open_shards.closed(self, name)
        return self._shards.pop(name)

    def _close(self, name: str) -> None:
        shard = self._pop(name)
        is_used = shard.close()
        self._reloaded.discard(name)
        if not is_used:
            self._fingerprints.pop(name, None)
            # Under another name first: a directory under its own name is complete.
            removed = self._root / f"{REMOVED_PREFIX}{name}"
            with suppress(OSError):
                shutil.rmtree(removed, ignore_errors=True)
                (self._root / name).rename(removed)
                shutil.rmtree(removed)

    def _set_aside(self, name: str, reason: str) -> None:
        aside = self._root / f"{DAMAGED_PREFIX}{name}"
        if (self._root / name).exists():
            shutil.rmtree(aside, ignore_errors=True)
            (self._root / name).rename(aside)
            fsync_path(self._root)
            log.error("vectors are damaged: set aside, and made again", collection=name, kept=str(aside), reason=reason)
        self._fingerprints.pop(name, None)
        self._reloaded.discard(name)
        self._mark.forget(name)
        self.on_lost(name)
        with suppress(Unavailable):
            self.packed.drop(name)


def _names(files: Iterable[Path]) -> list[str]:
    return [file.parent.name for file in files]


class PacedOpening:
    """Opens the collections of one index for calls: one at a time, each followed by a pause in which others are served.

    Loading a collection holds the GIL for 30 to 60 ms, and closing another one for it 20: a question over many modes
    would stop all other users while it opens them.
    """

    def __init__(self, collections: EdgeCollections, until_quiet: UntilQuiet, opening: asyncio.Lock) -> None:
        """`opening` is held while one is opened, by this index or another one of the process."""
        self._collections = collections
        self._until_quiet = until_quiet
        self._opening = opening

    async def readable(self, space: VectorSpace) -> CollectionShard | None:
        """Return the open collection, None if it does not exist; it stays open until the caller awaits something.

        Raises ValueError for another fingerprint, Unavailable for a lack of the system.
        """
        if self._collections.is_open(space):
            return self._collections.readable(space)
        async with self._opening:
            # Another caller may have opened it while this one waited.
            is_opened_here = not self._collections.is_open(space)
            began = time.monotonic()
            shard = self._collections.readable(space)
            if shard is not None and is_opened_here:
                with shard.in_use():
                    took = time.monotonic() - began
                    # Also while none is under way: one that arrives is counted after some passes of the event loop.
                    await asyncio.sleep(min(took, MAX_PAUSE_S))
                    await self._until_quiet(min(PAUSE_SHARE * took, MAX_PAUSE_S))
            return shard
