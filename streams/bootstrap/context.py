"""Builds the context of a worker: its tables in the Faust app, and the services that its steps share."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from schemas.internal.consolidation import RunHistory
from schemas.internal.job_history import JobHistory
from schemas.scope_models import bind_issued_scope
from schemas.state.modes import ModeDeclarations
from streams.adapters.files.object_bytes import open_file_bytes
from streams.adapters.kafka.logs import KafkaContextLog, KafkaRunLog
from streams.bootstrap.adapters import SystemClock, open_admission
from streams.flow.boundary_changes import BoundaryChanges
from streams.flow.death_counts import DeathCounts
from streams.flow.job_log import JobLog
from streams.flow.pipelines.in_force import Pipelines
from streams.flow.publisher import Publisher
from streams.flow.runs.recorder import RunOptions, RunRecorder, RunWriter
from streams.flow.stores import LexicalStore, ObservedTable, Stores, Table, UsageLog
from streams.flow.text_reading import ReadLongText, read_in_thread
from streams.flow.turns_log import LogEnds
from streams.flow.worker_context import WorkerContext
from streams.foreground import Foreground
from streams.observability.metrics import Meters
from streams.partition.commit import AppliedOffsets, PartitionCommits
from streams.runtime.awaited_table import databases_of
from streams.runtime.kafka_app import App, changelog_of, send_row, set_commits
from streams.runtime.request_reader import READ_COMMITTED
from streams.runtime.turns_log import KafkaTurnsLog
from streams.settings import Settings
from streams.tables.json_table import (
    MAX_PARSED_MODES,
    CategoryTable,
    ClaimTable,
    IntentionTable,
    InteractionTable,
    JsonTable,
    ReceiptTable,
    ScopeTable,
    UsageTable,
)
from streams.tables.memory_tables import MEMORIES, FileTable, MemoryTable
from streams.topics import LogRetention, topics_with_prefix
from streams.wire.partitioning import boundary_in

CompleteModes = Callable[[ModeDeclarations], ModeDeclarations]
"""Adds the deployment's `general` to a boundary's declarations."""


def build_stores(
    app: App, settings: Settings, words: LexicalStore, boundaries: BoundaryChanges, complete: CompleteModes
) -> Stores:
    """Add the tables that agents read and write to the app; changed modes are noted in `boundaries`."""
    boundary = settings.scope_model.boundary_fields
    modes: Table[str, ModeDeclarations] = JsonTable(
        app, "modes", ModeDeclarations, str, max_parsed=MAX_PARSED_MODES, complete=complete
    )
    return Stores(
        memories=MemoryTable(app),
        modes=ObservedTable(modes, boundaries.changed),
        claims=ClaimTable(app),
        intentions=IntentionTable(app, boundary),
        categories=CategoryTable(app, settings.categories.root, boundary),
        interactions=InteractionTable(app),
        files=FileTable(app),
        words=words,
    )


def build_context(
    app: App,
    settings: Settings,
    words: LexicalStore,
    publisher: Publisher,
    meters: Meters,
    foreground: Foreground,
    pipelines: Pipelines,
    read_text: ReadLongText = read_in_thread,
    complete_modes: CompleteModes = lambda declared: declared,
) -> WorkerContext:
    """Build the shared services of a worker; adds every table to the app."""
    topics, boundary_fields = topics_with_prefix(settings.topic_prefix), settings.scope_model.boundary_fields
    turns_log = KafkaTurnsLog(app, topics.turns)
    clock = SystemClock()
    boundary_of = partial(boundary_in, fields=settings.scope_model.boundary_fields)
    run_options = RunOptions(settings.runs_sample, settings.runs_text)
    boundaries, erased_s = BoundaryChanges(), LogRetention.of(settings).erased_s
    stores = build_stores(app, settings, words, boundaries, complete_modes)
    commits = PartitionCommits(
        databases_of(app),
        meters,
        memories=changelog_of(app, MEMORIES),
        send_row=partial(send_row, app),
        flush_events=publisher.flush,
    )
    set_commits(app, commits)
    return WorkerContext(
        topics=topics,
        partitions=settings.partitions,
        stores=stores,
        consolidations=ScopeTable(app, "consolidations", RunHistory, boundary_fields),
        issued=JsonTable(app, "issued", bind_issued_scope(settings.scope_model), key=str),
        commit=commits,
        progress=AppliedOffsets(),
        publisher=publisher,
        clock=clock,
        meters=meters,
        jobs=JobLog(
            JsonTable(app, "jobs", JobHistory, key=str),
            KafkaTurnsLog(app, topics.consolidate),
            KafkaTurnsLog(app, topics.commands),
        ),
        admit=open_admission(settings),
        scope_model=settings.scope_model,
        turns_log=turns_log,
        log_ends=None if settings.isolation_level == READ_COMMITTED else LogEnds(turns_log),
        deaths=DeathCounts(settings.worker_run / "under-way"),
        boundaries=boundaries,
        foreground=foreground,
        read_text=read_text,
        pipelines=pipelines,
        runs=RunRecorder(
            RunWriter(publisher, meters).write, topics, clock, run_options, pipelines.in_force, boundary_of
        ),
        run_log=KafkaRunLog(settings),
        context_log=KafkaContextLog(settings),
        receipts=ReceiptTable(app),
        usage=UsageLog(UsageTable(app), commits, clock),
        erased_within=None if erased_s is None else timedelta(seconds=erased_s),
        logs_contexts=settings.context_log == "ids",
        file_bytes=open_file_bytes(settings.file_place),
        files_grace_s=settings.files_grace_s,
    )
