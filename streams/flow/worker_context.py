"""The services that background work, jobs and consolidations of one worker share."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

from agents.commands.admit import Admit
from agents.ports.clock import SteadyClock
from agents.ports.commands import ContextLog, EmptyRunLog, NoContextLog, RunLog
from agents.ports.files import FileBytes
from schemas.internal.changes import IssuedCommands
from schemas.internal.consolidation import RunHistory
from schemas.internal.events import Learned
from schemas.scopes import Scope
from streams.flow.boundary_changes import BoundaryChanges
from streams.flow.death_counts import DeathCounts
from streams.flow.job_log import JobLog
from streams.flow.pipelines.in_force import Pipelines, shipped_pipelines
from streams.flow.publisher import Publisher
from streams.flow.requests.channel import RecentEvents, Replies
from streams.flow.runs.recorder import RunRecorder
from streams.flow.stores import ReceiptStore, ScopeStore, Stores, Table, UsageLog
from streams.flow.text_reading import ReadLongText, read_in_thread
from streams.flow.turns_log import LogEnds, TurnsLog
from streams.foreground import Foreground
from streams.observability.metrics import Meters
from streams.partition.commit import AppliedOffsets, PartitionCommits
from streams.topics import Topics


@dataclass(frozen=True, slots=True)
class WorkerContext:
    topics: Topics
    partitions: int
    stores: Stores
    consolidations: ScopeStore[RunHistory]
    issued: Table[str, IssuedCommands]
    commit: PartitionCommits
    progress: AppliedOffsets
    publisher: Publisher
    clock: SteadyClock
    meters: Meters
    jobs: JobLog
    receipts: ReceiptStore
    usage: UsageLog
    admit: Admit = field(default_factory=Admit)
    scope_model: type[Scope] = Scope
    """The deployment's scopes."""
    turns_log: TurnsLog | None = None
    """None where turns are applied before any command comes."""
    log_ends: LogEnds | None = None
    """None where turns of open transactions are hidden: their offsets were given, and are read later."""
    deaths: DeathCounts = field(default_factory=DeathCounts)
    boundaries: BoundaryChanges = field(default_factory=BoundaryChanges)
    foreground: Foreground = field(default_factory=Foreground)
    read_text: ReadLongText = read_in_thread
    pipelines: Pipelines = field(default_factory=shipped_pipelines)
    runs: RunRecorder | None = None
    """None records no runs."""
    run_log: RunLog = field(default_factory=EmptyRunLog)
    erased_within: timedelta | None = None
    """The time in which logs are erased of what was forgotten."""
    context_log: ContextLog = field(default_factory=NoContextLog)
    logs_contexts: bool = False
    file_bytes: FileBytes | None = None
    """None where no files are kept."""
    files_grace_s: float = 3600.0
    """Seconds that bytes may lie before the turn that has them arrives."""
    recent: RecentEvents = field(default_factory=lambda: RecentEvents({Learned: 2}))
    """Events that are published and not read yet; `Intend` and `Categorize` both read what was learned."""
    worker_run_id: str = field(default_factory=lambda: uuid4().hex)
    """Identifies this process: vectors that it has written are on its disk."""

    @property
    def replies(self) -> Replies:
        return Replies(self.publisher, self.topics.dead_letters, self.clock, self.meters)

    def is_assigned(self, partition: int) -> bool:
        return self.turns_log is None or self.turns_log.is_assigned(partition)

    def served_partitions(self) -> list[int]:
        """Return the partitions that are assigned to this worker and prepared: their tables can be read."""
        prepared = (
            partition for partition in range(self.partitions) if self.progress.next_offset(partition) is not None
        )
        return [partition for partition in prepared if self.is_assigned(partition)]
