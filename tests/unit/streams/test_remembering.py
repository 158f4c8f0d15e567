"""The keeper's topics: what commands change is done once, answered when it is done, resumed where it was cut off."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.remember import Remember
from schemas.changes import Change
from schemas.events import Understood
from schemas.failures import Unavailable
from schemas.interaction import Interaction
from schemas.memories import Memory
from schemas.turns import Turn
from schemas.understanding import Understanding
from streams.adapters.words.sqlite_words import SqliteWords
from streams.flow import changing, patience
from streams.flow.changing import RememberChanges
from streams.flow.remembering import RememberEvents, RememberTurns
from streams.flow.requests import Channel
from tests.made_turns import record, turn_fields
from tests.one_worker import HERE, TOPICS, OneWorker, arriving, change, run

REPLY = (("reply_to", b"memory.replies"), ("correlation_id", b"1"))


class FullAtTimes(SqliteWords):
    """A word index on a disk that is full at every `every`th write."""

    every = 0
    writes = 0

    def put(self, partition: int, memory: Memory) -> None:
        """Write, if there is room."""
        self._room()
        super().put(partition, memory)

    def remove(self, partition: int, memory_id: str) -> None:
        """Remove, if there is room for that."""
        self._room()
        super().remove(partition, memory_id)

    def _room(self) -> None:
        self.writes += 1
        if self.every and self.writes % self.every == 0:
            raise Unavailable("the disk is full")


class Home(OneWorker):
    """A worker's keeper on its topics."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "first")
        self.words.close()
        self.words = self.full = FullAtTimes(directory)
        self.words.open(HERE)
        object.__setattr__(self.around, "words", self.words)
        self.remember = Remember(self.memories, self.words, self.modes, self.spaces, self.claims, asks_model=True)
        self.changed: list[tuple[Change, int]] = []
        self.declare("code", "tiny32")
        self.declare("journal", "tiny48")
        turns = Channel(TOPICS.turns, {"turn.v1": Turn}, "write", keeps_rejected=True, outlives_deadline=True)
        changes = Channel(TOPICS.changes, {"change.v1": Change}, None, keeps_rejected=True, outlives_deadline=True)
        self.turns = RememberTurns(turns, self.remember, self.around)
        self.events = RememberEvents(self.remember, self.around)
        told = lambda change, partition: self.changed.append((change, partition))  # noqa: E731
        self.changes = RememberChanges(changes, self.remember, told, self.around)

    async def make(self, made: Change, offset: int = 0) -> Any:
        """Have a change made; returns its answer."""
        self.publisher.replies.clear()
        await run(self.changes, arriving(made, TOPICS.changes, offset, headers=REPLY))
        [reply] = self.publisher.replies
        answer = json.loads(reply.value or b"")
        return answer.get("result", answer.get("error"))

    def texts(self, mode: str) -> list[str]:
        """What is in a mode, by the records."""
        return sorted(memory.text for memory in self.memories.all() if memory.mode == mode)

    def usage(self, name: str, **labels: str) -> float:
        """How often something was counted."""
        return self.meters.registry.get_sample_value(f"modestream_{name}_total", labels) or 0


MOVE = change("move", mode="code", to="journal", result={"name": "code", "moved": 0, "forgotten": 0})
FORGET = change("forget", mode="code", result={"name": "code", "moved": 0, "forgotten": 0})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.words.close()


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(patience, "LONGEST_SECONDS", 0.001)


async def test_a_change_is_answered_with_how_many_it_changed_when_all_is_told(home: Home) -> None:
    for offset in range(3):
        home.tell(f"turn {offset}", offset, mode="code")
    home.tell("elsewhere", 3)
    assert await home.make(MOVE) == {"name": "code", "moved": 3, "forgotten": 0}
    assert home.texts("journal") == ["turn 0", "turn 1", "turn 2"]
    assert [memory.mode for memory in home.remembered()] == ["journal"] * 3
    assert home.changed == [(MOVE, HERE)]


async def test_a_change_is_not_answered_before_its_events_are_written(home: Home) -> None:
    home.tell("turn", 0, mode="code")
    home.publisher.hold()
    making = asyncio.create_task(home.make(MOVE))
    for _ in range(50):
        await asyncio.sleep(0)
    assert (home.publisher.replies, making.done()) == ([], False)
    home.publisher.release()
    assert (await making)["moved"] == 1


async def test_forgotten_memories_leave_the_records_the_words_and_with_their_places_the_vectors(home: Home) -> None:
    gone = await home.told("violin", 0, mode="code")
    assert await home.make(FORGET) == {"name": "code", "moved": 0, "forgotten": 1}
    assert home.memories.get(HERE, gone.memory_id) is None
    assert home.memories.is_forgotten(HERE, gone.memory_id)
    assert home.finds("violin") == 0
    assert [(one.memory_id, one.places) for one in home.forgotten()] == [(gone.memory_id, (gone.embedding.place,))]


async def test_one_memory_is_put_into_a_mode_and_the_answer_shows_it(home: Home) -> None:
    memory, other = home.tell("violin", 0, mode="code"), home.tell("cello", 1, mode="code")
    shown = await home.make(change("move", memory_id=memory.memory_id, to="journal"))
    assert (shown["memory_id"], shown["mode"], shown["mode_source"]) == (memory.memory_id, "journal", "caller")
    assert home.kept(other).mode == "code"


async def test_a_project_keeps_what_a_change_of_the_users_mode_leaves_out(home: Home) -> None:
    p2 = {"user_id": "u1", "project_id": "p2"}
    home.tell("here", 0, mode="code")
    home.tell("there", 1, mode="code", scope=p2)
    made = MOVE.model_copy(update={"except_projects": ("p2",)})
    assert (await home.make(made))["moved"] == 1
    assert (home.texts("journal"), home.texts("code")) == (["here"], ["there"])
    assert (await home.make(FORGET.model_copy(update={"project": "p1"}), 1))["forgotten"] == 0


@pytest.mark.parametrize("every", [2, 3, 7])
@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_a_disk_that_is_full_in_between_is_waited_for_and_each_memory_is_changed_once(
    home: Home, made: Change, every: int
) -> None:
    for offset in range(120):
        home.tell(f"turn {offset}", offset, mode="code")
    home.full.every = every
    answer = await home.make(made)
    home.full.every = 0
    assert answer["moved"] + answer["forgotten"] == 120
    told = [memory.memory_id for memory in home.remembered()] + [one.memory_id for one in home.forgotten()]
    assert len(told) == len(set(told)) == 120
    assert home.texts("code") == []
    assert home.words.counts(HERE, "u1") == ({"journal": {"pending": 120}} if made is MOVE else {})


async def test_a_disk_that_stays_full_ends_the_run_and_nothing_is_answered(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "STORAGE_S", 0.003)
    home.tell("turn", 0, mode="code")
    home.full.every = 1
    with pytest.raises(Unavailable):
        await run(home.changes, arriving(MOVE, TOPICS.changes, headers=REPLY))
    assert home.publisher.replies == []


async def test_others_have_their_turn_while_a_large_change_is_made(home: Home) -> None:
    for offset in range(200):
        home.tell(f"turn {offset}", offset, mode="code")
    done_by_others: list[int] = []

    async def beside() -> None:
        while len(home.texts("journal")) < 200:
            done_by_others.append(len(home.texts("journal")))
            await asyncio.sleep(0)

    other = asyncio.create_task(beside())
    await home.make(MOVE)
    await other
    assert {50, 100, 150} <= set(done_by_others)


async def test_a_turn_that_comes_during_a_change_is_not_lost(home: Home) -> None:
    for offset in range(100):
        home.tell(f"turn {offset}", offset, mode="code")
    making = asyncio.create_task(home.make(MOVE))
    await asyncio.sleep(0)
    late = record(turn_fields("late", turn_id="late", mode="general"), offset=100)
    await run(home.turns, late)
    await making
    assert (len(home.texts("journal")), home.texts("general")) == (100, ["late"])


async def test_a_change_that_was_made_and_comes_again_is_only_answered(home: Home) -> None:
    home.tell("turn", 0, mode="code")
    await home.make(MOVE, offset=4)
    home.tell("a new one in a mode of that name", 1, mode="code")
    home.publisher.sent.clear()
    assert await home.make(MOVE, offset=4) == {"name": "code", "moved": 0, "forgotten": 0}
    assert home.texts("code") == ["a new one in a mode of that name"]
    assert home.publisher.sent == []


async def test_a_memory_that_was_moved_and_comes_again_is_shown_again(home: Home) -> None:
    memory = home.tell("violin", 0, mode="code")
    made = change("move", memory_id=memory.memory_id, to="journal")
    first = await home.make(made, offset=4)
    assert await home.make(made, offset=4) == first


async def test_a_change_of_another_user_is_none_of_ours(home: Home) -> None:
    memory = home.tell("violin", 0, mode="code")
    stranger = change("forget", memory_id=memory.memory_id, scope={"user_id": "u1", "project_id": "p2"}, result={})
    await home.make(stranger)
    assert home.kept(memory).text == "violin"


async def test_a_turn_that_was_forgotten_is_answered_with_a_warning_and_nothing_is_stored(home: Home) -> None:
    home.tell("violin", 0, mode="code")
    await home.make(FORGET)
    home.publisher.sent.clear()
    home.publisher.replies.clear()
    for offset, text in enumerate(["violin", "edited"], 1):
        again = turn_fields(text, turn_id="violin", mode="code")
        await run(home.turns, record(again, offset=offset, headers=REPLY))
    answers = [json.loads(reply.value or b"") for reply in home.publisher.replies]
    assert [(one["status"], one["warnings"][0]["code"]) for one in answers] == [("ok", "forgotten")] * 2
    assert (list(home.memories.all()), home.publisher.sent, home.finds("violin")) == ([], [], 0)


async def test_who_decided_a_mode_is_counted_once_for_each_new_text(home: Home) -> None:
    said = turn_fields("violin", turn_id="t", mode="code")
    for offset in range(2):
        await run(home.turns, record(said, offset=offset))
    await run(home.turns, record(turn_fields("cello", turn_id="u"), offset=2))
    assert home.usage("modes_decided", source="caller") == 1
    assert home.usage("modes_decided", source="fallback") == 1


def understood(memory: Memory, mode: str | None) -> Understood:
    """What a model said of a memory's text."""
    return Understood(
        memory_id=memory.memory_id,
        text_hash=memory.reading.text_hash,
        interaction=Interaction(mode="TASK", confidence=0.9),
        found=Understanding(mode=mode),
        profile="default",
        prompt="understand-1",
        at=memory.occurred_at,
    )


async def test_what_a_model_says_moves_a_memory_and_is_counted_against_the_default(home: Home) -> None:
    moved, agreed, silent = (home.tell(text, offset) for offset, text in enumerate(["violin", "cello", "drum"]))
    said = [understood(moved, "code"), understood(agreed, "general"), understood(silent, None)]
    await run(home.events, *(arriving(event, TOPICS.understood, offset) for offset, event in enumerate(said)))
    assert [home.kept(one).mode for one in (moved, agreed, silent)] == ["code", "general", "general"]
    assert [memory.mode for memory in home.remembered()] == ["code"]
    assert home.publisher.to(TOPICS.remembered)[0].key == b"u1"
    assert home.usage("model_modes", agrees="false") == 1
    assert home.usage("model_modes", agrees="true") == 1
    assert home.words.applied(HERE)[TOPICS.understood] == 3


async def test_an_event_that_cannot_be_read_is_a_dead_letter_and_passed_over(home: Home) -> None:
    memory = home.tell("violin", 0)
    bad = record(b"nonsense", topic=TOPICS.understood, offset=0)
    await run(home.events, bad, arriving(understood(memory, "code"), TOPICS.understood, 1))
    assert home.kept(memory).mode == "code"
    assert [out.value for out in home.publisher.to(TOPICS.dead_letters)] == [b"nonsense"]


async def test_nothing_is_settled_before_the_word_index_is_safe(home: Home, tmp_path: Path) -> None:
    await run(home.turns, record(turn_fields("violin", turn_id="t"), offset=0))
    await (await home.changes.begin(arriving(MOVE, TOPICS.changes, 7)))
    again = SqliteWords(tmp_path)
    again.open(HERE)
    assert again.applied(HERE) == {TOPICS.turns: 1}, "what was settled, and nothing that was only begun"
    assert again.roster(HERE, "u1").documents == 1
    again.close()


async def test_the_word_index_is_not_committed_while_a_change_is_not_told(home: Home, tmp_path: Path) -> None:
    home.tell("violin", 0, mode="code")
    home.words.commit(HERE)
    home.publisher.hold()
    making = asyncio.create_task(home.make(MOVE))
    await asyncio.sleep(0)
    settling = asyncio.create_task(home.turns.settle([HERE]))
    for _ in range(50):
        await asyncio.sleep(0)
    assert (home.texts("journal"), modes_on_disk(tmp_path)) == (["violin"], {"code"})
    home.publisher.release()
    await asyncio.gather(making, settling)
    assert modes_on_disk(tmp_path) == {"journal"}


def modes_on_disk(directory: Path) -> set[str]:
    """The modes that a worker finds which is started now."""
    words = SqliteWords(directory)
    words.open(HERE)
    modes = set(words.counts(HERE, "u1"))
    words.close()
    return modes


@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_a_change_that_was_cut_off_before_it_was_told_is_told_when_it_comes_again(
    home: Home, made: Change
) -> None:
    memory = await home.told("violin", 0, mode="code")
    home.words.commit(HERE)
    assert sum(memory is not None for memory, _ in home.remember.changed(made, HERE)) == 1
    home.words.open(HERE)
    answer = await home.make(made)
    assert answer["moved"] + answer["forgotten"] == 1
    assert home.words.counts(HERE, "u1") == ({"journal": {"pending": 1}} if made is MOVE else {})
    told = {one.memory_id: one.embedding.place for one in home.remembered()}
    told |= {one.memory_id: one.places[0] for one in home.forgotten()}
    assert told == {memory.memory_id: memory.embedding.place}
