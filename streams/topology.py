"""The map: which agent reads which topic, and what follows.

    turns ─► remember ─► remembered ─► embed, understand ─► embedded ─► remember
             a language model, beside the events ─► understood ─► remember
    retrieve ─► retrieve, assemble ─► replies
    remember ─► learned ─► intend, categorize
    commands ─► govern ─► replies, or changes ─► remember ─► replies, or jobs ─► maintain ─► replies
    maintain ─► embedded ─► remember
    consolidate ─► consolidate ─► replies, and consolidated ─► remember
    anything that can't be processed ─► dead-letters

The topics are Kafka's in a worker and channels in memory in a test; the map is the same.
"""

import os
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import faust
import structlog

from agents.categories.categorize import Categorize
from agents.commands.handle_commands import HandleCommands
from agents.consolidation.consolidate import Consolidate
from agents.context.assemble import Assemble
from agents.embedding.embed import Embed
from agents.embedding.maintain import Maintain
from agents.intentions.intend import Intend
from agents.memory.remember import Remember
from agents.retrieval.retrieve import Retrieve
from agents.understanding.understand import Understand
from streams.channels import input_channels
from streams.flow.consolidation.run_consolidations import RunConsolidations
from streams.flow.steps.answer import AnswerAssemble, AnswerQuery, AnswerRetrieve
from streams.flow.steps.apply_changes import OnChanged, RememberChanges
from streams.flow.steps.categorize import CategorizeLearned
from streams.flow.steps.embed import AskModel, EmbedRemembered
from streams.flow.steps.handle_commands import AnswerCommand
from streams.flow.steps.intend import IntendLearned
from streams.flow.steps.maintain import RunJobs
from streams.flow.steps.remember import RememberEvents, RememberTurns
from streams.flow.steps.step import Requested, Step
from streams.flow.worker_context import WorkerContext
from streams.observability.metrics import Meters
from streams.runtime.delivery import Delivery

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Agents:
    """Who decides."""

    remember: Remember
    embed: Embed
    understand: Understand
    retrieve: Retrieve
    assemble: Assemble
    govern: HandleCommands
    intend: Intend
    categorize: Categorize
    maintain: Maintain
    consolidate: Consolidate


@dataclass(frozen=True, slots=True)
class BackgroundHooks:
    """Who works beside the events, and is told of them: has a model asked, has vectors made again."""

    ask_model: AskModel
    changed: OnChanged


@dataclass(frozen=True, slots=True)
class Subscription:
    """One reader of one topic: the step that is run there, and the agents that decide in it."""

    topic: str
    step: Step
    agents: tuple[object, ...]

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The agents by their names."""
        return tuple(type(agent).__name__ for agent in self.agents)

    @property
    def name(self) -> str:
        """What this reader is called."""
        return "-".join((self.topic, *self.agent_names))


def subscriptions(agents: Agents, hooks: BackgroundHooks, ctx: WorkerContext) -> list[Subscription]:
    """Every topic's readers."""
    topics = ctx.topics
    served = input_channels(topics, ctx.scope_model)
    remember, understand, embed, govern = (
        agents.remember,
        agents.understand,
        agents.embed,
        agents.govern,
    )
    answer = AnswerQuery(AnswerRetrieve(agents.retrieve, ctx), AnswerAssemble(agents.assemble, ctx))
    command = AnswerCommand(govern, ctx)
    return [
        Subscription(topics.turns, RememberTurns(served.turns, remember, ctx), (remember,)),
        Subscription(topics.remembered, EmbedRemembered(embed, understand, hooks.ask_model, ctx), (embed, understand)),
        Subscription(topics.understood, RememberEvents(remember, ctx), (remember,)),
        Subscription(topics.embedded, RememberEvents(remember, ctx, embed.has_written), (remember,)),
        Subscription(
            topics.retrieve,
            Requested(served.retrieve, answer, ctx),
            (agents.retrieve, agents.assemble),
        ),
        Subscription(topics.commands, Requested(served.commands, command, ctx), (govern,)),
        Subscription(
            topics.consolidate,
            RunConsolidations(served.triggers, agents.consolidate, agents.categorize, ctx),
            (agents.consolidate,),
        ),
        Subscription(topics.consolidated, RememberEvents(remember, ctx), (remember,)),
        Subscription(topics.changes, RememberChanges(served.changes, remember, hooks.changed, ctx), (remember,)),
        Subscription(topics.learned, IntendLearned(agents.intend, ctx), (agents.intend,)),
        Subscription(topics.learned, CategorizeLearned(agents.categorize, ctx), (agents.categorize,)),
        Subscription(topics.jobs, RunJobs(served.jobs, agents.maintain, ctx), (agents.maintain,)),
    ]


def connect(
    app: faust.App,
    channels: Mapping[str, Any],
    subscriptions: Sequence[Subscription],
    meters: Meters,
    on_defect: Callable[[], None],
) -> None:
    """Start an agent for each reader on its channel; `on_defect` is called when one ends by an exception."""
    for reader in subscriptions:
        app.agent(channels[reader.topic], name=reader.name)(_running(reader.name, reader.step, meters, on_defect))


def _running(name: str, step: Step, meters: Meters, on_defect: Callable[[], None]) -> Callable[[Any], Any]:
    async def settle(finished: Sequence[Any]) -> None:
        await step.settle(finished)
        meters.settled(len(finished))

    async def run(stream: Any) -> None:
        delivery: Delivery[Any] = Delivery(step.begin, settle, window=step.window, pause_s=step.pause_s)
        try:
            await delivery.run(_held(stream))
        except Exception:
            log.exception("an agent ended by a defect", agent=name)
            on_defect()

    run.__doc__ = type(step).__doc__
    return run


def _held(stream: Any) -> AsyncIterable[Any]:
    events: AsyncIterable[Any] = stream.noack().events()
    return events


def end_process() -> None:
    """End at once, so that nothing unfinished is acknowledged; whoever supervises starts the worker again."""
    os._exit(70)
