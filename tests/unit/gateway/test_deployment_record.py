"""What a gateway does with its deployment, by the records of the topic `service`."""

import asyncio
import time

import pytest

from gateway.backend.deployment_record import DeploymentRecord
from gateway.backend.followers import Cluster
from schemas.internal.service import ServiceRecord, Successor, SuccessorState
from schemas.messages.records import Record
from schemas.scopes import Scope

MADE = Record("service", 0, 0, 0, b"service", ServiceRecord.of(Scope, 4, "memory.", []).model_dump_json().encode())


def replaced(state: SuccessorState, age_s: float = 0) -> Record:
    value = Successor(state=state, topic_prefix="memory2.").model_dump_json(by_alias=True).encode()
    return Record("service", 0, 1, round((time.time() - age_s) * 1000), b"successor", value)


def known(*records: Record, pause_s: float = 60) -> DeploymentRecord:
    found = DeploymentRecord(Cluster("nowhere:1", "memory."), Scope, pause_s)
    found.take(records)
    found._follower.is_caught_up.set()
    return found


@pytest.mark.parametrize(
    ("states", "serves", "successor"),
    [
        ([], True, None),
        (["pausing"], False, None),
        (["pausing", "withdrawn"], True, None),
        (["pausing", "serving"], False, "memory2."),
        (["serving", "dropped"], False, "memory2."),
    ],
)
def test_last_state_counts(states: list[SuccessorState], serves: bool, successor: str | None) -> None:
    found = known(MADE, *map(replaced, states))
    assert found.serves is serves
    assert (found.successor and found.successor.topic_prefix) == successor


def test_what_is_not_known_yet_gets_nothing() -> None:
    assert not known().serves
    unread = DeploymentRecord(Cluster("nowhere:1", "memory."), Scope)
    unread.take([MADE])
    assert not unread.serves  # a later record may say otherwise


@pytest.mark.parametrize("value", [b"nonsense", b"{}", b'{"schema": "successor.v2"}', None])
def test_unknown_successor_changes_nothing(value: bytes | None) -> None:
    assert known(MADE, Record("service", 0, 1, 0, b"successor", value)).serves


def test_pause_of_an_hour_ago_pauses_nothing() -> None:
    assert known(MADE, replaced("pausing", age_s=3600)).serves


def test_pause_that_comes_while_the_topic_is_followed_counts_whatever_the_clock_says() -> None:
    found = known(MADE)
    pausing, ended = replaced("pausing", age_s=3600), replaced("withdrawn", age_s=3590)
    found.take([pausing])
    assert not found.serves
    found.take([pausing])
    assert not found.serves, "read again after an outage"
    found.take([ended])
    found.take([pausing])
    assert found.serves, "an earlier pause that is read again is over"


async def test_killed_switch_pauses_for_its_time_alone() -> None:
    found = known(MADE, replaced("pausing"), pause_s=0.2)
    assert not found.serves
    async with asyncio.timeout(5):
        await found.until_decided()
    assert found.serves


async def test_each_change_wakes_all_that_wait() -> None:
    found = known(MADE)
    ended, decided = asyncio.create_task(found.until_ended()), asyncio.create_task(found.until_serving())
    async with asyncio.timeout(5):
        await decided
        found.take([replaced("pausing")])
        await ended
        waiting = [asyncio.create_task(wait) for wait in (found.until_decided(), found.until_serving())]
        await asyncio.sleep(0)
        found.take([replaced("withdrawn")])
        await asyncio.gather(*waiting)
    assert found.serves
