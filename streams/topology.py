"""The map: which agent reads which topic, and what follows.

    turns ─► remember ─► remembered ─► embed ─► embedded ─► remember
    retrieve ─► retrieve ─► replies            commands, consolidate ─► govern ─► replies
    anything that can't be processed ─► dead-letters

The topics are Kafka's in a worker and channels in memory in a test; the map is the same.
"""

import os
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import faust
import structlog

from agents.embed import Embed
from agents.govern import Govern
from agents.remember import Remember
from agents.retrieve import Retrieve
from schemas.commands import Command
from schemas.retrieval import RetrieveRequest
from schemas.turns import Turn
from streams.flow.answering import AnswerCommand, AnswerRetrieve
from streams.flow.delivery import Delivery
from streams.flow.requests import Channel
from streams.flow.steps import EmbedRemembered, RememberEmbedded, RememberTurns, Requested, Step
from streams.flow.surroundings import Surroundings
from streams.watching.metrics import Meters

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Agents:
    """Who decides."""

    remember: Remember
    embed: Embed
    retrieve: Retrieve
    govern: Govern


def steps(agents: Agents, around: Surroundings) -> dict[str, Step]:
    """Every topic's reader, by the topic's name."""
    topics = around.topics
    turns = Channel(topics.turns, {"turn.v1": Turn}, keeps_rejected=True, outlives_deadline=True)
    retrieve = Channel(topics.retrieve, {"retrieve.v1": RetrieveRequest}, concurrent=True)
    commands = Channel(topics.commands, {"command.v1": Command})
    triggers = Channel(topics.consolidate, {})
    command = AnswerCommand(agents.govern)
    return {
        topics.turns: RememberTurns(turns, agents.remember, around),
        topics.remembered: EmbedRemembered(agents.embed, around),
        topics.embedded: RememberEmbedded(agents.remember, around),
        topics.retrieve: Requested(retrieve, AnswerRetrieve(agents.retrieve, around), around),
        topics.commands: Requested(commands, command, around),
        topics.consolidate: Requested(triggers, command, around),
    }


def connect(
    app: faust.App,
    channels: Mapping[str, Any],
    readers: Mapping[str, Step],
    meters: Meters,
    on_defect: Callable[[], None],
) -> None:
    """Start an agent for each reader on its channel; `on_defect` is called when one ends by an exception."""
    for topic, step in readers.items():
        app.agent(channels[topic], name=topic)(_running(topic, step, meters, on_defect))


def _running(topic: str, step: Step, meters: Meters, on_defect: Callable[[], None]) -> Callable[[Any], Any]:
    async def settle(finished: Sequence[Any]) -> None:
        await step.settle(finished)
        meters.settled(len(finished))

    async def run(stream: Any) -> None:
        delivery: Delivery[Any] = Delivery(step.begin, settle, window=step.window, pause_s=step.pause_s)
        try:
            await delivery.run(_held(stream))
        except Exception:
            log.exception("an agent ended by a defect", topic=topic)
            on_defect()

    run.__doc__ = type(step).__doc__
    return run


def _held(stream: Any) -> AsyncIterable[Any]:
    events: AsyncIterable[Any] = stream.noack().events()
    return events


def end_process() -> None:
    """End at once, so that nothing unfinished is acknowledged; whoever supervises starts the worker again."""
    os._exit(70)
