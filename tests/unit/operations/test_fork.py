import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from operations.copy.entry_builder import COPIED_FROM, Entry, LeftOut, Log
from operations.fork import (
    FORKED_FROM,
    Branch,
    Chosen,
    ForkBuilder,
    ForkOptions,
    UserLogs,
    check_name_is_free,
    digest_of_fork,
    read_trial,
    was_dropped,
)
from schemas.messages.records import Headers, Record
from schemas.state.memories import derive_memory_id
from streams.settings import Settings
from streams.wire.partitioning import partition_of
from tests.builders.turns import PARTITIONS
from tests.harnesses.archiving import ArchivingHarness

TIME_MS = 1_780_000_000_123
SCOPE = {"user_id": "ana", "project_id": "default"}
TURN_ID = derive_memory_id(SCOPE, "c", "t-1")
FORKED_TURN_ID = derive_memory_id({**SCOPE, "user_id": "ana-trial"}, "c", "t-1")


def record(message: object, timestamp_ms: int = TIME_MS, headers: Headers = ()) -> Record:
    value = json.dumps(message).encode()
    return Record("memory.turns", partition_of(b"ana", 4), 17, timestamp_ms, b"ana", value, headers)


def turn(**more: object) -> dict[str, object]:
    said = {"schema": "turn.v1", "turn_id": "t-1", "scope": {"user_id": "ana"}, "conversation_id": "c", "role": "user"}
    return {**said, "content": "The kettle is blue.", **more}


def command(called: str, /, **arguments: object) -> dict[str, object]:
    return {"schema": "command.v1", "command": called, "scope": {"user_id": "ana"}, "arguments": arguments}


def builder(turns: tuple[str, ...] = (TURN_ID,), **options: object) -> ForkBuilder:
    chosen = Chosen(dict.fromkeys(turns, FORKED_TURN_ID), {"item-of-ana": "item-of-trial"})
    fork = Branch("ana-trial", Settings(partitions=4))
    return ForkBuilder(ForkOptions("ana", "ana-trial", **options), fork, chosen)  # type: ignore[arg-type]


def built(builder: ForkBuilder, log: Log, read: Record) -> Entry:
    entry = builder.build(log, read)
    assert isinstance(entry, Entry)
    return entry


def arguments_of(entry: Entry) -> dict[str, object]:
    arguments: dict[str, object] = json.loads(entry.value)["arguments"]
    return arguments


def test_edits_of_the_pipelines_are_no_trial_of_a_fork(tmp_path: Path) -> None:
    edits = tmp_path / "edits.json"
    edits.write_text('{"edits": [{"op": "config", "step_id": "retrieve.rank", "config": {"min_score": 0.5}}]}')
    with pytest.raises(ValueError, match=f"modestream evaluate --user ana --pipeline {edits}"):
        read_trial(edits, "ana")


def test_turn_is_written_for_the_fork() -> None:
    assert json.loads(built(builder(), "turns", record(turn())).value)["scope"]["user_id"] == "ana-trial"


def test_forked_record_is_sent_by_the_operator() -> None:
    read = record(turn(), headers=(("principal", b"app"),))
    headers = [value for name, value in built(builder(), "turns", read).headers if name == "principal"]
    assert headers == [b"operator"]


def test_forked_record_names_its_fork_by_a_digest() -> None:
    headers = dict(built(builder(), "turns", record(turn())).headers)
    assert headers[FORKED_FROM] == digest_of_fork("ana", "ana-trial")


def test_turn_after_the_time_is_left_out() -> None:
    until = datetime.fromtimestamp(TIME_MS / 1000 - 1, UTC)
    assert builder(until=until).build("turns", record(turn())) == LeftOut("later")


def test_turn_of_the_time_itself_is_copied() -> None:
    until = datetime.fromtimestamp(TIME_MS / 1000, UTC)
    assert built(builder(until=until), "turns", record(turn())).boundary == "ana-trial"


def test_correction_names_the_turn_of_the_fork() -> None:
    builds = builder()
    builds.build("turns", record(turn()))
    corrected = built(builds, "commands", record(command("set_memory_mode", memory_id=TURN_ID, mode="journal")))
    assert arguments_of(corrected)["memory_id"] == FORKED_TURN_ID


def test_correction_names_the_item_of_the_fork() -> None:
    hidden = record(command("set_memory_visibility", memory_id="item-of-ana", searchable=False))
    assert arguments_of(built(builder(), "commands", hidden))["memory_id"] == "item-of-trial"


def test_correction_of_a_turn_that_is_not_copied_is_left_out() -> None:
    corrected = record(command("set_memory_mode", memory_id=TURN_ID, mode="journal"))
    assert builder(turns=()).build("commands", corrected) == LeftOut("left out")


def test_forgetting_a_conversation_is_not_repeated() -> None:
    assert builder().build("commands", record(command("forget", conversation_id="c"))) == LeftOut("derived")


def test_forgetting_the_user_is_repeated_as_it_removes_declarations() -> None:
    assert built(builder(), "commands", record(command("forget", user=True))).boundary == "ana-trial"


def test_forgotten_id_is_known_though_it_was_forgotten_after_the_time() -> None:
    builds = builder(until=datetime.fromtimestamp(0, UTC))
    builds.build("commands", record(command("forget", memory_id="item")))
    assert builds.forgotten_ids == {"item"}


@pytest.mark.parametrize(("name", "embedder"), [("journal", "tiny"), ("code", "general")])
def test_mode_is_declared_with_its_other_embedder(name: str, embedder: str) -> None:
    declared = record(command("declare_mode", name=name, embedder="general"))
    assert arguments_of(built(builder(embedders={"journal": "tiny"}), "commands", declared))["embedder"] == embedder


def test_fork_that_was_forgotten_is_dropped() -> None:
    assert was_dropped(record(command("forget", user=True)))


def test_forgetting_that_was_copied_drops_no_fork() -> None:
    assert not was_dropped(record(command("forget", user=True), headers=((COPIED_FROM, b"0:1"),)))


def test_dry_run_drops_no_fork() -> None:
    assert not was_dropped(record(command("forget", user=True, dry_run=True)))


OF_ANA = digest_of_fork("ana", "ana-trial")
FORKED_TURN = record(turn(), headers=((FORKED_FROM, OF_ANA),))


def test_name_of_another_user_is_refused() -> None:
    with pytest.raises(ValueError, match="choose another name"):
        check_name_is_free("ana-trial", OF_ANA, [("turns", record(turn()))])


def test_name_of_a_fork_of_another_user_is_refused() -> None:
    with pytest.raises(ValueError, match="choose another name"):
        check_name_is_free("ana-trial", digest_of_fork("ben", "ana-trial"), [("turns", FORKED_TURN)])


def test_name_of_a_dropped_fork_is_refused() -> None:
    with pytest.raises(ValueError, match="dropped"):
        check_name_is_free(
            "ana-trial", OF_ANA, [("turns", FORKED_TURN), ("commands", record(command("forget", user=True)))]
        )


async def test_archived_turns_of_a_fork_still_name_its_origin() -> None:
    topics = ArchivingHarness()
    for user in ("ana-trial", "ben"):
        topics.say(user, "t-1", "The harbour closes at six.")
    await topics.archive()
    logs = UserLogs(topics.topics, Branch("ana-trial", Settings(partitions=PARTITIONS)))  # type: ignore[arg-type]
    assert [(log, record.header("origin")) for log, record in await logs.all_records()] == [("turns", b"app")]


def test_fork_with_turns_said_to_it_is_continued() -> None:
    check_name_is_free("ana-trial", OF_ANA, [("turns", FORKED_TURN), ("turns", record(turn()))])


def test_fork_that_was_killed_before_its_first_turn_is_continued() -> None:
    check_name_is_free("ana-trial", OF_ANA, [("commands", record(command("declare_mode", embedder="tiny")))])
