"""Old turns move from the log to the archive, and nothing is lost whenever the process is killed."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import count
from random import Random

import pytest

from agents.rules.memory.versions import identify_turn
from schemas.messages.records import Outgoing, Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from streams.wire.archived_turns import FORGOTTEN_TEXT, POSITION_KEY, original_turn
from streams.wire.dead_letters import FILLER_VALUE, filler
from streams.wire.partitioning import partition_of
from tests.builders.turns import PARTITIONS
from tests.fakes.archived_topics import ARCHIVE, TURNS
from tests.fakes.copied_logs import Killed
from tests.harnesses.archiving import ALL, ArchivingHarness, said

USERS = ("ana", "ben", "cleo", "dora")
SECRET = "zebrafinch"


def memory_id(record: Record) -> str:
    turn = Turn.model_validate_json(record.value or b"")
    return identify_turn(turn, moment_of(record.timestamp_ms)).memory_id


def conversation(harness: ArchivingHarness, turns: int = 7, users: Sequence[str] = USERS) -> list[Record]:
    """Say some turns of each user, of which one is edited and one repeated; return the current record of each."""
    current: dict[str, Record] = {}
    for number in range(turns):
        for user in users:
            record = harness.say(user, f"t{number}", f"turn {number} of {user}")
            current[memory_id(record)] = record
    for user in users:
        harness.say(user, "t1", f"turn 1 of {user}", is_stored=False)
        edited = harness.say(user, "t2", f"another text of {user}", occurred_at="2026-03-01T09:30:00Z")
        current[memory_id(edited)] = edited
    return list(current.values())


def archived(harness: ArchivingHarness) -> dict[bytes, Record]:
    """Return what compaction would leave of the archive."""
    found: dict[bytes, Record] = {}
    for partition in range(PARTITIONS):
        for record in harness.topics.topics[ARCHIVE, partition]:
            found.pop(record.key or b"", None)
            if (original := original_turn(record, TURNS)) is not None:
                found[record.key or b""] = original
    return found


def logged(harness: ArchivingHarness) -> list[Record]:
    return [record for partition in range(PARTITIONS) for record in harness.topics.topics[TURNS, partition]]


async def test_old_turns_move_to_the_archive_as_they_were() -> None:
    harness = ArchivingHarness()
    current = conversation(harness)
    await harness.archive()
    assert logged(harness) == []
    assert sorted(map(said, archived(harness).values())) == sorted(map(said, current))
    assert archived(harness).keys() == {memory_id(entry).encode() for entry in current}


async def test_unhandled_and_young_turns_stay() -> None:
    harness = ArchivingHarness()
    records = [harness.say("ana", f"t{number}", f"turn {number}") for number in range(6)]
    partition = records[0].partition
    harness.topics.committed[partition] = 2
    # Four are old, and two of them are handled.
    for kept in (timedelta(seconds=61), ALL):
        await harness.archive(kept=kept)
        assert [record.offset for record in logged(harness)] == [2, 3, 4, 5]
        assert sorted(record.offset for record in archived(harness).values()) == [0, 1]
    harness.topics.committed[partition] = 6
    # The last one is as old as the clock says, the one before a minute older.
    await harness.archive(kept=timedelta(seconds=61))
    assert [record.offset for record in logged(harness)] == [4, 5]


async def test_kills_between_all_steps_lose_nothing() -> None:
    """Killed at each write in turn, archived to the end by the next process, compacted as Kafka may, and read."""
    for lives in count():
        harness = ArchivingHarness()
        current = conversation(harness, 4, USERS[:2])
        harness.topics.on_delete = partial(check_archived, harness, current)
        harness.topics.lives = lives
        try:
            await harness.archive()
            was_killed = False
        except Killed:
            was_killed = True
        harness.topics.lives = -1
        later = [harness.say(user, "t9", f"later of {user}") for user in USERS[:2]]
        for partition in range(PARTITIONS):
            harness.topics.compact(partition, Random(lives))
        await harness.archive(kept=timedelta(minutes=2))
        assert sorted(map(said, await harness.read())) == sorted(map(said, [*current, *later]))
        if not was_killed:
            return


def check_archived(harness: ArchivingHarness, current: list[Record], partition: int, offset: int) -> None:
    have = set(map(said, archived(harness).values()))
    gone = [record for record in current if record.partition == partition and record.offset < offset]
    assert have >= set(map(said, gone))


@pytest.mark.parametrize("is_archived", [True, False])
async def test_forgotten_turn_leaves_its_identity_alone(is_archived: bool) -> None:
    harness = ArchivingHarness()
    record = harness.say("ana", "t1", f"the word is {SECRET}", metadata={"word": SECRET})
    other = harness.say("ana", "t2", "another word")
    if is_archived:
        await harness.archive()
    await harness.forget(record)
    await harness.archive()
    for partition in range(PARTITIONS):
        harness.topics.compact(partition, Random(0))
    left = archived(harness)[memory_id(record).encode()]
    turn = Turn.model_validate_json(left.value or b"")
    assert turn.content == FORGOTTEN_TEXT
    assert turn.turn_id == "t1"
    assert turn.scope.user_id == "ana"
    assert left.offset == 0
    assert memory_id(left) == memory_id(record)
    assert said(archived(harness)[memory_id(other).encode()]) == said(other)
    last = {row.key: row.value or b"" for row in harness.topics.topics[ARCHIVE, record.partition]}
    assert not any(SECRET.encode() in value for value in last.values())


async def test_forget_that_the_archive_was_not_told_of_is_made_up_for() -> None:
    """A worker was killed behind the table."""
    harness = ArchivingHarness()
    secrets = [harness.say(user, "t1", f"the word is {SECRET}") for user in USERS]
    told, untold, *kept = secrets
    await harness.archive()
    await harness.forget(told)
    harness.memories.forget(untold.partition, memory_id(untold))
    before = sum(len(harness.topics.texts(ARCHIVE, partition)) for partition in range(PARTITIONS))
    running = asyncio.create_task(harness.process(ALL).run(lambda: range(PARTITIONS), 0.001))
    async with asyncio.timeout(10):
        while SECRET.encode() in (archived(harness)[memory_id(untold).encode()].value or b""):
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.02)
    running.cancel()
    after = sum(len(harness.topics.texts(ARCHIVE, partition)) for partition in range(PARTITIONS))
    assert after == before + 1, "once, and only what was not told"
    left = archived(harness)
    assert memory_id(left[memory_id(untold).encode()]) == memory_id(untold)
    assert [said(left[memory_id(entry).encode()]) for entry in kept] == list(map(said, kept))


async def test_turn_forgotten_while_it_is_archived_is_forgotten_afterwards() -> None:
    harness = ArchivingHarness()
    record = harness.say("ana", "t1", f"the word is {SECRET}")
    due = [record]

    def forget_after(out: Outgoing) -> None:
        if due and out.key == memory_id(record).encode():
            due.clear()
            harness.memories.forget(record.partition, memory_id(record))

    harness.topics.on_send = forget_after
    await harness.archive()
    assert SECRET.encode() in (archived(harness)[memory_id(record).encode()].value or b"")
    # What the change publishes comes after what was handed over before it.
    await harness.topics.send(Outgoing(ARCHIVE, memory_id(record).encode(), None, partition=record.partition))
    assert memory_id(record).encode() not in archived(harness)


async def test_position_moves_past_what_is_no_turn() -> None:
    harness = ArchivingHarness()
    home = partition_of(b"ana", PARTITIONS)
    for value in (b"no json", b"", FILLER_VALUE, filler(TURNS, home).value or b""):
        harness.write("ana", value)
    stray = harness.say("ana", "t1", "in another partition", is_stored=False)
    harness.topics.topics[TURNS, home].pop()
    harness.write("ana", stray.value or b"", (home + 1) % PARTITIONS)
    await harness.archive()
    assert logged(harness) == []
    assert archived(harness) == {}
    assert POSITION_KEY in {record.key for record in harness.topics.topics[ARCHIVE, home]}


@pytest.mark.parametrize("erases", [True, False])
async def test_turn_without_a_row_is_archived_unless_texts_are_erased(erases: bool) -> None:
    harness = ArchivingHarness(erases=erases)
    record = harness.say("ana", "t1", "refused, or its row is lost", is_stored=False)
    await harness.archive()
    assert list(archived(harness).values()) == ([] if erases else [record])


async def test_refused_edit_does_not_replace_the_archived_text() -> None:
    harness = ArchivingHarness()
    record = harness.say("ana", "t1", "accepted")
    harness.say("ana", "t1", "refused", is_stored=False, mode="unknown")
    await harness.archive()
    assert [said(entry) for entry in archived(harness).values()] == [said(record)]


async def test_edited_turn_keeps_its_time() -> None:
    harness = ArchivingHarness()
    first = harness.say("ana", "t1", "first text")
    edit = harness.say("ana", "t1", "second text")
    await harness.archive()
    [left] = archived(harness).values()
    turn = Turn.model_validate_json(left.value or b"")
    assert turn.content == "second text"
    assert turn.occurred_at == moment_of(first.timestamp_ms)
    assert left.offset == edit.offset
    assert left.timestamp_ms == edit.timestamp_ms


async def test_archive_begins_where_a_log_begins() -> None:
    """The log was cut by its operator before."""
    harness = ArchivingHarness()
    records = [harness.say("ana", f"t{number}", f"turn {number}") for number in range(4)]
    await harness.topics.delete_before(records[0].partition, 2)
    await harness.archive()
    assert [record.offset for record in archived(harness).values()] == [2, 3]


async def test_operator_reads_each_current_turn_once_while_the_worker_archives() -> None:
    harness = ArchivingHarness(page=2)
    current = conversation(harness, 9)
    await harness.archive(kept=timedelta(minutes=40))
    partition = partition_of(b"ana", PARTITIONS)
    read, reader = [], harness.log()
    offset, end = 0, harness.topics.end(TURNS, partition)
    while offset < end:
        records, offset = await reader.read(partition, offset, 2)
        read += records
        await harness.archive(kept=timedelta(minutes=40 - 5 * offset))
    assert logged(harness) == []
    texts = {said(entry) for entry in read}
    assert texts >= {said(record) for record in current if record.partition == partition}
    assert len(texts) == len(read)
