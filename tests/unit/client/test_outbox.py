"""The outbox of a client: turns wait on disk while the service is away, and are stored once, in order."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from modestream_client import (
    HttpMemoryClient,
    MemoryClosed,
    MemoryOutboxFull,
    MemoryServiceError,
    MemoryUnreachable,
    SyncHttpMemoryClient,
)
from modestream_client import outbox as module
from modestream_client.failures import MemoryClientError
from modestream_client.outbox import Outbox

from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.02)


class Service:
    """A gateway that can be away; `lost` answers are those that never arrive though the request did."""

    def __init__(self, gateway: httpx.AsyncClient, folder: Path) -> None:
        self._gateway = gateway
        self._folder = folder
        self.is_away = False
        self.lost = 0

    def client(self, **how: object) -> HttpMemoryClient:
        connections = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        options = {"user_id": "u1", "client": connections, "outbox": self._folder, "timeout": 5.0, **how}
        return HttpMemoryClient("http://localhost", **options)  # type: ignore[arg-type]

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        if self.is_away:
            raise httpx.ConnectError("refused")
        answer = await self._gateway.send(
            self._gateway.build_request(
                request.method, request.url.raw_path.decode(), content=request.content, headers=request.headers
            )
        )
        if self.lost and request.url.path.endswith("/turns"):
            self.lost -= 1
            raise httpx.ReadError("connection lost")
        return httpx.Response(answer.status_code, content=answer.content, headers={"content-type": "application/json"})


@pytest.fixture
def wire() -> FakeWire:
    return FakeWire()


@pytest.fixture
async def service(wire: FakeWire, tmp_path: Path) -> AsyncIterator[Service]:
    async with http_over(wire) as gateway:
        yield Service(gateway, tmp_path / "outbox")


def contents(wire: FakeWire) -> list[str]:
    """Return the stored texts, in the order in which they were stored."""
    return list(wire.stored.values())


def box(tmp_path: Path, user: str = "u1") -> Outbox:
    return Outbox(Outbox.path_of(tmp_path / "outbox", user))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_turn_is_answered_as_without_an_outbox(service: Service) -> None:
    async with service.client() as memory:
        assert (await memory.remember("The cat sleeps.", turn_id="t1")).memory_id == "m-t1"


async def test_an_answered_turn_leaves_the_outbox(service: Service, tmp_path: Path) -> None:
    async with service.client() as memory:
        await memory.remember("The cat sleeps.")
    assert box(tmp_path).count() == 0


async def test_a_turn_waits_while_the_service_is_away(service: Service) -> None:
    async with service.client() as memory:
        service.is_away = True
        assert (await memory.remember("The cat sleeps.")).is_queued


async def test_a_waiting_turn_has_its_id_and_says_why_it_waits(service: Service) -> None:
    async with service.client() as memory:
        service.is_away = True
        queued = await memory.remember("The cat sleeps.", turn_id="t1")
    assert queued.turn_id == "t1"
    assert [warning.code for warning in queued.warnings] == ["queued"]


async def test_waiting_turns_are_stored_in_order_when_the_service_is_back(service: Service, wire: FakeWire) -> None:
    texts = [f"Number {number}." for number in range(20)]
    async with service.client() as memory:
        service.is_away = True
        for text in texts:
            await memory.remember(text)
        service.is_away = False
        await until(lambda: len(wire.stored) == 20)
    assert contents(wire) == texts


async def test_turns_at_once_are_stored_in_the_order_of_their_calls(service: Service, wire: FakeWire) -> None:
    texts = [f"Number {number}." for number in range(20)]
    async with service.client() as memory:
        first = [asyncio.create_task(memory.remember(text, turn_id=text)) for text in texts[:1]]
        await asyncio.gather(*first)
        for text in texts[1:]:
            await memory.remember(text, turn_id=text, wait=False)
        await until(lambda: len(wire.stored) == 20)
    assert contents(wire) == texts


async def test_a_client_opens_while_the_service_is_away(service: Service, wire: FakeWire) -> None:
    service.is_away = True
    async with service.client() as memory:
        await memory.remember("The cat sleeps.")
        service.is_away = False
        await until(lambda: contents(wire) == ["The cat sleeps."])


@pytest.mark.parametrize("status", [404, 429, 500, 502, 503])
async def test_a_turn_waits_while_a_proxy_answers_instead_of_the_service(status: int, tmp_path: Path) -> None:
    proxy = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(status, text="<h1>Sorry</h1>")))
    async with HttpMemoryClient("http://localhost", user_id="u1", client=proxy, outbox=tmp_path / "outbox") as memory:
        assert (await memory.remember("The cat sleeps.")).is_queued


async def test_an_outbox_says_why_its_turns_wait(service: Service, tmp_path: Path) -> None:
    service.is_away = True
    async with service.client() as memory:
        await memory.remember("The cat sleeps.")
    failure = box(tmp_path).failure()
    assert failure is not None
    assert "no connection to the gateway" in failure[1]


async def test_a_question_is_not_queued(service: Service) -> None:
    service.is_away = True
    async with service.client() as memory:
        with pytest.raises(MemoryUnreachable):
            await memory.retrieve("what does the cat do?")


async def test_the_next_client_sends_what_one_has_left(service: Service, wire: FakeWire) -> None:
    service.is_away = True
    async with service.client() as memory:
        await memory.remember("The cat sleeps.")
    service.is_away = False
    async with service.client(user_id="u2"):
        await until(lambda: contents(wire) == ["The cat sleeps."])


async def test_a_turn_of_which_the_answer_was_lost_is_stored_once(service: Service, wire: FakeWire) -> None:
    service.lost = 1
    async with service.client() as memory:
        await memory.remember("The cat sleeps.")
        await until(lambda: len(wire.records) == 2)
    assert contents(wire) == ["The cat sleeps."]


async def test_a_refused_turn_is_the_callers_error(service: Service) -> None:
    async with service.client() as memory:
        with pytest.raises(MemoryServiceError, match="invalid_value"):
            await memory.remember("The cat sleeps.", importance=7)


async def test_a_refused_turn_of_a_waiting_caller_leaves_the_outbox(service: Service, tmp_path: Path) -> None:
    async with service.client() as memory:
        with pytest.raises(MemoryServiceError):
            await memory.remember("The cat sleeps.", importance=7)
    assert box(tmp_path).refused() == []


async def test_a_turn_that_is_refused_later_holds_up_no_other(service: Service, wire: FakeWire) -> None:
    async with service.client() as memory:
        service.is_away = True
        await memory.remember("Too important.", importance=7)
        await memory.remember("The cat sleeps.")
        service.is_away = False
        await until(lambda: contents(wire) == ["The cat sleeps."])


async def test_a_turn_that_is_refused_later_stays_with_its_error(service: Service, tmp_path: Path) -> None:
    async with service.client() as memory:
        service.is_away = True
        await memory.remember("Too important.", importance=7)
        service.is_away = False
        await until(lambda: bool(box(tmp_path).refused()))
    assert "importance" in str(box(tmp_path).refused()[0].refused)


async def test_a_key_that_is_no_longer_known_refuses_no_turn(service: Service, tmp_path: Path, wire: FakeWire) -> None:
    async with service.client() as memory:
        wire.failure = MemoryServiceError("not_allowed", "no")
        assert (await memory.remember("The cat sleeps.")).is_queued
    assert box(tmp_path).count() == 1


async def test_one_process_sends_at_a_time(service: Service, tmp_path: Path) -> None:
    with box(tmp_path).sending() as is_alone:
        assert is_alone
        async with service.client() as memory:
            queued = await memory.remember("The cat sleeps.")
    assert "another process" in queued.warnings[0].message


async def test_a_turn_that_another_process_has_sent_is_not_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Outbox.add

    def add_and_lose(outbox: Outbox, *turn: Any) -> list[int]:
        numbers = add(outbox, *turn)
        for number in numbers:
            outbox.remove(number)
        return numbers

    monkeypatch.setattr(Outbox, "add", add_and_lose)
    async with service.client(timeout=60.0) as memory, asyncio.timeout(10):
        assert (await memory.remember("The cat sleeps.")).is_queued


async def test_a_turn_that_the_close_comes_before_is_not_stored(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, began, closed = Outbox.add, Event(), Event()

    def add_late(outbox: Outbox, *turn: Any) -> list[int]:
        began.set()
        closed.wait(10)
        return add(outbox, *turn)

    monkeypatch.setattr(Outbox, "add", add_late)
    memory = await service.client().__aenter__()
    late = asyncio.create_task(memory.remember("The cat sleeps."))
    await asyncio.to_thread(began.wait, 10)
    await memory.__aexit__(None, None, None)
    closed.set()
    with pytest.raises(MemoryClosed):
        await late


async def test_a_turn_on_disk_at_the_close_waits(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    add, added, closed = Outbox.add, Event(), Event()

    def add_and_wait(outbox: Outbox, *turn: Any) -> list[int]:
        numbers = add(outbox, *turn)
        added.set()
        closed.wait(10)
        return numbers

    monkeypatch.setattr(Outbox, "add", add_and_wait)
    memory = await service.client(timeout=60.0).__aenter__()
    late = asyncio.create_task(memory.remember("The cat sleeps."))
    await asyncio.to_thread(added.wait, 10)
    await memory.__aexit__(None, None, None)
    closed.set()
    async with asyncio.timeout(10):
        assert (await late).is_queued


async def test_a_closed_client_takes_no_turn(service: Service) -> None:
    async with service.client() as memory:
        pass
    with pytest.raises(MemoryClosed):
        await memory.remember("The cat sleeps.")


async def test_a_broken_file_is_an_error_of_its_user_alone(service: Service, tmp_path: Path) -> None:
    broken = box(tmp_path, "u2")
    broken.close()
    broken.path.write_bytes(b"no database" * 100)
    async with service.client() as memory:
        assert not (await memory.remember("The cat sleeps.")).is_queued


async def test_a_broken_file_is_an_error_of_the_client(service: Service, tmp_path: Path) -> None:
    broken = box(tmp_path)
    broken.close()
    broken.path.write_bytes(b"no database" * 100)
    async with service.client() as memory:
        with pytest.raises(MemoryClientError, match="is damaged: move it away"):
            await memory.remember("The cat sleeps.")


async def test_a_folder_that_can_not_be_made_is_an_error_of_the_client(service: Service, tmp_path: Path) -> None:
    (tmp_path / "outbox").write_text("a file")
    async with service.client() as memory:
        with pytest.raises(MemoryClientError, match="outbox"):
            await memory.remember("The cat sleeps.")


async def test_a_full_outbox_refuses_a_turn(tmp_path: Path) -> None:
    small = Outbox(tmp_path / "small.sqlite", max_bytes=100_000)
    with pytest.raises(MemoryOutboxFull):
        small.add({"content": "x" * 1000} for _ in range(1000))


def test_a_full_outbox_has_nothing_of_what_it_refused(tmp_path: Path) -> None:
    small = Outbox(tmp_path / "small.sqlite", max_bytes=100_000)
    with pytest.raises(MemoryOutboxFull):
        small.add({"content": "x" * 1000} for _ in range(1000))
    assert small.count() == 0


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert box(tmp_path).path.stat().st_mode & 0o077 == 0


def test_what_was_sent_is_overwritten(tmp_path: Path) -> None:
    kept = box(tmp_path)
    [number] = kept.add([{"content": "a word nobody else says"}])
    kept.remove(number)
    kept.close()
    assert b"a word nobody else says" not in b"".join(file.read_bytes() for file in kept.path.parent.iterdir())


async def test_a_place_of_a_waiting_turn_is_not_known(service: Service) -> None:
    async with service.client() as memory:
        service.is_away = True
        queued = await memory.remember("The cat sleeps.")
    with pytest.raises(ValueError, match="outbox"):
        _ = queued.read_after


def test_a_synchronous_client_has_an_outbox(tmp_path: Path) -> None:
    with SyncHttpMemoryClient("http://127.0.0.1:1", user_id="u1", outbox=tmp_path) as memory:
        assert memory.remember("The cat sleeps.").is_queued
