"""After any actions, derived memories have valid evidence, chains end and counts agree.

The same actions on an empty system give the same records, also with kills, and publishing the turns again changes
nothing.
"""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from schemas.state.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.worker_context import WorkerContext
from streams.partition_agents import Agents
from tests.properties import scaled
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.provenance import find_faults
from tests.worlds.user_actions import SAID, Action, ActionRunner

EXAMPLES = 8
FEWEST, MOST = 6, 14
"""Actions of one example."""

EITHER = st.integers(0, 1)
TURNS = st.integers(0, 5)
FIRST = st.integers(0, 3)
ANY = st.integers(0, 60)
NAMES = st.integers(0, 2)
FILTERS = st.integers(0, 3)


def action(what: str, *numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Action]:
    return st.builds(Action, st.just(what), st.tuples(*numbers))


SAYING = [
    action("say", st.integers(0, len(SAID) - 1), TURNS, EITHER, EITHER),
    action("say", st.integers(0, len(SAID) - 1), TURNS, st.just(0), st.just(0)),
    action("say", st.integers(0, len(SAID) - 1), TURNS, st.just(0), st.just(0)),
    action("repeat", FIRST, EITHER, st.just(0)),
    action("repeat", FIRST, EITHER, st.just(0)),
    action("show", TURNS, EITHER, st.just(0)),
]
CHANGING = [
    action("consolidate", st.just(0)),
    action("consolidate", EITHER),
    action("move", ANY, st.integers(0, 3)),
    action("filter", ANY, FILTERS),
    action("filter", ANY, FILTERS),
    action("filter_mode", NAMES, FILTERS),
    action("rename", NAMES, NAMES),
    action("delete", NAMES, EITHER),
    action("replay", ANY),
    action("kill", st.integers(0, 8)),
    action("kill", st.integers(0, 8)),
]
FORGETTING = [
    action("forget", ANY),
    action("forget", ANY),
    action("forget_derived", ANY),
    action("forget_derived", ANY),
    action("forget_turn", ANY),
    action("forget_conversation", EITHER, st.just(0)),
    action("forget_project", EITHER),
    action("forget_user"),
]
LIVES = st.lists(st.one_of(*SAYING, *CHANGING, *FORGETTING), min_size=FEWEST, max_size=MOST)

TOLD_AGAIN = [Action("repeat", (3, 0, 0))]
TOLD_AGAIN += [Action("forget_conversation", (number, 0)) for number in (1, 0)]
TOLD_AGAIN += [Action("kill", (5,)), Action("repeat", (5, 0, 0))]
"""Two conversations are forgotten, both changes are redelivered, and turns arrive in between."""

DISTILLED = [Action("repeat", (0, 0, 0)), Action("consolidate", (0,)), Action("forget_derived", (0,))]
"""A summary is forgotten, and its turns become current again."""

MERGED = [Action("say", (text, text, 0, 0)) for text in (5, 6)]
MERGED += [Action(*step) for step in (("consolidate", (0,)), ("forget_derived", (1,)), ("kill", (3,)))]
MERGED += [Action(*step) for step in (("say", (6, 7, 0, 0)), ("consolidate", (0,)), ("forget_turn", (0,)))]
"""Equal items merge, and one of them is forgotten."""


HIDDEN_AT_ONCE = [Action("kill", (1,)), Action("forget_project", (0,))]
HIDDEN_AT_ONCE += [*[Action("say", (0, 0, 0, 0))] * 4, Action("filter", (0, 0))]
"""A turn is hidden while its vector is being made."""


class InspectedPipeline(InMemoryPipeline):
    words: SqliteLexicalIndex

    def wire(self, words: SqliteLexicalIndex) -> tuple[Agents, WorkerContext]:
        self.words = words
        return super().wire(words)


async def perform_all(pipeline: InspectedPipeline, actions: Sequence[Action]) -> tuple[ActionRunner, list[str]]:
    runner, found = ActionRunner(pipeline), list[str]()
    async with pipeline.running():
        await runner.begin()
    for are_kills, some in groupby(actions, lambda each: each.name == "kill"):
        if are_kills:
            for action in some:
                pipeline.topics.forget_acknowledged(action.numbers[0], redelivered_topics(pipeline))
            continue
        async with pipeline.running():
            for action in some:
                await runner.perform(action)
            await pipeline.topics.settled()
            found += await find_faults(runner, pipeline, pipeline.words)
    return runner, found


async def changed_by_replay(pipeline: InspectedPipeline, runner: ActionRunner) -> list[str]:
    """Publish all turns again; return the differences and violations.

    Edited turns have their old texts meanwhile, which undoes their summaries; then only violations count.
    """
    before = records_of(runner)
    async with pipeline.running():
        await runner.replay_all()
        found = await find_faults(runner, pipeline, pipeline.words)
    edited = any(memory.version > 1 for memory in runner.memories())
    return found if edited else [*found, *differences(before, records_of(runner))]


def redelivered_topics(pipeline: InspectedPipeline) -> list[str]:
    """Return the topics that are redelivered after a kill: turns, events and changes, but not commands."""
    names = pipeline.names
    return [names.turns, names.remembered, names.embedded, names.consolidated, names.changes, names.learned]


def records_of(runner: ActionRunner) -> dict[str, dict[str, Any]]:
    """Return all records without embedding times and removed vectors' locations, with sorted item ids."""
    known = {memory.memory_id: memory.model_dump(exclude=_varying(memory)) for memory in runner.memories()}
    return {memory_id: memory | {"items": sorted(memory["items"])} for memory_id, memory in known.items()}


def _varying(memory: Memory) -> dict[str, set[str]]:
    """Return the fields that depend on when a vector was made, or on whether it was made before it was not wanted."""
    if memory.visibility.searchable:
        return {"embedding": {"embedded_at"}}
    # The interaction mode is classified from the vector.
    return {"embedding": {"embedded_at", "place"}, "reading": {"interaction"}}


def differences(first: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> list[str]:
    found = [f"{memory_id} is there once only" for memory_id in first.keys() ^ other.keys()]
    for memory_id in first.keys() & other.keys():
        was, now = first[memory_id], other[memory_id]
        found += [f"{was['text']!r}: {name} {was[name]} or {now[name]}" for name in was if was[name] != now[name]]
    return found


async def perform_twice(actions: Sequence[Action]) -> list[str]:
    """Perform the actions with and without kills; return violations and differences."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        runner, found = await perform_all(InspectedPipeline(Path(first)), actions)
        another = InspectedPipeline(Path(second))
        again, more = await perform_all(another, [action for action in actions if action.name != "kill"])
        found += [*more, *differences(records_of(runner), records_of(again))]
        return found + await changed_by_replay(another, again)


@example(TOLD_AGAIN)
@example(HIDDEN_AT_ONCE)
@example(DISTILLED)
@example(MERGED)
@given(LIVES)
@settings(max_examples=scaled(EXAMPLES), phases=(Phase.explicit, Phase.generate, Phase.shrink))
def test_derived_memories_keep_valid_evidence_after_any_actions(actions: list[Action]) -> None:
    assert asyncio.run(perform_twice(actions)) == []
