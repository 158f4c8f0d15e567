"""The clients without `await`: the methods, results, types and errors of their asynchronous twins, from any thread."""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, assert_type

import httpx
import pytest
from modestream_client import (
    HttpMemoryClient,
    ListedProject,
    MemoryClient,
    MemoryClosed,
    MemoryServiceError,
    MemoryUnreachable,
    Remembered,
    SyncHttpMemoryClient,
    SyncMemoryClient,
)

REMEMBERED = dict.fromkeys(("memory_id", "turn_id", "mode", "mode_source", "version", "duplicate"), "x")
PROJECT = {"scope": {}, "memories": 1, "conversations": 1, "first": "", "last": "", "modes": {}}


class Gateway:
    """A gateway; a request for the health waits for ever."""

    def __init__(self) -> None:
        self.is_waiting = threading.Event()
        self.cursors = iter(("more", None))

    async def answer(self, request: httpx.Request) -> httpx.Response:
        match request.url.path.rpartition("/")[2]:
            case "health":
                self.is_waiting.set()
                await asyncio.Event().wait()
            case "turns":
                return httpx.Response(200, json={**REMEMBERED, "read_after": "0:7"})
            case "projects":
                return httpx.Response(200, json={"items": [PROJECT], "next": next(self.cursors), "total": 2})
            case "modes":
                return httpx.Response(409, json={"code": "conflict", "detail": "not now"})
        return httpx.Response(200, json={})

    def client(self, **how: Any) -> SyncHttpMemoryClient:
        connections = httpx.AsyncClient(transport=httpx.MockTransport(self.answer))
        return SyncHttpMemoryClient("http://gateway", user_id="u1", client=connections, **how)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def memory(gateway: Gateway) -> Iterator[SyncHttpMemoryClient]:
    with gateway.client() as opened:
        yield opened


@pytest.mark.parametrize(("sync", "twin"), [(SyncMemoryClient, MemoryClient), (SyncHttpMemoryClient, HttpMemoryClient)])
def test_every_call_of_the_twin_is_there_with_its_parameters_and_not_awaited(sync: type, twin: type) -> None:
    public = [name for name, _ in inspect.getmembers(twin, inspect.isfunction) if not name.startswith("_")]
    calls = [inspect.signature(getattr(twin, name)).parameters for name in (*public, "__init__")]
    assert [inspect.signature(getattr(sync, name)).parameters for name in (*public, "__init__")] == calls
    assert [name for name, _ in inspect.getmembers(sync, inspect.iscoroutinefunction)] == ["_serve"]


async def test_result_is_that_of_the_twin_inside_a_running_event_loop_too(memory: SyncHttpMemoryClient) -> None:
    assert assert_type(memory.remember("x"), Remembered).read_after == "0:7"


def test_items_of_all_pages_are_iterated(memory: SyncHttpMemoryClient) -> None:
    assert len(list(assert_type(memory.iter_projects(), Iterator[ListedProject]))) == 2


def test_error_is_that_of_the_service(memory: SyncHttpMemoryClient) -> None:
    with pytest.raises(MemoryServiceError, match="conflict"):
        memory.list_modes()


def test_client_serves_several_threads(memory: SyncHttpMemoryClient) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert len(list(threads.map(memory.remember, "abcdefghijklmnop"))) == 16


def test_it_is_closed_before_and_after_its_block_and_can_be_opened_again(gateway: Gateway) -> None:
    memory = gateway.client()
    for _ in range(2):
        with pytest.raises(MemoryClosed):
            memory.remember("x")
        with memory:
            memory.remember("x")
            with pytest.raises(RuntimeError, match="already"):
                memory.open()
    memory.close()


def test_call_that_waits_ends_when_the_client_is_closed(memory: SyncHttpMemoryClient, gateway: Gateway) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(memory.health)
        gateway.is_waiting.wait()
        memory.close()
        with pytest.raises(MemoryClosed):
            waiting.result()


def test_client_that_is_not_open_has_no_thread(gateway: Gateway) -> None:
    before = threading.active_count()
    with gateway.client():
        pass
    with pytest.raises(MemoryUnreachable, match=r"Kafka at 127\.0\.0\.1:1"):
        SyncMemoryClient("kafka://127.0.0.1:1", timeout=2).open()
    assert threading.active_count() == before


def test_call_in_its_own_thread_raises(gateway: Gateway) -> None:
    opening: list[SyncHttpMemoryClient] = []
    opening.append(gateway.client(headers=lambda: {"caller": opening[0].remember("x").mode or ""}))
    with pytest.raises(RuntimeError, match="deadlock"):
        opening[0].open()
