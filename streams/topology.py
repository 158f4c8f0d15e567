"""The map: which agents act on which topic, what follows, and which agent handles which command.

    turns ─► Remember ─► remembered ─► Embed, Understand ─► embedded ─► Remember
             a language model, in the background ─► understood ─► Remember
    retrieve ─► Retrieve, Assemble, List, DrawMap; commands that only read, as below ─► replies
    retrieve ─► Answer ─► asked ─► Answer ─► replies, turns
    Remember ─► learned ─► Intend, Categorize
    commands ─► HandleCommands, Intend, Categorize, SuggestModes, SuggestCategories, EditPipelines ─► replies, changes
    commands ─► HandleCommands ─► jobs
    changes ─► Remember ─► replies        jobs ─► Maintain, CompareEmbedders ─► embedded, replies
    consolidate ─► Consolidate, Categorize, AdjustIntention ─► consolidated ─► Remember
    EditPipelines ─► pipelines ─► every worker: the revision of the steps that counts
    anything that cannot be processed ─► dead-letters

The topics are Kafka's in a worker and in-memory channels in a test; the map is the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from modestream_client.operations import COMMANDS, QUERY_COMMANDS

from agents.categories.categorize import Categorize
from agents.categories.suggest_categories import SuggestCategories
from agents.commands.admit import DispatchCommands
from agents.commands.edit_pipelines import EditPipelines
from agents.commands.handle_commands import HandleCommands
from agents.consolidation.consolidate import Consolidate
from agents.context.answer import Answer
from agents.context.assemble import Assemble
from agents.embedding.embed import Embed
from agents.embedding.maintain import CompareEmbedders, Maintain
from agents.intentions.adjust import AdjustIntention, Intend
from agents.maps.draw_map import DrawMap
from agents.memory.remember import Remember
from agents.modes.suggest_modes import SuggestModes
from agents.ports.commands import CommandHandler
from agents.retrieval.list_memories import List
from agents.retrieval.retrieve import Retrieve
from agents.understanding.refresh import Refresh
from agents.understanding.understand import Understand
from schemas.internal.changes import JOB_KINDS
from schemas.messages.records import Record
from schemas.scopes import ScopeFields
from streams.channels import input_channels
from streams.fair_queue import FairShare
from streams.flow.consolidation.run_consolidations import RunConsolidations
from streams.flow.requests.channel import Channel, EventReader, Handler, HandlerResult, ReplyOptions
from streams.flow.requests.job_recorder import JobRecorder, consolidation_job, requested_job, running_job
from streams.flow.requests.pipeline import Admission, RequestPipeline
from streams.flow.steps.answer import AnswerQuery, OwnWrites
from streams.flow.steps.answer_with_model import AnswerWithModel
from streams.flow.steps.apply_changes import AfterForgetting, ApplyChanges, ForgetReceipts, OnChanged
from streams.flow.steps.embed import REMEMBERED_EVENTS, AskModel, EmbedRemembered, ReportEmbedded
from streams.flow.steps.handle_commands import AnswerCommand, Assignments
from streams.flow.steps.maintain import FileJobs, RunJobs
from streams.flow.steps.refresh import RunRefreshes
from streams.flow.steps.remember import MEMORY_EVENTS, PrepareTurns, RememberEvents, RememberTurns
from streams.flow.steps.step import (
    LEARNED_EVENTS,
    ApplyLearned,
    BeginRecord,
    CommittingStep,
    PoisonGuard,
    RequestStep,
    Step,
    TracingStep,
    TurnsStep,
    context_record,
)
from streams.flow.turns_log import TakenTurns
from streams.flow.worker_context import WorkerContext
from streams.partition_agents import Agents, PartitionAgents
from streams.runtime.kafka_app import App, start_agent
from streams.wire.partitioning import boundary_in


def command_handlers(agents: PartitionAgents, names: Iterable[str] = COMMANDS) -> dict[str, CommandHandler]:
    """Return the handlers of commands: each is the method of the command's name of the one agent that has it.

    Raises KeyError for a command that no agent here handles.
    """
    handling = (
        agents.commands, agents.categorize, agents.intend, agents.suggest_modes, agents.suggest_categories,
        agents.show_job, agents.show_runs, agents.show_contexts, agents.show_files, agents.edit_pipelines,
    )  # fmt: skip
    methods = {name: getattr(agent, name) for agent in handling for name in COMMANDS if hasattr(agent, name)}
    clear = (agents.intend.before_forgetting, agents.categorize.before_forgetting)
    methods["forget"] = partial(agents.commands.forget, before=clear)
    methods |= dict.fromkeys(JOB_KINDS, agents.commands.start_job)
    if missing := sorted(set(names) - methods.keys()):
        raise KeyError(f"no agent in `command_handlers` has a method for {', '.join(missing)}")
    return {name: methods[name] for name in names}


def query_handlers(agents: PartitionAgents) -> dict[str, CommandHandler]:
    return command_handlers(agents, QUERY_COMMANDS)


MAX_WAITING_REQUESTS = 4096
"""Questions, or commands, of all users that wait in a worker: those of a flood wait here, others not behind them."""

USERS_ADMITTED_AT_ONCE = 4
"""Users whose questions are admitted at the same time: that of another user does not wait for the pause of a flood."""


@dataclass(frozen=True, slots=True)
class BackgroundHooks:
    """Background workers to notify: the language model's queue, and re-embedding."""

    ask_model: AskModel
    on_changed: OnChanged


@dataclass(frozen=True, slots=True)
class Subscription:
    """One consumer of one topic: its step, and the agents that act in it."""

    topic: str
    agents: tuple[type[object], ...]
    step: Step
    is_background: bool = False
    """True if no caller waits for what it does."""

    @property
    def agent_names(self) -> tuple[str, ...]:
        return tuple(agent.__name__ for agent in self.agents)

    @property
    def name(self) -> str:
        return "-".join((self.topic, *self.agent_names))


def subscriptions(agents: Agents, hooks: BackgroundHooks, ctx: WorkerContext) -> list[Subscription]:
    """Every topic with the agents that act on it, and the step that runs them."""
    topics, meters, stores, publisher = ctx.topics, ctx.meters, ctx.stores, ctx.publisher
    channels = input_channels(topics, ctx.scope_model)
    own_writes = OwnWrites(ctx.progress, ctx.clock, ctx.foreground, ctx.log_ends)
    draw_map_at = lambda partition: agents.at(partition).draw_map  # noqa: E731
    remember_at = lambda partition: agents.at(partition).remember  # noqa: E731
    dispatch_at = lambda partition: DispatchCommands(command_handlers(agents.at(partition)))  # noqa: E731
    event_reader = partial(EventReader, replies=ctx.replies, deaths=ctx.deaths, recent=ctx.recent)

    prepare = PrepareTurns(ctx.pipelines, stores, ctx.read_text, meters)
    turns = RememberTurns(
        remember_at,
        stores,
        ctx.commit,
        publisher,
        topics,
        meters,
        foreground=ctx.foreground,
        prepare=prepare,
        recent=ctx.recent,
    )
    changes = ApplyChanges(
        remember_at,
        stores,
        ctx.commit,
        publisher,
        topics,
        meters,
        progress=ctx.progress,
        turns_log=ctx.turns_log,
        on_changed=hooks.on_changed,
        after_forgetting=AfterForgetting.of(ctx),
        receipts=ForgetReceipts(ctx.receipts, topics.receipts, ctx.clock, ctx.erased_within),
        draw_map_at=draw_map_at,
    )
    events = RememberEvents(
        event_reader(MEMORY_EVENTS),
        remember_at,
        stores,
        ctx.commit,
        publisher,
        topics,
        meters,
        worker_run_id=ctx.worker_run_id,
        prepare=prepare,
        has_vector=agents.embed.has_written,
        recent=ctx.recent,
    )
    embed = EmbedRemembered(
        event_reader(REMEMBERED_EVENTS),
        agents.embed,
        lambda partition: agents.at(partition).understand,
        draw_map_at,
        hooks.ask_model,
        ReportEmbedded(remember_at, ctx.commit, publisher, topics, meters, ctx.recent, ctx.foreground),
        meters,
        worker_run_id=ctx.worker_run_id,
        runs=ctx.runs,
    )
    queries = AnswerQuery(
        lambda partition: agents.at(partition).retrieval,
        lambda partition: agents.at(partition).assemble,
        lambda partition: agents.at(partition).list_memories,
        draw_map_at,
        lambda partition: DispatchCommands(query_handlers(agents.at(partition))),
        lambda partition: agents.at(partition).answer,
        topics.asked,
        own_writes,
        meters,
        ctx.usage,
        partial(context_record, topics.contexts, ctx.pipelines.in_force) if ctx.logs_contexts else None,
    )
    taken = None if ctx.turns_log is None else TakenTurns(ctx.turns_log, ctx.progress)
    answers = AnswerWithModel(lambda partition: agents.at(partition).answer, queries.context, taken, ctx)

    async def reassigned(partition: int, scope: ScopeFields) -> Assignments:
        return await agents.at(partition).categorize.due_assignments(scope)

    commands = AnswerCommand(dispatch_at, ctx, taken, reassigned)
    refreshes = RunRefreshes(lambda partition: agents.at(partition).refresh, ctx)
    run_jobs = RunJobs(
        lambda partition: agents.at(partition).maintain,
        lambda partition: agents.at(partition).compare_embedders,
        lambda partition: agents.at(partition).evaluate,
        refreshes,
        FileJobs(remember_at, ctx),
        ctx,
    )
    run_consolidations = RunConsolidations(
        lambda partition: agents.at(partition).consolidate,
        lambda partition: agents.at(partition).categorize,
        lambda partition: agents.at(partition).adjust_intention,
        refreshes,
        ctx,
    )
    requested = JobRecorder(commands, requested_job, ctx.jobs)
    jobs = JobRecorder(run_jobs, running_job, ctx.jobs, begins=False)
    consolidations = JobRecorder(run_consolidations, consolidation_job, ctx.jobs)
    learned = event_reader(LEARNED_EVENTS)
    intentions = ApplyLearned(
        learned, lambda partition: agents.at(partition).intend, ctx.commit, ctx.pipelines, runs=ctx.runs
    )
    categories = ApplyLearned(
        learned,
        lambda partition: agents.at(partition).categorize,
        ctx.commit,
        ctx.pipelines,
        part="categorize",
        runs=ctx.runs,
    )

    def serve(channel: Channel, handler: Handler) -> RequestPipeline:
        admission = Admission(channel, ctx.admit, ctx.partitions, topics.replies, ctx.clock, ctx.deaths)
        return RequestPipeline(admission, handler, ctx.replies, ctx.runs)

    boundary_of = partial(boundary_in, fields=ctx.scope_model.boundary_fields)
    command_agents = (HandleCommands, Intend, Categorize, SuggestModes, SuggestCategories, EditPipelines)
    command_step = RequestStep(
        serve(channels.commands, requested), window=MAX_WAITING_REQUESTS, fair_share=FairShare(boundary_of)
    )
    remembered = TurnsStep(serve(channels.turns, turns).begin, ctx.commit, ctx.progress, boundary_of)
    changed = CommittingStep(serve(channels.changes, changes).begin, ctx.commit, window=16, pause_s=0.0)
    applied = CommittingStep(events, ctx.commit)
    all_steps = [
        Subscription(topics.turns, (Remember,), remembered),
        Subscription(topics.remembered, (Embed, Understand, DrawMap), embed, is_background=True),
        Subscription(topics.understood, (Remember,), applied, is_background=True),
        Subscription(topics.embedded, (Remember,), applied, is_background=True),
        Subscription(topics.learned, (Intend,), intentions, is_background=True),
        Subscription(topics.learned, (Categorize,), categories, is_background=True),
        Subscription(
            topics.retrieve,
            (Retrieve, Assemble, List, DrawMap, Answer),
            RequestStep(
                serve(channels.retrieve, queries),
                window=MAX_WAITING_REQUESTS,
                fair_share=FairShare(boundary_of, at_once=USERS_ADMITTED_AT_ONCE),
            ),
        ),
        # All that wait are read: users take turns among them.
        Subscription(topics.asked, (Answer,), RequestStep(serve(channels.asked, answers), window=MAX_WAITING_REQUESTS)),
        Subscription(topics.commands, command_agents, command_step),
        Subscription(topics.changes, (Remember, DrawMap), changed),
        Subscription(
            topics.jobs,
            (Maintain, CompareEmbedders, Refresh),
            # All that wait are read: users take turns among them.
            RequestStep(serve(channels.jobs, jobs), window=MAX_WAITING_REQUESTS),
        ),
        Subscription(
            topics.consolidate,
            (Consolidate, Categorize, AdjustIntention, Refresh),
            RequestStep(serve(channels.triggers, consolidations), window=64),
        ),
        Subscription(topics.consolidated, (Remember,), applied),
    ]
    # They take long and go on where they were: kills from outside could count for one of their records.
    resuming = (topics.changes, topics.jobs, topics.consolidate, topics.asked)
    counted = [
        replace(
            consumer,
            step=PoisonGuard(consumer.step, consumer.name, ctx.deaths, counts_kills=consumer.topic not in resuming),
        )
        for consumer in all_steps
    ]
    return [replace(consumer, step=TracingStep(consumer.step, consumer.name)) for consumer in counted]


def moving_pipelines(ctx: WorkerContext) -> dict[str, BeginRecord]:
    """Return a pipeline for each input topic that moves or refuses records of partitions beyond the deployment's."""
    topics = ctx.topics

    async def misplaced(_message: Any, record: Record, _options: ReplyOptions) -> HandlerResult:
        raise RuntimeError(f"partition {record.partition} of {record.topic} is one of the deployment's")

    return {
        channel.topic: RequestPipeline(
            Admission(channel, ctx.admit, ctx.partitions, topics.replies, ctx.clock), misplaced, ctx.replies
        ).begin
        for channel in input_channels(topics, ctx.scope_model).public()
    }


def connect(
    app: App,
    channels: Mapping[str, Any],
    consumers: Sequence[Subscription],
    ctx: WorkerContext,
    on_defect: Callable[[], None],
) -> None:
    """Start an agent for each subscription on its channel; `on_defect` is called when one ends by an exception."""
    for consumer in consumers:
        start_agent(
            app,
            consumer.topic,
            channels[consumer.topic],
            consumer.name,
            consumer.step,
            foreground=ctx.foreground,
            is_background=consumer.is_background,
            on_settled=ctx.meters.settled,
            on_defect=on_defect,
        )
