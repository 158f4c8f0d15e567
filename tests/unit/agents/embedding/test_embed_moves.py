"""After any actions, with events in any order, each memory has one vector in its mode's space, or none if forgotten."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.rules.items.extracting import ExtractedItem, extract_by_rules
from agents.rules.items.item_merging import filtered_mode
from agents.rules.memory.versions import derive_item_id
from agents.rules.memory.visibility import mode_visibility
from schemas.state.memories import Memory, VectorLocation, all_index_names
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.fakes.rejecting import BAD
from tests.harnesses.lifecycle.harness import EMBEDDERS, LifecycleHarness
from tests.harnesses.lifecycle.user import PARTITION
from tests.properties import scaled

NUMBERS = st.integers(0, 3)
TARGETS = ["The deploy target is fly.io now.", "The deploy target is AWS.", "the deploy target is Fly.io now"]
"""Texts with an item each; two contradict and two repeat each other."""

TEXTS = st.sampled_from(["heron", "otter", *TARGETS, *BAD])
NAMES = st.sampled_from(["a", "b", "general"])
PROJECTS = st.sampled_from(["p1", "p2"])
READERS = st.sampled_from(["turns", "commands", "changes", "understood", "embedded"])
LOSERS = st.sampled_from(["turns", "understood", "embedded", "changes"])
SELECTORS = st.sampled_from(["memory", "turn", "conversation", "project", "user"])
MEMORIES_FATE = st.sampled_from(["forget", "move:a", "move:b", "move:general"])


@dataclass(frozen=True)
class Action:
    """A method call of the harness, and its repetitions."""

    name: str
    arguments: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()
    times: int = 1

    def __repr__(self) -> str:
        words = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.named)]
        return f"{self.name}({', '.join(words)}) x {self.times}"

    def run_on(self, harness: LifecycleHarness) -> None:
        for _ in range(self.times):
            getattr(harness, self.name)(*self.arguments, **dict(self.named))


def action(what: str, *arguments: Any, times: Any = None, **named: Any) -> st.SearchStrategy[Action]:
    drawn = [argument if isinstance(argument, st.SearchStrategy) else st.just(argument) for argument in arguments]
    pairs = [
        st.tuples(st.just(name), values if isinstance(values, st.SearchStrategy) else st.just(values))
        for name, values in named.items()
    ]
    return st.builds(
        Action, st.just(what), st.tuples(*drawn), st.tuples(*pairs), st.just(1) if times is None else times
    )


USERS = st.one_of(
    action("say", NUMBERS, TEXTS),
    action("say", NUMBERS, TEXTS, NAMES),
    action("replay", st.integers(0, 5)),
    action("answer", NUMBERS, TEXTS, st.one_of(NAMES, st.none())),
    action("set_mode", NUMBERS, NAMES),
    action("set_visibility", NUMBERS, st.booleans(), st.booleans()),
    action("set_visibility", NUMBERS, st.booleans(), st.booleans()),
    action("forget", SELECTORS, NUMBERS),
    action("forget_item", NUMBERS),
    action("set_item_mode", NUMBERS, NAMES),
)
COMMANDS = st.one_of(
    action(
        "command",
        "declare_mode",
        PROJECTS,
        name=NAMES,
        embedder=st.sampled_from(EMBEDDERS),
        is_default=st.booleans(),
        for_project=st.booleans(),
    ),
    action("command", "declare_mode", PROJECTS, name=NAMES, embedder=st.sampled_from(EMBEDDERS)),
    action(
        "command",
        "declare_mode",
        PROJECTS,
        name=NAMES,
        embedder=st.sampled_from(EMBEDDERS),
        searchable=st.booleans(),
        private=st.booleans(),
    ),
    action("command", "declare_mode", PROJECTS, name=NAMES, embedder=st.sampled_from(EMBEDDERS), keep_former=False),
    action("command", "rename_mode", PROJECTS, name=NAMES, new_name=NAMES),
    action("command", "delete_mode", PROJECTS, name=NAMES, memories=MEMORIES_FATE),
    action("command", "set_default_mode", PROJECTS, name=NAMES, for_project=st.booleans()),
)
TIMES = st.integers(1, 4)
READ = st.one_of(action("read", READERS, times=TIMES), action("encode", times=TIMES), action("write", TIMES))
FLOW = action("flow", st.integers(1, 6))

AGAIN = st.one_of(action("redeliver", READERS, st.integers(1, 3)), action("redeliver", "remembered", st.integers(0, 3)))
KILLED = st.one_of(action("read", LOSERS, killed=True), action("write", TIMES, killed=True))
DOWN = st.one_of(
    st.builds(Action, st.sampled_from(["take_index_down", "bring_index_up"])),
    action("remove_model", st.sampled_from(EMBEDDERS)),
    action("load_model", st.sampled_from(EMBEDDERS)),
)
NOTHING = action("do_nothing")
ANY_ACTION = st.one_of(NOTHING, USERS, COMMANDS, READ, READ, FLOW, FLOW, AGAIN, KILLED, DOWN, action("reembed_waiting"))
"""Hypothesis shrinks towards the first one."""

ORDER = st.lists(st.integers(0, 7), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteLexicalIndex]:
    words = SqliteLexicalIndex(tmp_path_factory.mktemp("words"))
    yield words
    words.close()


def declare(embedder: str, *, name: str = "a", **options: Any) -> Action:
    return Action("command", ("declare_mode", "p1"), (("name", name), ("embedder", embedder), *options.items()))


def delete(name: str, memories: str) -> Action:
    return Action("command", ("delete_mode", "p1"), (("name", name), ("memories", memories)))


DECLARED = (declare("general"), Action("flow", (3,)))
KILLED_AS_IT_MOVED = [
    *DECLARED,
    Action("say", (0, "heron")),
    Action("flow", (4,)),
    Action("answer", (0, "heron", "a")),
    Action("read", ("understood",), (("killed", True),)),
]
READ_AGAIN_AS_ITS_VECTOR_IS_TAKEN = [
    *DECLARED,
    *(action for text in ("heron", "otter") for action in (Action("say", (0, text)), Action("flow", (4,)))),
    Action("answer", (0, "otter", "a")),
    Action("flow", (4,)),
    Action("redeliver", ("remembered", 3)),
    Action("encode"),
    Action("write", (1,), (("killed", True),)),
    Action("encode", times=3),
    Action("write", (3,)),
]


KILLED_AS_IT_FORGOT = [
    *(action for number in (0, 2, 1) for action in (Action("say", (number, "heron")), Action("flow", (4,)))),
    Action("forget", ("conversation", 0)),
    Action("read", ("commands",)),
    *(Action("read", ("changes",), (("killed", True),), times=times) for times in (1, 4)),
]


SAID = [
    *(declare("general"), Action("flow", (2,))),
    *(Action("say", (0, "heron", "a")), Action("say", (1, "otter", "a")), Action("flow", (5,))),
]
DECLARED_AGAIN_BEFORE_THE_RELEASE = [
    *(Action("say", (0, "heron")), Action("say", (1, "heron", "a")), Action("answer", (0, "heron", "a"))),
    *(declare("general"), declare("tiny48"), declare("tiny48", keep_former=False), declare("general")),
]
FOUND_IN_THE_INDEX_BEFORE_THE_RELEASE = [
    *SAID,
    *(declare("tiny48", keep_former=False), declare("general"), Action("flow", (8,))),
    declare("general", keep_former=False),
]
REPORTED_AFTER_THE_RELEASE = [
    *(*SAID, declare("general"), declare("tiny32"), Action("redeliver", ("remembered", 2)), Action("flow", (4,))),
    *(declare("tiny32", keep_former=False), Action("redeliver", ("remembered", 2)), Action("encode")),
    *(Action("read", ("changes",), (("killed", True),)), declare("tiny32")),
]
RELEASED_BEFORE_IT_WAS_FOUND = [
    *(*SAID, declare("tiny32"), Action("redeliver", ("remembered", 2)), Action("flow", (6,))),
    *(declare("tiny32"), Action("encode"), declare("general"), declare("general", keep_former=False)),
]


DECLARED_FOR_THE_USER_AND_A_PROJECT = [
    *(Action("say", (0, "heron")), Action("set_mode", (0, "a"))),
    *(declare("tiny48", name="general"), declare("tiny48", name="general", for_project=True)),
]
"""The command that is refused gives the vector the time to be made before the first declaration."""

DELETED_AGAIN_AFTER_ITS_TARGET = [
    *(declare("general", name="b", is_default=True), Action("flow", (1,)), Action("say", (0, "heron"))),
    *(declare("general"), declare("general", name="b", for_project=True)),
    *(delete("b", "move:a"), delete("a", "move:b"), delete("b", "move:a")),
]
FILTERED_BEFORE_ITS_TURN_WAS_READ_AGAIN = [
    *(Action("say", (0, "heron")), declare("general", name="general", searchable=False)),
    Action("read", ("turns",), (("killed", True),)),
]
SEARCHABLE_AGAIN_BEFORE_ITS_VECTOR_WAS_REMOVED = [
    *(Action("say", (0, "heron")), Action("say", (1, "heron")), Action("say", (1, "otter"))),
    *(Action("set_mode", (0, "a")), Action("forget", ("memory", 0)), declare("tiny48", name="general")),
    *(declare("tiny32", name="general", searchable=False), Action("set_mode", (0, "a"))),
    declare("tiny32", name="general", for_project=True),
]

MOVED_AGAIN_WITHOUT_ITS_MODEL = [
    *(Action("say", (2, "heron")), declare("general"), declare("general", name="b"), Action("flow", (5,))),
    *(Action("say", (0, "heron", "b")), Action("flow", (5,)), declare("tiny32", name="b"), Action("flow", (1,))),
    *(Action("remove_model", ("tiny32",)), Action("say", (2, "otter", "b")), Action("flow", (2,))),
    Action("say", (2, "heron", "a")),
]

FOUND_BEFORE = {
    "declared again before the release": (DECLARED_AGAIN_BEFORE_THE_RELEASE, [0]),
    "found in the index before the release": (FOUND_IN_THE_INDEX_BEFORE_THE_RELEASE, [4, 0]),
    "reported after the release": (REPORTED_AFTER_THE_RELEASE, [4, 5, 6, 3]),
    "released before it was found": (RELEASED_BEFORE_IT_WAS_FOUND, [7]),
    "killed as it forgot": (KILLED_AS_IT_FORGOT, [0]),
    "killed as it moved": (KILLED_AS_IT_MOVED, [0]),
    "read again as its vector is taken": (READ_AGAIN_AS_ITS_VECTOR_IS_TAKEN, [0]),
    "declared for the user and a project": (DECLARED_FOR_THE_USER_AND_A_PROJECT, [0]),
    "deleted again after its target": (DELETED_AGAIN_AFTER_ITS_TARGET, [0]),
    "filtered before its turn was read again": (FILTERED_BEFORE_ITS_TURN_WAS_READ_AGAIN, [1]),
    "moved again without its model": (MOVED_AGAIN_WITHOUT_ITS_MODEL, [0]),
    "searchable again before its vector was removed": (SEARCHABLE_AGAIN_BEFORE_ITS_VECTOR_WAS_REMOVED, [0]),
}
"""What the property below has found, with the order in which readers take turns, as short as it could be made."""


@pytest.mark.parametrize("name", FOUND_BEFORE)
def test_actions_that_were_found_leave_one_vector_per_memory(words: SqliteLexicalIndex, name: str) -> None:
    actions, order = FOUND_BEFORE[name]
    perform_and_check(words, actions, order)


@settings(max_examples=scaled(80))
@given(st.lists(ANY_ACTION, min_size=25, max_size=80), ORDER)
def test_any_actions_leave_one_vector_per_memory_in_its_space(
    words: SqliteLexicalIndex, actions: list[Action], order: list[int]
) -> None:
    perform_and_check(words, actions, order)


def perform_and_check(words: SqliteLexicalIndex, actions: Sequence[Action], order: Sequence[int]) -> None:
    """Perform actions, and publish all turns again; check what is left after each."""
    harness = LifecycleHarness(words)
    try:
        for action in actions:
            action.run_on(harness)
        harness.settle(order)
        check(harness)
        harness.replay_all()
        harness.settle(order)
        check(harness)
    finally:
        harness.close()


def check_items(harness: LifecycleHarness, memories: dict[str, Memory]) -> None:
    """Check that turns and items agree, no item is missing, and the last value of each claim is current."""
    claims: dict[tuple[str, str, str | None], list[tuple[Any, ...]]] = {}
    for turn in (memory for memory in memories.values() if memory.origin == "said"):
        found = [item for item in extract_by_rules(turn) if not is_forgotten(harness, turn, item)]
        assert {derive_item_id(turn.scope, filtered_mode(turn), item.type, item.text) for item in found} <= set(
            turn.items
        )
        assert all(turn.memory_id in sources(memories[item]) for item in turn.items)
    for item in (memory for memory in memories.values() if memory.item is not None):
        assert sources(item)
        assert all(item.memory_id in memories[source].items for source in sources(item))
        assert all(memories[source].visibility == item.own_visibility for source in sources(item))
        if not item.visibility.searchable:
            assert item.superseded_by is None
            continue
        claim = (item.scope["project_id"], item.mode, item.item.claim if item.item else None)
        claims.setdefault(claim, []).append((item.occurred_at, item.source, item.memory_id, item.superseded_by))
    for (_, _, name), items_of_claim in claims.items():
        after = [item[2] for item in sorted(items_of_claim)[1:]] if name else [None] * (len(items_of_claim) - 1)
        assert [item[3] for item in sorted(items_of_claim)] == [*after, None]


def is_forgotten(harness: LifecycleHarness, turn: Memory, found: ExtractedItem) -> bool:
    """True if an item was forgotten by itself, in any mode."""
    return harness.memories.is_forgotten(PARTITION, derive_item_id(turn.scope, "", found.type, found.text))


def sources(item: Memory) -> set[str]:
    return {quotation.memory_id for quotation in item.evidence if quotation.memory_id is not None}


def check(harness: LifecycleHarness) -> None:
    """Check that the records, the lexical index and the vector index agree."""
    points = harness.stored_points()
    memories = {memory.memory_id: memory for memory in harness.memories.all()}
    assert not any(harness.memories.is_forgotten(PARTITION, memory) for memory in memories), (
        "a forgotten memory came back"
    )
    assert set(points) <= set(memories), "a forgotten memory has a vector"
    for index_name in all_index_names("u1"):
        ids = {memory.memory_id for memory in memories.values() if memory.index_name == index_name}
        assert set(harness.words.memory_columns(PARTITION, index_name).number_of) == ids
    check_items(harness, memories)
    for memory_id, memory in memories.items():
        found = points.get(memory_id, {})
        declared = harness.stores.modes.get(memory.boundary)
        assert memory.visibility == memory.own_visibility.limited_by(mode_visibility(memory, declared))
        if not memory.visibility.searchable:
            assert memory.embedding.status == "not_applicable"
            assert found == {}
            continue
        if memory.text in BAD:
            assert memory.embedding.status == "failed"
            assert found == {}
            continue
        place, vector = harness.expected_vector(memory)
        held = {VectorLocation(mode=memory.mode, space=space) for space in memory.embedding.held}
        assert set(found) == {place} | held, "a vector that no record has, or none where a record has one"
        assert {memory.content_hash for memory in found.values()} == {memory.content_hash}
        assert {location.mode for location in found.values()} == {memory.mode}
        assert not held or harness.spaces.has_former(memory)
        assert np.allclose(found[place].vector, vector)
        assert memory.embedding.status == "ready"
        assert memory.embedding.place == place
        assert memory.embedding.error is None
        assert memory.embedding.content_hash == memory.content_hash


def test_restored_text_is_never_ready_with_the_vector_of_another(words: SqliteLexicalIndex) -> None:
    """Texts A, B and A again: the vector of B is in the index when the first vector of A is reported."""
    harness = LifecycleHarness(words)
    try:
        for text in ("heron", "otter", "heron"):
            harness.say(0, text)
            harness.read("turns")
        for _ in range(2):
            harness.encode()
            harness.write(1)
        for _ in range(4):
            harness.read("embedded")
            check_ready(harness)
            harness.encode()
            harness.write(1)
            check_ready(harness)
        harness.settle([0])
        check(harness)
    finally:
        harness.close()


def check_ready(harness: LifecycleHarness) -> None:
    points = harness.stored_points()
    for memory in harness.memories.all():
        if memory.embedding.status == "ready":
            assert memory.embedding.place is not None
            assert points[memory.memory_id][memory.embedding.place].content_hash == memory.content_hash
