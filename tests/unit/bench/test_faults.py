"""The matrix of faults counts what is lost and doubled, and says so."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from modestream_client.calls import MemoryCalls
from modestream_client.failures import MemoryUnreachable

from bench.faults.cluster import Brokers
from bench.faults.load import Load, word
from bench.faults.page import page
from bench.faults.row import Row, Size
from streams.up.broker import KafkaInstallation


class StoredMemories(MemoryCalls):
    """A service that has exactly these turns, of any user, and fails its first writes."""

    def __init__(self, failures: int = 0) -> None:
        self.stored: list[tuple[str, str]] = []
        self.failures = failures

    async def say(self, user_id: str, turn_id: str, content: str) -> object:
        if self.failures:
            self.failures -= 1
            raise MemoryUnreachable("away")
        self.stored.append((user_id, turn_id))
        return content

    async def command(self, *_: Any, user_id: object = None, **__: Any) -> dict[str, Any]:
        count = sum(user == user_id for user, _ in self.stored)
        return {"modes": {"general": {"eligible": count, "ready": count}}}

    async def iter_memories(self, *, user_id: object = None, **_: Any) -> AsyncIterator[Any]:
        for user, turn_id in self.stored:
            if user == user_id:
                yield SimpleNamespace(turn_id=turn_id)

    async def retrieve(self, query: str, **_: Any) -> Any:
        hits = [SimpleNamespace(turn_id=turn, text=word(int(turn[2:]))) for _, turn in self.stored]
        return SimpleNamespace(hits=[hit for hit in hits if hit.text == query])


async def loaded(service: StoredMemories, turns: int = 40) -> Load:
    load = Load(service, service.say, 1000.0, "row1")
    load.end()
    await load.publish(turns)
    await load.until_well()
    return load


async def test_all_turns_are_counted_once() -> None:
    counted = await (await loaded(StoredMemories())).counted()
    assert counted.turns == 40
    assert counted.found == 40
    assert counted.doubled == 0


async def test_lost_and_doubled_turns_are_told() -> None:
    service = StoredMemories()
    load = await loaded(service)
    lost, twice = service.stored[3], service.stored[5]
    service.stored.remove(lost)
    service.stored.append(twice)
    counted = await load.counted()
    assert counted.turns == 40
    assert counted.found <= 39
    assert counted.doubled == 1


async def test_turn_that_no_question_finds_is_lost() -> None:
    service = StoredMemories()
    load = await loaded(service)

    async def silent(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(hits=[])

    service.retrieve = silent  # type: ignore[method-assign]
    assert (await load.counted()).found < 40


async def test_only_writes_without_acknowledgement_are_sent_again() -> None:
    service = StoredMemories(failures=3)
    load = await loaded(service)
    assert load.retried == 3
    assert len(service.stored) == len(load.acknowledged) == 40


@pytest.mark.parametrize(("found", "doubled", "is_right"), [(10, 0, True), (9, 0, False), (10, 1, False)])
def test_row_is_right_with_nothing_lost_or_doubled(found: int, doubled: int, is_right: bool) -> None:
    assert row(found=found, doubled=doubled).is_right is is_right


def test_page_has_a_line_for_each_row_and_says_what_was_not_run() -> None:
    text = page([row(), row(load=9.0)], 2, 8, Size(turns=160, per_second=8.0), ["clocks: none"])
    assert text.count("| worker, `kill -9` | 10 | 10 | 0 |") == 2
    assert "--turns 160 --per-second 8 --write` on 2\ncores, with a load average of 3 to 9 " in text
    assert text.endswith("Not run:\n\n- clocks: none\n")


def test_rows_of_a_qdrant_server_say_that_it_was_a_stand_in() -> None:
    text = page([row()], 2, 8, Size(turns=160, per_second=8.0), ["clocks: none"], [row(load=20.0), row(load=39.0)])
    usual, on_server = text.split("## With vectors on a Qdrant server")
    assert usual.count("| worker, `kill -9` | 10 | 10 | 0 |") == 1
    assert on_server.count("| worker, `kill -9` | 10 | 10 | 0 |") == 2
    assert "not on Qdrant" in on_server
    assert "20 to 39" in on_server


def row(found: int = 10, doubled: int = 0, load: float = 3.0) -> Row:
    return Row("worker, `kill -9`", 10, found, doubled, 2, 4.5, 50, 900, load, "")


def test_each_of_three_brokers_knows_the_quorum(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path, 3, KafkaInstallation((Path("kafka.jar"),)))
    settings = [dict(line.split("=", 1) for line in brokers._settings(node).splitlines()) for node in brokers.nodes]
    assert [setting["node.id"] for setting in settings] == ["1", "2", "3"]
    voters = ",".join(f"{node.number}@127.0.0.1:{node.controller_port}" for node in brokers.nodes)
    assert {setting["controller.quorum.voters"] for setting in settings} == {voters}
    assert {setting["min.insync.replicas"] for setting in settings} == {"2"}
    assert len({setting["log.dirs"] for setting in settings}) == 3
