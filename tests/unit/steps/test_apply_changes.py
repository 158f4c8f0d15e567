"""The keeper's topics: a change is made once, answered when all is told, and resumed where it was cut off."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.failures import Unavailable
from schemas.internal.changes import Change
from streams.flow.steps import apply_changes as changing
from streams.flow.support import backoff as patience
from tests.builders.turns import record, turn_fields
from tests.harnesses.remember import FORGET, MOVE, REPLY, RememberSteps
from tests.harnesses.worker import HERE, TOPICS, arriving, change, run


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RememberSteps]:
    home = RememberSteps(tmp_path)
    yield home
    home.words.close()


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "INITIAL_BACKOFF_S", 0.001)
    monkeypatch.setattr(patience, "MAX_BACKOFF_S", 0.001)


async def test_a_change_is_answered_with_how_many_it_changed_when_all_is_told(home: RememberSteps) -> None:
    for offset in range(3):
        home.tell(f"turn {offset}", offset, mode="code")
    home.tell("elsewhere", 3)
    assert await home.make(MOVE) == {"name": "code", "moved": 3, "forgotten": 0}
    assert home.texts("journal") == ["turn 0", "turn 1", "turn 2"]
    assert [memory.mode for memory in home.remembered()] == ["journal"] * 3
    assert home.changed == [(MOVE, HERE)]


async def test_a_change_is_not_answered_before_its_events_are_written(home: RememberSteps) -> None:
    home.tell("turn", 0, mode="code")
    home.publisher.hold()
    making = asyncio.create_task(home.make(MOVE))
    for _ in range(50):
        await asyncio.sleep(0)
    assert (home.publisher.replies, making.done()) == ([], False)
    home.publisher.release()
    assert (await making)["moved"] == 1


async def test_forgotten_memories_leave_records_index_and_vectors(home: RememberSteps) -> None:
    gone = await home.told("violin", 0, mode="code")
    assert await home.make(FORGET) == {"name": "code", "moved": 0, "forgotten": 1}
    assert home.memories.get(HERE, gone.memory_id) is None
    assert home.memories.is_forgotten(HERE, gone.memory_id)
    assert home.finds("violin") == 0
    assert [(one.memory_id, one.places) for one in home.forgotten()] == [(gone.memory_id, (gone.embedding.place,))]


async def test_one_memory_is_put_into_a_mode_and_the_answer_shows_it(home: RememberSteps) -> None:
    memory, other = home.tell("violin", 0, mode="code"), home.tell("cello", 1, mode="code")
    shown = await home.make(change("move", memory_id=memory.memory_id, to="journal"))
    assert (shown["memory_id"], shown["mode"], shown["mode_source"]) == (memory.memory_id, "journal", "caller")
    assert home.kept(other).mode == "code"


async def test_a_project_keeps_what_a_change_of_the_users_mode_leaves_out(home: RememberSteps) -> None:
    p2 = {"user_id": "u1", "project_id": "p2"}
    home.tell("here", 0, mode="code")
    home.tell("there", 1, mode="code", scope=p2)
    made = MOVE.model_copy(update={"except_projects": ("p2",)})
    assert (await home.make(made))["moved"] == 1
    assert (home.texts("journal"), home.texts("code")) == (["here"], ["there"])
    assert (await home.make(FORGET.model_copy(update={"project": "p1"}), 1))["forgotten"] == 0


@pytest.mark.parametrize("every", [2, 3, 7])
@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_disk_full_at_times_changes_each_memory_once(home: RememberSteps, made: Change, every: int) -> None:
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
    home: RememberSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "STORAGE_TIMEOUT_S", 0.003)
    home.tell("turn", 0, mode="code")
    home.full.every = 1
    with pytest.raises(Unavailable):
        await run(home.changes, arriving(MOVE, TOPICS.changes, headers=REPLY))
    assert home.publisher.replies == []


async def test_others_have_their_turn_while_a_large_change_is_made(home: RememberSteps) -> None:
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


async def test_a_turn_that_comes_during_a_change_is_not_lost(home: RememberSteps) -> None:
    for offset in range(100):
        home.tell(f"turn {offset}", offset, mode="code")
    making = asyncio.create_task(home.make(MOVE))
    await asyncio.sleep(0)
    late = record(turn_fields("late", turn_id="late", mode="general"), offset=100)
    await run(home.turns, late)
    await making
    assert (len(home.texts("journal")), home.texts("general")) == (100, ["late"])


async def test_a_change_that_was_made_and_comes_again_is_only_answered(home: RememberSteps) -> None:
    home.tell("turn", 0, mode="code")
    await home.make(MOVE, offset=4)
    home.tell("a new one in a mode of that name", 1, mode="code")
    home.publisher.sent.clear()
    assert await home.make(MOVE, offset=4) == {"name": "code", "moved": 0, "forgotten": 0}
    assert home.texts("code") == ["a new one in a mode of that name"]
    assert home.publisher.sent == []


async def test_a_memory_that_was_moved_and_comes_again_is_shown_again(home: RememberSteps) -> None:
    memory = home.tell("violin", 0, mode="code")
    made = change("move", memory_id=memory.memory_id, to="journal")
    first = await home.make(made, offset=4)
    assert await home.make(made, offset=4) == first


async def test_a_change_of_another_user_is_none_of_ours(home: RememberSteps) -> None:
    memory = home.tell("violin", 0, mode="code")
    stranger = change("forget", memory_id=memory.memory_id, scope={"user_id": "u1", "project_id": "p2"}, result={})
    await home.make(stranger)
    assert home.kept(memory).text == "violin"


@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_change_cut_off_before_its_events_sends_them_on_redelivery(home: RememberSteps, made: Change) -> None:
    memory = await home.told("violin", 0, mode="code")
    home.words.commit(HERE)
    assert sum(memory is not None for memory, _ in home.remember.changed(made)) == 1
    home.words.open(HERE)
    answer = await home.make(made)
    assert answer["moved"] + answer["forgotten"] == 1
    assert home.words.counts(HERE, "u1") == ({"journal": {"pending": 1}} if made is MOVE else {})
    told = {one.memory_id: one.embedding.place for one in home.remembered()}
    told |= {one.memory_id: one.places[0] for one in home.forgotten()}
    assert told == {memory.memory_id: memory.embedding.place}
