"""Whatever happens to memories: what is derived rests on what is there, every chain ends, and all counts agree.

The same again on an empty system gives the same records, also where the first was killed now and then; and the turns
published once more change nothing.
"""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.worker_context import WorkerContext
from streams.topology import Agents
from tests.worlds.happenings import SAID, Diary, Happening
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.provenance import wrong

EXAMPLES = 12
FEWEST, MOST = 6, 14
"""Happenings of one example."""

EITHER = st.integers(0, 1)
TURNS = st.integers(0, 5)
FIRST = st.integers(0, 3)
ANY = st.integers(0, 60)
NAMES = st.integers(0, 2)


def happening(what: str, *numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Happening]:
    return st.builds(Happening, st.just(what), st.tuples(*numbers))


SAYING = [
    happening("say", st.integers(0, len(SAID) - 1), TURNS, EITHER, EITHER),
    happening("say", st.integers(0, len(SAID) - 1), TURNS, st.just(0), st.just(0)),
    happening("say", st.integers(0, len(SAID) - 1), TURNS, st.just(0), st.just(0)),
    happening("repeat", FIRST, EITHER, st.just(0)),
    happening("repeat", FIRST, EITHER, st.just(0)),
    happening("show", TURNS, EITHER, st.just(0)),
]
CHANGING = [
    happening("consolidate", st.just(0)),
    happening("consolidate", EITHER),
    happening("move", ANY, st.integers(0, 3)),
    happening("rename", NAMES, NAMES),
    happening("delete", NAMES, EITHER),
    happening("replay", ANY),
    happening("kill", st.integers(0, 8)),
    happening("kill", st.integers(0, 8)),
]
FORGETTING = [
    happening("forget", ANY),
    happening("forget", ANY),
    happening("forget_derived", ANY),
    happening("forget_derived", ANY),
    happening("forget_turn", ANY),
    happening("forget_conversation", EITHER, st.just(0)),
    happening("forget_project", EITHER),
    happening("forget_user"),
]
LIVES = st.lists(st.one_of(*SAYING, *CHANGING, *FORGETTING), min_size=FEWEST, max_size=MOST)

TOLD_AGAIN = [Happening("repeat", (3, 0, 0))]
TOLD_AGAIN += [Happening("forget_conversation", (one, 0)) for one in (1, 0)]
TOLD_AGAIN += [Happening("kill", (5,)), Happening("repeat", (5, 0, 0))]
"""Two conversations are forgotten, both changes are delivered again, and more is said meanwhile."""

DISTILLED = [Happening("repeat", (0, 0, 0)), Happening("consolidate", (0,)), Happening("forget_derived", (0,))]
"""What stands for turns is forgotten, and they are served again."""

MERGED = [Happening("say", (text, text, 0, 0)) for text in (5, 6)]
MERGED += [Happening(*one) for one in (("consolidate", (0,)), ("forget_derived", (1,)), ("kill", (3,)))]
MERGED += [Happening(*one) for one in (("say", (6, 7, 0, 0)), ("consolidate", (0,)), ("forget_turn", (0,)))]
"""Items that say the same become one, and one of them is forgotten."""


class SeenMap(InMemoryPipeline):
    """A map whose words can be looked at."""

    words: SqliteLexicalIndex

    def wired(self, words: SqliteLexicalIndex) -> tuple[Agents, WorkerContext]:
        self.words = words
        return super().wired(words)


async def lived(pipeline: SeenMap, happenings: Sequence[Happening]) -> tuple[Diary, list[str]]:
    """Let it all happen to an empty system; what was wrong before each kill and in the end."""
    diary, found = Diary(pipeline), list[str]()
    async with pipeline.running():
        await diary.begin()
    for are_kills, some in groupby(happenings, lambda one: one.what == "kill"):
        if are_kills:
            for one in some:
                pipeline.topics.forget_acknowledged(one.numbers[0], kept_by(pipeline))
            continue
        async with pipeline.running():
            for one in some:
                await diary.happen(one)
            await pipeline.topics.settled()
            found += await wrong(diary, pipeline, pipeline.words)
    return diary, found


async def changed_by_replay(pipeline: SeenMap, diary: Diary) -> list[str]:
    """What another delivery of all turns changes, and what is wrong afterwards.

    A turn that was edited says its old texts again on the way: what was distilled from it is taken back then.
    """
    before = records_of(diary)
    async with pipeline.running():
        await diary.replay_all()
        found = await wrong(diary, pipeline, pipeline.words)
    edited = any(one.version > 1 for one in diary.memories())
    return found if edited else [*found, *differences(before, records_of(diary))]


def kept_by(pipeline: SeenMap) -> list[str]:
    """The topics of turns and events. A command that comes again is not one that comes later, but its change is."""
    names = pipeline.names
    return [names.turns, names.remembered, names.embedded, names.consolidated, names.changes, names.learned]


def records_of(diary: Diary) -> dict[str, dict[str, Any]]:
    """All records, but for when their vectors were made, and the order in which a turn names its items."""
    known = {one.memory_id: one.model_dump(exclude={"embedding": {"embedded_at"}}) for one in diary.memories()}
    return {memory_id: one | {"items": sorted(one["items"])} for memory_id, one in known.items()}


def differences(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> list[str]:
    """Where records differ."""
    found = [f"{memory_id} is there once only" for memory_id in one.keys() ^ other.keys()]
    for memory_id in one.keys() & other.keys():
        was, now = one[memory_id], other[memory_id]
        found += [f"{was['text']!r}: {name} {was[name]} or {now[name]}" for name in was if was[name] != now[name]]
    return found


async def lived_twice(happenings: Sequence[Happening]) -> list[str]:
    """What is wrong with it, and what is other where nothing was killed."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        diary, found = await lived(SeenMap(Path(first)), happenings)
        another = SeenMap(Path(second))
        again, more = await lived(another, [one for one in happenings if one.what != "kill"])
        found += [*more, *differences(records_of(diary), records_of(again))]
        return found + await changed_by_replay(another, again)


@example(TOLD_AGAIN)
@example(DISTILLED)
@example(MERGED)
@given(LIVES)
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_whatever_happens_what_is_derived_rests_on_what_is_there(happenings: list[Happening]) -> None:
    assert asyncio.run(lived_twice(happenings)) == []
