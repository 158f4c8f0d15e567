"""Turns over HTTP: one or many, in order, idempotent; what is wrong costs its neighbours nothing."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from modestream_client import MemoryUnreachable

from tests.fakes.wire import FakeWire

PATH = "/v1/users/u1/turns"

SHARES_APP = True


def turn(content: str, **fields: Any) -> dict[str, Any]:
    return {"conversation_id": "c1", "role": "user", "content": content, **fields}


async def test_a_turn_goes_to_the_wire_as_it_was_sent(http: httpx.AsyncClient, wire: FakeWire) -> None:
    answer = await http.post(PATH, json=turn("hello", project_id="p1", turn_id="t1", metadata={"a": 1}))
    assert answer.status_code == 201
    assert answer.json()["read_after"] == "1:0"
    assert answer.json()["warnings"] == []
    scope = {"user_id": "u1", "project_id": "p1"}
    assert wire.records == [turn("hello", schema="turn.v1", scope=scope, turn_id="t1", metadata={"a": 1})]


async def test_a_repeated_turn_is_no_new_one(http: httpx.AsyncClient) -> None:
    await http.post(PATH, json=turn("hello", turn_id="t1"))
    assert (await http.post(PATH, json=turn("hello", turn_id="t1"))).status_code == 200


async def test_many_turns_keep_their_order(http: httpx.AsyncClient, wire: FakeWire) -> None:
    turns = [turn(f"remark {n}", turn_id=f"t{n}") for n in range(100)]
    answer = await http.post(PATH, json={"turns": turns})
    assert answer.status_code == 201
    assert [result["turn_id"] for result in answer.json()["results"]] == [f"t{n}" for n in range(100)]
    assert [record["content"] for record in wire.records] == [f"remark {n}" for n in range(100)]
    assert answer.json()["read_after"] == "1:99"


async def test_a_bad_turn_has_its_error_in_its_place(http: httpx.AsyncClient, wire: FakeWire) -> None:
    turns: list[Any] = [turn("one"), turn(""), 7, turn("x", contents="y"), turn("four")]
    answer = await http.post(PATH, json={"turns": turns})
    results = answer.json()["results"]
    assert [result.get("error", {}).get("field") for result in results] == [
        None,
        "content",
        "turns.2",
        "contents",
        None,
    ]
    assert [record["content"] for record in wire.records] == ["one", "four"]


@pytest.mark.parametrize("turns", [[], [turn("x")] * 101, {}, None])
async def test_a_list_of_another_length_is_refused(http: httpx.AsyncClient, turns: object) -> None:
    answer = await http.post(PATH, json={"turns": turns})
    assert answer.status_code == 422
    assert answer.json()["field"] == "turns"


async def test_many_turns_without_a_service_fail_together(http: httpx.AsyncClient, wire: FakeWire) -> None:
    wire.failure = MemoryUnreachable("gone")
    assert (await http.post(PATH, json={"turns": [turn("a"), turn("b")]})).status_code == 503


async def test_an_idempotency_key_makes_one_turn(http: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k1"}
    first = await http.post(PATH, json=turn("Pay Ben 20."), headers=key)
    again = await http.post(PATH, json=turn("Pay Ben 20."), headers=key)
    assert first.status_code == 201
    assert again.status_code == 200
    assert again.json()["memory_id"] == first.json()["memory_id"]


async def test_an_idempotency_key_with_another_body_is_no_edit(http: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k1"}
    made = [(await http.post(PATH, json=turn(text), headers=key)).json()["turn_id"] for text in ("a", "b")]
    assert len(set(made)) == 2


async def test_an_idempotency_key_stands_for_each_place_of_a_list(http: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k1"}
    body = {"turns": [turn("same"), turn("same"), turn("own", turn_id="mine")]}
    first = (await http.post(PATH, json=body, headers=key)).json()["results"]
    again = await http.post(PATH, json=body, headers=key)
    assert len({turn["turn_id"] for turn in first}) == 3
    assert first[2]["turn_id"] == "mine"
    assert again.status_code == 200
    assert [result["turn_id"] for result in again.json()["results"]] == [turn["turn_id"] for turn in first]


@pytest.mark.parametrize("user", ["a/b", "ü ñ", "%41", "x/../y", "semi;colon", "query?x"])
async def test_a_user_is_decoded_once(http: httpx.AsyncClient, wire: FakeWire, user: str) -> None:
    await http.post(f"/v1/users/{quote(user, safe='')}/turns", json=turn("hello"))
    assert wire.records[0]["scope"]["user_id"] == user
