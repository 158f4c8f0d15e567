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
from bench.faults.row import Row
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
