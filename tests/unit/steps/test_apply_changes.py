"""`ApplyChanges`: a change is applied once, answered after its events, and resumed after a kill."""

import asyncio

import pytest

from agents.rules.memory.versions import identify_turn
from schemas.failures import Unavailable
from schemas.internal.changes import Change
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from streams.flow.steps import apply_changes as changing
from streams.wire.archived_turns import FORGOTTEN_TEXT, original_turn
from tests.builders.turns import record, turn_fields
from tests.fakes.turns_log import FakeTurnsLog
from tests.harnesses.remember_steps import FORGET, MOVE, REPLY, RememberSteps
from tests.harnesses.worker import HERE, TOPICS, change, event_record, run_step

pytestmark = pytest.mark.usefixtures("short_backoff")


async def test_change_is_answered_with_counts_after_its_events(worker: RememberSteps) -> None:
    for offset in range(3):
        worker.say(f"turn {offset}", offset, mode="code")
    worker.say("elsewhere", 3)
    assert await worker.apply(MOVE) == {"name": "code", "moved": 3, "forgotten": 0}
    assert worker.texts("journal") == ["turn 0", "turn 1", "turn 2"]
    assert [memory.mode for memory in worker.remembered_memories()] == ["journal"] * 3
    assert worker.changed == [(MOVE, HERE)]


async def test_change_is_not_answered_before_its_events_are_written(worker: RememberSteps) -> None:
    worker.say("turn", 0, mode="code")
    worker.publisher.hold()
    making = asyncio.create_task(worker.apply(MOVE))
    for _ in range(50):
        await asyncio.sleep(0)
    assert worker.publisher.replies == []
    assert not making.done()
    worker.publisher.release()
    assert (await making)["moved"] == 1


async def test_forgotten_memories_leave_records_index_and_vectors(worker: RememberSteps) -> None:
    forgotten = await worker.say_embedded("violin", 0, mode="code")
    assert await worker.apply(FORGET) == {"name": "code", "moved": 0, "forgotten": 1}
    assert worker.memories.get(HERE, forgotten.memory_id) is None
    assert worker.memories.is_forgotten(HERE, forgotten.memory_id)
    assert worker.count_postings("violin") == 0
    assert [(event.memory_id, event.places) for event in worker.forgotten_events()] == [
        (forgotten.memory_id, (forgotten.embedding.place,))
    ]


async def test_set_memory_mode_is_answered_with_the_memory(worker: RememberSteps) -> None:
    memory, other = worker.say("violin", 0, mode="code"), worker.say("cello", 1, mode="code")
    shown = await worker.apply(change("move", memory_id=memory.memory_id, to="journal"))
    assert shown["memory_id"] == memory.memory_id
    assert shown["mode"] == "journal"
    assert shown["mode_source"] == "caller"
    assert worker.stored(other).mode == "code"


async def test_user_mode_change_spares_excepted_projects(worker: RememberSteps) -> None:
    p2 = {"user_id": "u1", "project_id": "p2"}
    worker.say("here", 0, mode="code")
    worker.say("there", 1, mode="code", scope=p2)
    made = MOVE.model_copy(update={"except_projects": ("p2",)})
    assert (await worker.apply(made))["moved"] == 1
    assert worker.texts("journal") == ["here"]
    assert worker.texts("code") == ["there"]
    assert (await worker.apply(FORGET.model_copy(update={"project": "p1"}), 1))["forgotten"] == 0


@pytest.mark.parametrize("every", [2, 3, 7])
@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_disk_full_at_times_changes_each_memory_once(worker: RememberSteps, made: Change, every: int) -> None:
    for offset in range(120):
        worker.say(f"turn {offset}", offset, mode="code")
    worker.full.every = every
    answer = await worker.apply(made)
    worker.full.every = 0
    assert answer["moved"] + answer["forgotten"] == 120
    published = [memory.memory_id for memory in worker.remembered_memories()] + [
        event.memory_id for event in worker.forgotten_events()
    ]
    assert len(published) == len(set(published)) == 120
    assert worker.texts("code") == []
    assert worker.words.counts(HERE, "u1") == ({"journal": {"pending": 120}} if made is MOVE else {})


async def test_disk_that_stays_full_ends_the_run_and_nothing_is_answered(
    worker: RememberSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "STORAGE_TIMEOUT_S", 0.003)
    worker.say("turn", 0, mode="code")
    worker.full.every = 1
    with pytest.raises(Unavailable):
        await run_step(worker.changes, event_record(MOVE, TOPICS.changes, headers=REPLY))
    assert worker.publisher.replies == []


async def test_large_change_yields_to_other_records(worker: RememberSteps) -> None:
    for offset in range(200):
        worker.say(f"turn {offset}", offset, mode="code")
    done_by_others: list[int] = []

    async def beside() -> None:
        while len(worker.texts("journal")) < 200:
            done_by_others.append(len(worker.texts("journal")))
            await asyncio.sleep(0)

    other = asyncio.create_task(beside())
    await worker.apply(MOVE)
    await other
    assert {50, 100, 150} <= set(done_by_others)


async def test_turn_during_a_change_is_not_lost(worker: RememberSteps) -> None:
    for offset in range(100):
        worker.say(f"turn {offset}", offset, mode="code")
    making = asyncio.create_task(worker.apply(MOVE))
    await asyncio.sleep(0)
    late = record(turn_fields("late", turn_id="late", mode="general"), offset=100)
    await run_step(worker.turns, late)
    await making
    assert len(worker.texts("journal")) == 100
    assert worker.texts("general") == ["late"]


@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_change_spares_later_turns_that_a_killed_worker_had_stored(worker: RememberSteps, made: Change) -> None:
    for offset, text in enumerate(["before", "after"]):
        worker.say(text, offset, mode="code")
    worker.say("of a log that was here before", 7, mode="code")
    worker.follow(FakeTurnsLog(ends=2, given=1), applied=1)
    answer = await worker.apply(made.model_copy(update={"turns_before": 1}))
    assert answer["moved"] + answer["forgotten"] == 2
    assert worker.texts("code") == ["after"]


@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_change_spares_turns_that_are_stored_during_it(worker: RememberSteps, made: Change) -> None:
    for offset in range(100):
        worker.say(f"We decided to use box{offset} for the ledger.", offset, mode="code")
    worker.follow(FakeTurnsLog(ends=100, given=100), applied=100)
    changing_all = asyncio.create_task(worker.apply(made.model_copy(update={"turns_before": 100})))
    while not worker.publisher.sent:
        await asyncio.sleep(0)
    late = record(turn_fields("We decided to use PostgreSQL for the ledger.", turn_id="late", mode="code"), offset=100)
    await run_step(worker.turns, late)
    await changing_all
    assert worker.texts("code") == ["We decided to use PostgreSQL for the ledger."] * 2  # The turn and its item.


async def test_redelivered_change_is_only_answered(worker: RememberSteps) -> None:
    worker.say("turn", 0, mode="code")
    await worker.apply(MOVE, offset=4)
    worker.say("a new one in a mode of that name", 1, mode="code")
    worker.publisher.sent.clear()
    assert await worker.apply(MOVE, offset=4) == {"name": "code", "moved": 0, "forgotten": 0}
    assert worker.texts("code") == ["a new one in a mode of that name"]
    assert worker.publisher.sent == []


async def test_redelivered_move_is_answered_with_the_memory(worker: RememberSteps) -> None:
    memory = worker.say("violin", 0, mode="code")
    made = change("move", memory_id=memory.memory_id, to="journal")
    first = await worker.apply(made, offset=4)
    assert await worker.apply(made, offset=4) == first


async def test_change_of_another_scope_changes_nothing(worker: RememberSteps) -> None:
    memory = worker.say("violin", 0, mode="code")
    stranger = change("forget", memory_id=memory.memory_id, scope={"user_id": "u1", "project_id": "p2"}, result={})
    await worker.apply(stranger)
    assert worker.stored(memory).text == "violin"


@pytest.mark.parametrize("made", [MOVE, FORGET], ids=["move", "forget"])
async def test_answered_change_is_in_the_index_of_the_next_worker(worker: RememberSteps, made: Change) -> None:
    """It is redelivered there later than the first requests are answered."""
    await worker.say_embedded("violin", 0, mode="code")
    worker.words.commit(HERE)
    await (await worker.changes.begin(event_record(made, TOPICS.changes, headers=REPLY)))
    assert len(worker.publisher.replies) == 1
    worker.words.open(HERE)  # What was not committed is gone.
    assert worker.words.counts(HERE, "u1") == ({"journal": {"pending": 1}} if made is MOVE else {})


async def test_archive_keeps_the_identity_of_a_forgotten_turn_alone(worker: RememberSteps) -> None:
    forgotten = worker.say("violin", 3, mode="code", metadata={"note": "of the violin"})
    worker.say("cello", 4)
    await worker.apply(FORGET)
    [out] = worker.publisher.to(TOPICS.archive)
    assert out.key == forgotten.memory_id.encode()
    assert out.partition == HERE
    left = original_turn(Record(TOPICS.archive, HERE, 0, 0, out.key, out.value, out.headers), TOPICS.turns)
    assert left is not None
    turn = Turn.model_validate_json(left.value or b"")
    assert turn.content == FORGOTTEN_TEXT
    assert turn.metadata == {}
    assert identify_turn(turn, moment_of(left.timestamp_ms)).memory_id == forgotten.memory_id
    assert left.offset == forgotten.latest


async def test_change_that_forgets_nothing_leaves_the_archive_alone(worker: RememberSteps) -> None:
    worker.say("violin", 0, mode="code")
    await worker.apply(MOVE)
    assert worker.publisher.to(TOPICS.archive) == []
