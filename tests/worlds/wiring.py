"""Which agents read and write which topics, observed from outside."""

import asyncio
from pathlib import Path

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.topology import BackgroundHooks, Subscription, subscriptions
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_publisher import Arrow
from tests.worlds.in_memory_requests import turn_message


def wired_subscriptions(directory: Path) -> list[Subscription]:
    agents, ctx = InMemoryPipeline(directory).wire(SqliteLexicalIndex(directory))
    hooks = BackgroundHooks(lambda _partition, _memory: None, lambda _change, _partition: None)
    return subscriptions(agents, hooks, ctx)


def reading_arrows(directory: Path) -> set[Arrow]:
    return {
        (subscription.topic, agent)
        for subscription in wired_subscriptions(directory)
        for agent in subscription.agent_names
    }


def agents_sharing_steps(directory: Path) -> dict[str, set[str]]:
    """Return, for each agent, the agents that share a step with it."""
    shared: dict[str, set[str]] = {}
    for subscription in wired_subscriptions(directory):
        for agent in subscription.agent_names:
            shared.setdefault(agent, set()).update(subscription.agent_names)
    return shared


FORGET_USER = {
    "schema": "command.v1",
    "command": "forget",
    "scope": {"user_id": "u1", "project_id": "default"},
    "arguments": {"user": True},
}


FEWER_CANDIDATES = {"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 5}}


async def observed_arrows(directory: Path) -> set[Arrow]:
    """Return the topics that each agent writes to, observed while every kind of record is processed."""
    async with InMemoryPipeline(
        directory, profiles=ONE_PROFILE, more_settings={"context_log": "ids"}, observes_arrows=True
    ).running() as pipeline:
        names = pipeline.names
        for topic in (names.turns, names.retrieve, names.commands, names.consolidate, names.changes, names.jobs):
            await pipeline.ask(topic, b"nonsense")
            await pipeline.publish(topic, b"nonsense")
        for topic in (names.remembered, names.understood, names.embedded, names.learned, names.consolidated):
            await pipeline.publish(topic, b"nonsense")
        accepted = await pipeline.ask(names.turns, turn_message("Tea, please.", "t-1"))
        await pipeline.until(lambda: pipeline.memory("Tea, please.").reading.status == "model")
        await pipeline.retrieve("tea")
        await pipeline.answer("tea?", conversation_id="c1")
        made = await pipeline.ask(
            names.retrieve, {"schema": "assemble.v1", "scope": {"user_id": "u1"}, "query": "tea?"}
        )
        await pipeline.command("rate", context_id=made["result"]["context_id"], useful=made["result"]["references"])
        await pipeline.command("edit_pipeline", edits=[FEWER_CANDIDATES])
        await pipeline.command("refresh", before_revision=1)
        trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
        await pipeline.ask(names.consolidate, trigger)
        await pipeline.command("declare_mode", name="code", embedder="tiny32")
        await pipeline.command("set_memory_mode", memory_id=accepted["result"]["memory_id"], mode="code")
        await pipeline.topics.settled()
        pipeline.clock.forward(1)
        rebuilding = asyncio.create_task(pipeline.command("rebuild"))
        await pipeline.until(lambda: bool(pipeline.jobs.under_way("u1")))
        await rebuilding
        for number in range(4):
            await pipeline.ask(
                names.turns, turn_message(f"We decided to water the tomatoes on day {number}.", f"w-{number}")
            )
        await pipeline.topics.settled()
        await pipeline.command("declare_category", name="garden", description="tomatoes and watering")
        await pipeline.ask(names.consolidate, {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None})
        await pipeline.ask(names.commands, FORGET_USER)
        await pipeline.topics.settled()
        return pipeline.arrows
