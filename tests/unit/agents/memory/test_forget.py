"""`Forget`: what each selector covers, derived memories, and kills in the middle."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest
from modestream_client.hits import Evidence

from agents.memory.items import MemoryEvent
from agents.rules.index.lexical_document import LexicalDocument
from schemas.internal.changes import Change
from schemas.internal.events import Forgotten, Learned
from schemas.scopes import Scope
from schemas.state.memories import Memory, TextVersion
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import START, embedded_in, made
from tests.builders.stores import fake_stores, remember_over
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes

HERE = 0


class ForgetHarness:
    """Memories of `ana` in two conversations and two projects, and of `ben`."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.memories, self.words = FakeMemories(), words
        modes = FakeModes()
        self.agent = remember_over(fake_stores(words, self.memories, modes).at(HERE), FakeEmbedders())
        turns = [("a1", "a", "p1"), ("a2", "a", "p1"), ("b1", "b", "p1"), ("c1", "a", "p2")]
        for number, (name, conversation, project) in enumerate(turns):
            self.store(name, number, conversation_id=conversation, project=project)
        self.store("z1", 9, conversation_id="a", project="p1", user="ben")

    def store(self, text: str, number: int, **fields: Any) -> Memory:
        return self.write(made(text, number, **{"embedding": embedded_in("s1"), "project": "p1", **fields}))

    def write(self, memory: Memory) -> Memory:
        self.words.put(HERE, LexicalDocument(memory))
        self.memories.put(HERE, memory)
        return memory

    def distil(self, text: str, number: int, *sources: str, **fields: Any) -> Memory:
        turns = [memory for memory in self.memories.all() if memory.text in sources]
        evidence = tuple(
            Evidence(turn_id=turn.turn_id or "", memory_id=turn.memory_id, start=0, end=2) for turn in turns
        )
        nobody = {"turn_id": None, "conversation_id": None, "role": None, "type": "semantic", "origin": "distilled"}
        distilled = self.store(text, number, evidence=evidence, **(nobody | fields))
        for turn in turns:
            self.write(turn.model_copy(update={"superseded_by": distilled.memory_id, "superseded_in": "run"}))
        return distilled

    def forget(self, project: str = "p1", steps: int | None = None, /, **selector: Any) -> list[str]:
        """Forget, or only the first memories, and return their texts."""
        taken = self.steps(project, **selector)
        return [memory.text for memory, _ in (taken if steps is None else [next(taken) for _ in range(steps)])]

    def steps(self, project: str = "p1", /, **selector: Any) -> Iterator[tuple[Memory, Forgotten]]:
        change = Change(scope=Scope(user_id="ana", project_id=project), action="forget", **selector)
        # As it is read from its topic.
        for memory, events in self.agent.changed(Change.model_validate_json(change.model_dump_json(by_alias=True))):
            for event in forgettings(events):
                assert memory is not None
                yield memory, event

    def left(self) -> list[str]:
        """Return the texts of all memories, after checking the lexical index."""
        memories = list(self.memories.all())
        known = [self.words.memory_columns(HERE, boundary).number_of for boundary in ("ana", "ben")]
        assert {memory.memory_id for memory in memories} == set().union(*known)
        return sorted(memory.text for memory in memories)


def forgettings(events: Sequence[MemoryEvent]) -> list[Forgotten]:
    return [event for event in events if isinstance(event, Forgotten)]


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> ForgetHarness:
    return ForgetHarness(words)


def id_of(harness: ForgetHarness, text: str) -> str:
    return next(memory.memory_id for memory in harness.memories.all() if memory.text == text)


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        ({"conversation_id": "a"}, ["b1", "c1", "z1"]),
        ({"conversation_id": "x"}, ["a1", "a2", "b1", "c1", "z1"]),
        ({"whole": "project"}, ["c1", "z1"]),
        ({"whole": "user"}, ["z1"]),
    ],
)
def test_each_selector_forgets_exactly_its_memories(
    harness: ForgetHarness, selector: dict[str, Any], left: list[str]
) -> None:
    forgotten = harness.forget(**selector)
    assert harness.left() == left
    assert len(forgotten) == 5 - len(left)
    assert harness.forget(**selector) == []


@pytest.mark.parametrize(
    ("selector", "gone"),
    [
        ({"filters": {"speaker": "Ana"}}, ["s1", "s3"]),
        ({"filters": {"role": "tool", "metadata": {"source": "mail"}}}, ["s2"]),
        ({"filters": {"speaker": "Ana"}, "since": START + timedelta(minutes=12)}, ["s3"]),
        ({"filters": {"speaker": "Ana"}, "until": START + timedelta(minutes=12)}, ["s1"]),
        ({"filters": {"speaker": "Eve"}}, []),
    ],
)
def test_filters_forget_the_turns_that_match(harness: ForgetHarness, selector: dict[str, Any], gone: list[str]) -> None:
    harness.store("s1", 11, speaker="Ana")
    harness.store("s2", 12, role="tool", metadata={"source": "mail"})
    harness.store("s3", 13, speaker="Ana", superseded_by="somebody")
    harness.store("other project", 14, speaker="Ana", project="p2")
    harness.store("other user", 15, speaker="Ana", user="ben")
    before = harness.left()
    assert sorted(harness.forget(**selector)) == gone
    assert harness.left() == [text for text in before if text not in gone]
    assert harness.forget(**selector) == []


@pytest.mark.parametrize(
    "selector",
    [{"conversation_id": "a"}, {"whole": "user"}, {"filters": {"speaker": "Ana"}}, {"filters": {"role": "user"}}],
)
def test_a_preview_names_what_forgetting_removes_and_changes_nothing(
    harness: ForgetHarness, selector: dict[str, Any]
) -> None:
    for number, speaker in ((11, "Ana"), (12, "Ben")):
        harness.store(f"of {speaker}", number, speaker=speaker)
    harness.distil("of both", 20, "of Ana", "of Ben")
    harness.distil("of a", 21, "a1", "a2")
    before = harness.left()
    change = Change(scope=Scope(user_id="ana", project_id="p1"), action="preview", **selector)
    shown = sorted(memory.text for memory in harness.agent.preview(change) if memory is not None)
    assert harness.left() == before
    assert shown == sorted(harness.forget(**selector))


def test_memory_is_forgotten_only_from_its_own_scope(harness: ForgetHarness) -> None:
    memory_id = id_of(harness, "a1")
    assert harness.forget("p2", memory_id=memory_id) == []
    assert harness.forget(memory_id=memory_id) == ["a1"]
    assert harness.left() == ["a2", "b1", "c1", "z1"]


def test_each_leaves_a_mark_and_the_place_of_its_vector(harness: ForgetHarness) -> None:
    for memory, event in harness.steps(conversation_id="a"):
        assert harness.memories.is_forgotten(HERE, memory.memory_id)
        assert event == Forgotten(memory_id=memory.memory_id, places=(memory.embedding.place,))
        assert harness.memories.last_place(HERE, memory.memory_id) == memory.embedding.place


def test_superseded_turns_are_forgotten_too(harness: ForgetHarness) -> None:
    harness.store("a3", 20, conversation_id="a", superseded_by="somebody")
    assert "a3" in harness.forget(conversation_id="a")


def test_derived_memories_are_forgotten_before_their_turn(harness: ForgetHarness) -> None:
    harness.distil("of both", 20, "a1", "a2")
    harness.distil("of b", 22, "b1")
    assert harness.forget(memory_id=id_of(harness, "a1")) == ["of both", "a1"]
    assert harness.left() == ["a2", "b1", "c1", "of b", "z1"]


def test_summaries_of_summaries_are_forgotten_with_the_turn(harness: ForgetHarness) -> None:
    lower = harness.distil("of both", 20, "a1", "a2")
    upper = harness.store("above", 21, origin="distilled", type="semantic", evidence=lower.evidence)
    harness.write(lower.model_copy(update={"superseded_by": upper.memory_id}))
    assert set(harness.forget(memory_id=id_of(harness, "a1"))) == {"above", "of both", "a1"}
    assert harness.left() == ["a2", "b1", "c1", "z1"]


def test_memories_derived_during_a_forget_are_forgotten_too(harness: ForgetHarness) -> None:
    steps = harness.steps(conversation_id="a")
    next(steps)
    harness.distil("late", 20, "a2", "b1")
    assert [memory.text for memory, _ in steps] == ["late", "a2"]
    assert harness.left() == ["b1", "c1", "z1"]


def test_distilled_memory_can_be_forgotten_and_its_turns_stay(harness: ForgetHarness) -> None:
    distilled = harness.distil("of both", 20, "a1", "a2")
    assert harness.forget(memory_id=distilled.memory_id) == ["of both"]
    assert harness.left() == ["a1", "a2", "b1", "c1", "z1"]


@pytest.mark.parametrize("of", ["of all", "b1"])
def test_forgetting_a_summary_restores_its_turns_uncounted(harness: ForgetHarness, of: str) -> None:
    harness.distil("of all", 20, "a1", "a2", "b1")
    forgotten = harness.forget(memory_id=id_of(harness, of))
    assert forgotten == (["of all"] if of == "of all" else ["of all", "b1"])
    assert {(memory.superseded_by, memory.superseded_in) for memory in harness.memories.all()} == {(None, None)}
    assert not harness.words.memory_columns(HERE, "ana").columns.superseded.any()


def test_forget_killed_after_each_memory_completes_on_redelivery(harness: ForgetHarness) -> None:
    derived = harness.distil("of both", 20, "a1", "a2")
    doomed = {derived.memory_id, id_of(harness, "a1"), id_of(harness, "a2")}
    change = Change(scope=Scope(user_id="ana", project_id="p1"), action="forget", conversation_id="a")
    published: set[str] = set()
    for _ in doomed:
        made = (event for _, events in harness.agent.changed(change) for event in forgettings(events))
        published |= {event.memory_id for event in islice(made, 1)}
    assert published == doomed
    assert harness.left() == ["b1", "c1", "z1"]


def test_edited_and_distilled_turns_are_reported_to_derived_state(harness: ForgetHarness) -> None:
    now = next(memory for memory in harness.memories.all() if memory.text == "b1")
    before = TextVersion(text_hash="before", first_seen=now.occurred_at)
    harness.write(now.model_copy(update={"versions": (before, *now.versions), "current": 1}))
    derived = harness.distil("of both", 20, "a1", "a2")
    change = Change(scope=Scope(user_id="ana", project_id="p1"), action="forget", whole="project")
    events = [event for _, events in harness.agent.changed(change) for event in events]
    published = {event.memory_id for event in events if isinstance(event, Learned)}
    assert published == {now.memory_id, derived.memory_id}


def test_turns_after_the_forget_command_remain(harness: ForgetHarness) -> None:
    harness.store("later", 20, conversation_id="a")
    harness.store("of a log that was here before", 30, conversation_id="a")
    forgotten = harness.forget(whole="user", turns_before=10, turns_until=25)
    assert "of a log that was here before" in forgotten
    assert harness.left() == ["later", "z1"]
