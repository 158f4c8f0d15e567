import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from modestream_client import MemoryServiceError

from operations.copy.copier import NOTHING, Copier, CopyPosition, CopyReport, PartitionLogs, PartitionPosition
from operations.copy.entry_builder import COPIED_FROM, CopiedPlace, Entry, EntryBuilder, Log, Outcome, Positions
from operations.migrate import MigrateOptions
from operations.switch import NotSwitched
from schemas.messages.records import Record
from schemas.scope_models import deployed_scope
from schemas.scopes import Scope
from schemas.state.memories import derive_memory_id
from streams.wire.partitioning import partition_of
from tests.builders.scopes import AgentScope
from tests.fakes.copied_logs import FakeLogSource, FakeLogTarget, Killed

PARTITIONS = 2
USERS = ("ana", "ben", "cleo")


def value(log: Log, user: str, name: str) -> bytes:
    scope = {"user_id": user}
    if log == "turns":
        turn = {"schema": "turn.v1", "turn_id": name, "conversation_id": "c", "role": "user", "content": name}
        return json.dumps({**turn, "scope": scope}).encode()
    if log == "consolidate":
        return json.dumps({"schema": "consolidate.v1", "scope": scope}).encode()
    command = {"schema": "command.v1", "command": "forget", "scope": scope}
    return json.dumps({**command, "arguments": {"turn_id": name, "conversation_id": "c"}}).encode()


class Source(FakeLogSource):
    """Logs with records in the order in which they are said."""

    def __init__(self) -> None:
        super().__init__(PARTITIONS)
        self.said: list[tuple[str, str]] = []
        self.now = 1000

    def say(self, log: Log, user: str, *, at: int | None = None) -> Record:
        self.now += 10
        name = f"{log}-{len(self.said)}"
        partition = partition_of(user.encode(), PARTITIONS)
        self.said.append((user, log))
        return self.add(log, partition, at or self.now, user, value(log, user, name))

    def conversation(self) -> None:
        for number in range(12):
            for user in USERS:
                self.say("turns", user)
                if number % 3 == 2:
                    self.say("commands", user)
                if number == 7:
                    self.say("consolidate", user)


async def copy(source: FakeLogSource, target: FakeLogTarget, file: Path, outcome: Outcome = NOTHING) -> Copier:
    builder, position = EntryBuilder(PARTITIONS, Scope, Scope), CopyPosition.load(file)
    running = Copier(source, target, builder, position, outcome, saved=lambda reached: reached.save(file))
    await running.resume()
    await running.run()
    return running


def order_of(target: FakeLogTarget, user: str) -> list[str]:
    return [entry.log for entry, _ in target.written if entry.boundary == user]


async def test_header_of_a_copy_on_another_record_leaves_nothing_out(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.say("turns", "ana")
    await copy(source, target, tmp_path / "position")
    said = source.say("turns", "ana")
    forged = (("modestream_copied_from", f"{said.partition}:{said.offset}".encode()),)
    [(first, _)] = target.written
    target.written.append((replace(first, value=b'{"schema":"turn.v1"}', headers=forged), 1))
    await copy(source, target, tmp_path / "position")
    assert [entry.value for entry in target.entries("turns")].count(said.value or b"") == 1


def origins_of(target: FakeLogTarget, user: str) -> list[CopiedPlace]:
    return [entry.origin for entry, _ in target.written if entry.boundary == user]


async def test_records_of_a_user_are_copied_in_the_order_of_their_times(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.conversation()
    await copy(source, target, tmp_path / "position")
    for user in USERS:
        assert order_of(target, user) == [log for said, log in source.said if said == user]


async def test_turn_with_an_early_time_does_not_overtake_its_log(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.say("turns", "ana")
    source.say("commands", "ana")
    source.say("turns", "ana")
    source.say("turns", "ana", at=1)
    source.say("commands", "ana")
    await copy(source, target, tmp_path / "position")
    assert order_of(target, "ana") == ["turns", "commands", "turns", "turns", "commands"]


@pytest.mark.parametrize("forget_position", [lambda _: None, lambda file: file.unlink(missing_ok=True)])
async def test_copy_that_is_killed_anywhere_writes_each_record_once_and_in_order(
    tmp_path: Path, forget_position: Callable[[Path], None]
) -> None:
    source, reference = Source(), FakeLogTarget()
    source.conversation()
    await copy(source, reference, tmp_path / "reference")
    deaths = 0
    for first_life in range(2, 60, 19):
        target, file = FakeLogTarget(), tmp_path / f"position-{first_life}"
        for lives in count(first_life):
            target.live(lives)
            try:
                await copy(source, target, file)
                break
            except Killed:
                deaths += 1
                forget_position(file)
        for user in USERS:
            assert origins_of(target, user) == origins_of(reference, user)
    assert deaths > 20


async def test_continued_copy_waits_until_written_commands_have_taken_effect(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.conversation()
    target.live(20)
    with pytest.raises(Killed):
        await copy(source, target, tmp_path / "position")
    target.live()
    await copy(source, target, tmp_path / "position")
    assert target.settled == 1


async def test_what_is_written_later_is_copied_by_the_next_run(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.conversation()
    await copy(source, target, tmp_path / "position")
    source.say("commands", "ben")
    source.say("turns", "ben")
    report = (await copy(source, target, tmp_path / "position")).report
    assert report.counts == {"turns": 1, "forgotten": 0, "commands": 1}
    assert order_of(target, "ben")[-2:] == ["commands", "turns"]


async def test_target_with_turns_of_its_own_is_refused(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.conversation()
    await copy(source, target, tmp_path / "position")
    for entry, _ in target.written:
        object.__setattr__(entry, "headers", ())
    with pytest.raises(ValueError, match="choose another"):
        await copy(source, target, tmp_path / "another")


async def test_copied_records_name_their_origin(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.say("turns", "ana")
    await copy(source, target, tmp_path / "position")
    [entry] = target.entries("turns")
    assert dict(entry.headers)[COPIED_FROM] == f"{partition_of(b'ana', PARTITIONS)}:0".encode()


async def test_record_waits_until_what_was_written_before_it_is_known() -> None:
    source = Source()
    source.say("commands", "ana")
    partition = partition_of(b"ana", PARTITIONS)
    logs = PartitionLogs(source, partition, PartitionPosition())
    before = await source.ends()
    source.say("turns", "ana", at=1)
    now = await source.ends()
    # The turn is earlier, and was not there at the look before: something earlier still may have come with it.
    assert await logs.take(before, now, 10) == []
    assert [log for log, _ in await logs.take(now, now, 10)] == ["turns", "commands"]


async def test_what_is_distilled_again_without_a_forgotten_turn_is_forgotten(tmp_path: Path) -> None:
    source, target = Source(), FakeLogTarget()
    source.say("consolidate", "ana")
    target.distilled = ["kept", "extra"]
    outcome = Outcome(distilled=frozenset({"kept"}), consolidated={partition_of(b"ana", PARTITIONS): 1})
    await copy(source, target, tmp_path / "position", outcome)
    assert target.distilled == ["kept"]
    # The source may not have carried this one out yet, when its distilled memories were read.
    source.say("consolidate", "ana")
    target.distilled = ["kept", "new"]
    await copy(source, target, tmp_path / "position", outcome)
    assert target.distilled == ["kept", "new"]


@pytest.mark.parametrize("lives", [-1, *range(1, 40, 3)])
async def test_revision_of_the_pipelines_stands_between_what_was_written_before_and_after_it(
    tmp_path: Path, lives: int
) -> None:
    source, target = Source(), FakeLogTarget()
    for _ in range(4):
        for user in USERS:
            source.say("turns", user)
    source.revised = [Record("pipelines", 0, 0, source.now + 1, b"1-a", b"{}")]
    for user in USERS:
        source.say("turns", user)
    target.live(lives)
    with suppress(Killed):
        await copy(source, target, tmp_path / "position")
    target.live()
    await copy(source, target, tmp_path / "position")
    assert [(revision.key, before) for revision, before in target.revised] == [(b"1-a", 12)]
    assert len(target.written) == 15


async def test_continued_copy_to_other_scope_fields_knows_the_ids_of_earlier_turns(tmp_path: Path) -> None:
    source, target = FakeLogSource(PARTITIONS), FakeLogTarget()
    partition = partition_of(b"ana", PARTITIONS)
    source.add("turns", partition, 1, "ana", value("turns", "ana", "t"))
    scopes = (Scope, deployed_scope(AgentScope))
    for _ in range(2):
        position = CopyPosition.load(tmp_path / "position")
        builder = EntryBuilder(PARTITIONS, *scopes)
        copier = Copier(source, target, builder, position, saved=lambda each: each.save(tmp_path / "position"))
        await copier.resume()
        await copier.run()
        former = derive_memory_id({"user_id": "ana", "project_id": "default"}, "c", "t")
        forget = json.loads(value("commands", "ana", "t")) | {"arguments": {"memory_id": former}}
        source.add("commands", partition, 2, "ana", json.dumps(forget).encode())
    [entry] = target.entries("commands")
    assert json.loads(entry.value)["arguments"]["memory_id"] == derive_memory_id(entry.scope, "c", "t")


async def test_copy_of_what_is_written_to_all_the_time_ends(tmp_path: Path) -> None:
    class WrittenTo(Source):
        """A turn comes with each look at the ends."""

        async def ends(self) -> Positions:
            self.say("turns", "ana")
            return await super().ends()

    source, target = WrittenTo(), FakeLogTarget()
    source.conversation()
    said = len(source.said)
    async with asyncio.timeout(20):
        await copy(source, target, tmp_path / "position")
    assert len(target.written) >= said


class FullTarget(FakeLogTarget):
    """A target that takes none of the records of one log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.full = log

    async def write(self, entry: Entry) -> int:
        self.check(entry)
        return await super().write(entry)

    async def carry_out(self, entry: Entry) -> str | None:
        self.check(entry)
        return await super().carry_out(entry)

    def check(self, entry: Entry) -> None:
        """Refuse a record of the log."""
        if entry.log == self.full:
            raise MemoryServiceError("too_large", "of Kafka")


class RefusingTarget(FakeLogTarget):
    """A target whose worker refuses every command by what it says."""

    async def carry_out(self, entry: Entry) -> str | None:
        await super().carry_out(entry)
        return "not_found: no such memory"


@pytest.mark.parametrize("log", ["turns", "commands"])
async def test_record_that_the_target_does_not_take_is_lost(tmp_path: Path, log: Log) -> None:
    source, place = Source(), partition_of(b"ana", PARTITIONS)
    source.say(log, "ana")
    report = (await copy(source, FullTarget(log), tmp_path / "position")).report
    assert report.lost == [f"{log} {place}:0: too_large: of Kafka"]


async def test_later_run_knows_what_an_earlier_one_has_lost(tmp_path: Path) -> None:
    source, target = Source(), FullTarget("turns")
    source.say("turns", "ana")
    first = (await copy(source, target, tmp_path / "position")).report
    assert (await copy(source, target, tmp_path / "position")).report.lost == first.lost


async def test_command_that_the_source_refused_too_is_not_lost(tmp_path: Path) -> None:
    source = Source()
    source.say("commands", "ana")
    report = (await copy(source, RefusingTarget(), tmp_path / "position")).report
    assert len(report.refusals) == 1
    assert report.lost == []


def test_switch_and_drop_end_where_a_record_is_lost() -> None:
    with pytest.raises(NotSwitched, match="turns 0:1: too_large"):
        MigrateOptions(to="memory2.").check_complete(CopyReport(lost=["turns 0:1: too_large"]))


def test_switch_and_drop_go_on_without_what_is_lost_where_nothing_is_compared() -> None:
    MigrateOptions(to="memory2.", compare=False).check_complete(CopyReport(lost=["turns 0:1: too_large"]))


def test_switch_and_drop_go_on_where_a_command_was_refused() -> None:
    MigrateOptions(to="memory2.").check_complete(CopyReport(refusals=["commands 0:1: not_found"]))
