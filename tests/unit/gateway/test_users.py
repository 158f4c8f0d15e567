"""Users and totals: from the topic of boundaries, and only those that the caller may see."""

import base64
import json
from typing import Any

import pytest

from gateway.service.boundaries import Boundaries
from gateway.service.calls import Call, Caller, Refused
from gateway.service.service import MemoryService
from gateway.service.users import cursor_of, position_of
from schemas.state.policies import Grant
from schemas.version import VERSION
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over


def record(user: str, memories: int = 1) -> bytes:
    counts = {"projects": 1, "conversations": 2, "memories": memories}
    embedding = {"ready": memories, "pending": 0, "stale": 0, "failed": 0}
    modes = {"general": {"memories": memories, "embedder": "general"}}
    boundary = {"schema": "boundary.v1", "boundary": user, "scope": {"user_id": user}, "first": None, "last": None}
    return json.dumps({**boundary, **counts, "embedding": embedding, "modes": modes}).encode()


def filled(*users: str) -> Boundaries:
    boundaries = Boundaries()
    for user in users:
        boundaries.apply(user.encode(), record(user))
    return boundaries


OF_P1 = Caller(principal="app", grants=(Grant.model_validate({"user_id": "u1", "project_id": "p1"}),))
"""A caller that may read one of the projects of `u1`."""

P1: dict[str, Any] = {
    "scope": {"user_id": "u1", "project_id": "p1"},
    "memories": 2,
    "conversations": 1,
    "first": "2026-03-01T09:30:00Z",
    "last": "2026-03-02T09:30:00Z",
    "modes": {"code": 2},
}


def service_for_p1() -> MemoryService:
    """A service with nine memories of u1, two of them in p1, and a worker that narrows lists to what is granted."""
    wire, boundaries = FakeWire(), Boundaries()
    boundaries.apply(b"u1", record("u1", memories=9))
    wire.results["list.v1"] = {"items": [P1], "next": None, "total": 1}
    return MemoryService(wire, boundaries=boundaries)


def names(page: dict[str, Any]) -> list[str]:
    return [item["boundary"] for item in page["items"]]


def test_totals_follow_every_change() -> None:
    boundaries = filled("u1", "u2")
    boundaries.apply(b"u1", record("u1", memories=5))
    boundaries.apply(b"u2", None)
    totals = boundaries.totals()
    assert totals["boundaries"] == 1
    assert totals["memories"] == 5
    assert totals["conversations"] == 2
    assert totals["embedding"]["ready"] == 5
    assert totals["modes"] == {"general": 5}


@pytest.mark.parametrize("value", [b"{", b"[]", b"{}", b'{"memories": 1}'])
def test_what_can_not_be_read_changes_nothing(value: bytes) -> None:
    boundaries = filled("u1")
    boundaries.apply(b"u2", value)
    assert boundaries.totals()["boundaries"] == 1


def test_more_users_than_are_kept_are_counted() -> None:
    boundaries = Boundaries(limit=2)
    for number in range(4):
        boundaries.apply(f"u{number}".encode(), record(f"u{number}"))
    assert boundaries.totals()["boundaries"] == 2
    assert boundaries.totals()["not_listed"] == 2


def test_records_beyond_the_bytes_that_are_kept_are_counted_until_there_is_room() -> None:
    boundaries = Boundaries(limit_bytes=2 * len(record("u0")))
    for number in range(4):
        boundaries.apply(f"u{number}".encode(), record(f"u{number}"))
    assert boundaries.totals()["boundaries"] == 2
    assert boundaries.totals()["not_listed"] == 2
    boundaries.apply(b"u1", record("u1", memories=1_000_000))
    assert boundaries.totals()["memories"] == 1
    assert boundaries.totals()["not_listed"] == 3
    assert boundaries.user("u1") is None
    boundaries.apply(b"u3", record("u3"))
    assert boundaries.totals()["memories"] == 2
    assert boundaries.totals()["not_listed"] == 2


def test_users_that_are_not_listed_are_counted_up_to_a_limit() -> None:
    boundaries = Boundaries(limit=2)
    for number in range(10):
        boundaries.apply(f"u{number}".encode(), record(f"u{number}"))
    assert boundaries.totals()["not_listed"] == 2


def test_modes_that_are_gone_are_not_kept() -> None:
    boundaries = Boundaries()
    for number in range(10):
        boundaries.apply(b"u1", record("u1").replace(b'"general"', f'"mode-{number}"'.encode(), 1))
    assert list(boundaries.totals()["modes"]) == ["mode-9"]
    assert len(boundaries._modes) == 1


async def test_pages_have_every_user_once() -> None:
    call, users = (
        Call.within(Caller(), ""),
        MemoryService(FakeWire(), boundaries=filled("a1", "b1", "a3", "a2", "a4")).users,
    )
    first = await users.list(call, "a", 3, None)
    assert names(first) == ["a1", "a2", "a3"]
    second = await users.list(call, "a", 3, first["next"])
    assert names(second) == ["a4"]
    assert second["next"] is None
    with pytest.raises(Refused, match="cursor"):
        await users.list(call, "b", 3, first["next"])


@pytest.mark.parametrize(
    ("caller", "seen"),
    [
        (Caller(), ["u1", "u2", "u3"]),
        (Caller(own_user="u2"), ["u2"]),
        (Caller(grants=(Grant.model_validate({"user_id": ["u1", "u3", "u9"]}),)), ["u1", "u3"]),
        (Caller(grants=(Grant.model_validate({"user_id": "u1", "may": ["write"]}),)), []),
        (Caller(grants=()), []),
    ],
)
async def test_a_caller_sees_its_own_users(caller: Caller, seen: list[str]) -> None:
    service = MemoryService(FakeWire(), boundaries=filled("u1", "u2", "u3"))
    call = Call.within(caller, "u1")
    assert names(await service.users.list(call, "", 50, None)) == seen
    assert (await service.users.deployment(call))["boundaries"] == len(seen)


async def test_a_caller_of_one_project_sees_the_numbers_of_that_project() -> None:
    [shown] = (await service_for_p1().users.list(Call.within(OF_P1, ""), "", 50, None))["items"]
    assert {name: shown[name] for name in ("projects", "conversations", "memories")} == {
        "projects": 1,
        "conversations": 1,
        "memories": 2,
    }


async def test_a_caller_of_one_project_sees_the_modes_of_that_project() -> None:
    shown = await service_for_p1().users.boundary(Call.within(OF_P1, "u1"))
    assert shown is not None
    assert shown["modes"] == {"code": {"memories": 2, "embedder": None}}


def test_totals_have_no_numbers_of_a_user_that_is_seen_in_part() -> None:
    assert service_for_p1().users.totals(OF_P1)["memories"] == 0


async def test_the_state_names_no_topic_and_no_address() -> None:
    wire = FakeWire()
    made_with = {"topic_prefix": "memory.", "schemas": ["turn.v1"]}
    lag, service = {"memory.turns": 3}, {**made_with, "vector_index": "embedded", "spaces": {"d3": "general"}}
    wire.results["health"] = {"modes": {}, "lag": lag, "service": service, "vector_index": "unavailable: 10.0.0.7"}
    async with http_over(MemoryService(wire, boundaries=filled("u1"))) as http:
        shown = (await http.get("/v1/deployment")).json()
    assert shown["lag"] == {"turns": 3}
    assert shown["vector_index"] == "unavailable"
    assert shown["service"] == {"vector_index": "embedded", "spaces": {"d3": "general"}}


async def test_totals_are_told_without_a_service() -> None:
    wire = FakeWire()
    wire.failure = Refused("unavailable", "gone")
    async with http_over(MemoryService(wire, boundaries=filled("u1"))) as http:
        assert (await http.get("/v1/deployment")).json()["boundaries"] == 1
        assert (await http.get("/v1/users?limit=0")).status_code == 422


async def test_deployment_shows_the_version_of_the_gateway() -> None:
    shown = await MemoryService(FakeWire()).users.deployment(Call.within(Caller(), "u1"))
    assert shown["versions"]["gateway"] == VERSION


def test_cursor_stays_the_same_text() -> None:
    assert cursor_of("zoë", "prefix") == "WyJ6b8OrIiwgImNmZjZjNThiMWU4OSJd"


@pytest.mark.parametrize("text", ["[" * 100_000, "[1, 2]", '["\\ud800", ""]', "[NaN, 1]", "{}"])
def test_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        position_of(base64.urlsafe_b64encode(text.encode()).decode(), "prefix")
