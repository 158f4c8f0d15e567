"""What every step of the map needs beside its agent."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

from agents.commands.admit import Admit
from agents.ports.categories import Categories
from agents.ports.claims import Claims
from agents.ports.clock import Clock
from agents.ports.consolidation_runs import ConsolidationRuns
from agents.ports.intentions import StoredIntentions
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories, Modes
from schemas.changes import IssuedCommands
from schemas.memories import Memory, VectorLocation
from schemas.scopes import Scope
from streams.flow.support.job_log import JobLog
from streams.flow.support.progress import AppliedOffsets
from streams.flow.support.publisher import Publisher
from streams.flow.support.turns_log import TurnsLog
from streams.observability.metrics import Meters
from streams.topics import Topics


class AwaitableWrites(Protocol):
    """What is written, and can be awaited."""

    def pending_writes(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        ...


class AwaitableMemories(Memories, AwaitableWrites, Protocol):
    """The records of the partitions that are here, with writes that can be awaited."""

    def all(self) -> Iterator[Memory]:
        """Every record."""
        ...

    def tombstones(self) -> Iterator[tuple[str, VectorLocation]]:
        """The ids of those that are no more, and where their vectors were."""
        ...


class AwaitableModes(Modes, AwaitableWrites, Protocol):
    """What is declared, with writes that can be awaited."""


class AwaitableIntentions(StoredIntentions, AwaitableWrites, Protocol):
    """What somebody is after, with writes that can be awaited."""


class AwaitableRuns(ConsolidationRuns, AwaitableWrites, Protocol):
    """The last consolidations, with writes that can be awaited."""


class AwaitableClaims(Claims, AwaitableWrites, Protocol):
    """What is said of claims, with writes that can be awaited."""


class AwaitableCategories(Categories, AwaitableWrites, Protocol):
    """The categories of scopes, with writes that can be awaited."""


class AwaitableIssued(AwaitableWrites, Protocol):
    """What commands have asked for, by partition and boundary, with writes that can be awaited."""

    def get(self, partition: int, boundary: str) -> IssuedCommands:
        """The last changes that commands of a boundary have asked for."""
        ...

    def put(self, partition: int, boundary: str, issued: IssuedCommands) -> None:
        """Write them over those before. Only while a command of that partition is being handled."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """One worker's shared parts."""

    topics: Topics
    partitions: int
    memories: AwaitableMemories
    modes: AwaitableModes
    claims: AwaitableClaims
    intentions: AwaitableIntentions
    categories: AwaitableCategories
    consolidations: AwaitableRuns
    issued: AwaitableIssued
    words: LexicalIndex
    progress: AppliedOffsets
    publisher: Publisher
    clock: Clock
    meters: Meters
    jobs: JobLog
    admit: Admit = field(default_factory=Admit)
    scope_model: type[Scope] = Scope
    """The deployment's scopes."""
    turns_log: TurnsLog | None = None
    """None where turns are applied before any command comes."""
    unsafe: defaultdict[int, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """By partition, held while the word index has writes whose events are not out: it is not committed meanwhile. A
    change that comes again finds by the committed words what was not finished."""
    worker_run_id: str = field(default_factory=lambda: uuid4().hex)
    """Names this run of the worker: the vectors that it writes are on the disk that it has."""
