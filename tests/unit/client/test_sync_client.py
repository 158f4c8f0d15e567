"""The clients without `await`: the methods, results, types and errors of their asynchronous twins, from any thread."""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, assert_type

import httpx
import pytest
from modestream_client import (
    HttpMemoryClient,
    ListedMemory,
    MemoryClient,
    MemoryClosed,
    MemoryServiceError,
    MemoryUnreachable,
    Remembered,
    SyncHttpMemoryClient,
    SyncMemoryClient,
)

TWINS = [(SyncMemoryClient, MemoryClient), (SyncHttpMemoryClient, HttpMemoryClient)]

MEMORY: dict[str, Any] = {
    "memory_id": "m1", "turn_id": "t1", "conversation_id": "c1", "scope": {"user_id": "u1", "project_id": "default"},
    "type": "episodic", "mode": "general", "mode_source": "fallback", "role": "user", "speaker": None, "text": "x",
    "occurred_at": "2026-03-01T09:30:00Z", "evidence": [], "version": 1, "embedding_status": "ready",
    "importance": None, "metadata": {}, "superseded_by": None,
}  # fmt: skip

REMEMBERED = {
    "memory_id": "m1", "turn_id": "t1", "mode": "general", "mode_source": "fallback", "version": 1, "duplicate": False,
    "read_after": "0:7",
}  # fmt: skip


class Gateway:
    """A gateway that answers what it is told; a request for the health waits until the test lets it go."""

    def __init__(self) -> None:
        self.waits = threading.Event()
        self.callers: list[str] = []
        self.pages: Iterator[dict[str, Any]] = (
            {"items": [MEMORY], "next": following, "total": 2} for following in ("more", None)
        )

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer by the path."""
        self.callers.append(request.headers.get("caller", ""))
        if request.url.path.endswith("/health"):
            self.waits.set()
            await asyncio.Event().wait()
        if request.url.path.endswith("/turns"):
            return httpx.Response(200, json=REMEMBERED)
        if request.url.path.endswith("/memories"):
            return httpx.Response(200, json=next(self.pages))
        if request.url.path.endswith("/modes"):
            return httpx.Response(409, json={"code": "conflict", "detail": "not now"})
        return httpx.Response(200, json={})

    def client(self, **how: Any) -> SyncHttpMemoryClient:
        """Return a client of it that is not open."""
        connections = httpx.AsyncClient(transport=httpx.MockTransport(self.answer))
        return SyncHttpMemoryClient("http://gateway", user_id="u1", client=connections, **how)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def memory(gateway: Gateway) -> Iterator[SyncHttpMemoryClient]:
    """An open client."""
    with gateway.client() as opened:
        yield opened


def public_methods(client: type) -> dict[str, Any]:
    """Return the methods by their names."""
    return {name: call for name, call in inspect.getmembers(client, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize(("sync", "twin"), TWINS)
def test_client_has_every_method_of_its_twin(sync: type, twin: type) -> None:
    assert public_methods(twin).keys() | {"open", "close"} == public_methods(sync).keys()


@pytest.mark.parametrize(("sync", "twin"), TWINS)
def test_no_method_is_awaited(sync: type, twin: type) -> None:
    assert not [name for name, call in public_methods(sync).items() if inspect.iscoroutinefunction(call)]


@pytest.mark.parametrize(("sync", "twin"), TWINS)
def test_parameters_are_those_of_the_twin(sync: type, twin: type) -> None:
    asked = {name: inspect.signature(call).parameters for name, call in public_methods(twin).items()}
    assert {name: inspect.signature(public_methods(sync)[name]).parameters for name in asked} == asked


@pytest.mark.parametrize(("sync", "twin"), TWINS)
def test_it_is_made_like_its_twin(sync: type, twin: type) -> None:
    assert inspect.signature(sync).parameters == inspect.signature(twin).parameters


def test_examples_of_docstrings_await_nothing() -> None:
    assert not [name for name, call in public_methods(SyncMemoryClient).items() if "await " in (call.__doc__ or "")]


def test_call_returns_the_result(memory: SyncHttpMemoryClient) -> None:
    assert assert_type(memory.remember("x"), Remembered).read_after == "0:7"


def test_items_of_all_pages_are_iterated(memory: SyncHttpMemoryClient) -> None:
    listed = assert_type(memory.iter_memories(), Iterator[ListedMemory])
    assert [each.memory_id for each in listed] == ["m1", "m1"]


def test_iteration_that_is_left_asks_for_no_further_page(memory: SyncHttpMemoryClient, gateway: Gateway) -> None:
    next(memory.iter_memories())
    assert next(gateway.pages)["next"] is None


def test_error_is_that_of_the_service(memory: SyncHttpMemoryClient) -> None:
    with pytest.raises(MemoryServiceError) as refused:
        memory.list_modes()
    assert refused.value.code == "conflict"


def test_client_serves_several_threads(memory: SyncHttpMemoryClient) -> None:
    with ThreadPoolExecutor(8) as threads:
        said = list(threads.map(lambda number: memory.remember(f"text {number}"), range(32)))
    assert [each.memory_id for each in said] == ["m1"] * 32


async def test_it_works_inside_a_running_event_loop(gateway: Gateway) -> None:
    with gateway.client() as memory:
        assert memory.remember("x").memory_id == "m1"


def test_call_before_it_is_open_raises(gateway: Gateway) -> None:
    with pytest.raises(MemoryClosed, match="with"):
        gateway.client().remember("x")


def test_call_after_its_block_raises(memory: SyncHttpMemoryClient) -> None:
    memory.close()
    with pytest.raises(MemoryClosed):
        memory.remember("x")


def test_closing_twice_is_closing_once(memory: SyncHttpMemoryClient) -> None:
    memory.close()
    memory.close()


def test_call_that_waits_ends_when_the_client_is_closed(memory: SyncHttpMemoryClient, gateway: Gateway) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(memory.health)
        gateway.waits.wait()
        memory.close()
        with pytest.raises(MemoryClosed):
            waiting.result()


def test_closed_client_has_no_thread(gateway: Gateway) -> None:
    before = threading.active_count()
    with gateway.client():
        pass
    assert threading.active_count() == before


def test_client_can_be_opened_again(gateway: Gateway) -> None:
    memory = gateway.client()
    with memory:
        pass
    with memory:
        assert memory.remember("x").memory_id == "m1"


def test_opening_fails_as_its_twin_does() -> None:
    with pytest.raises(MemoryUnreachable):
        SyncHttpMemoryClient("http://127.0.0.1:1").open()


def test_client_that_could_not_open_has_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(MemoryUnreachable):
        SyncHttpMemoryClient("http://127.0.0.1:1").open()
    assert threading.active_count() == before


def test_open_client_is_not_opened_again(memory: SyncHttpMemoryClient) -> None:
    with pytest.raises(RuntimeError, match="already"):
        memory.open()


def test_headers_see_the_context_of_the_caller(gateway: Gateway) -> None:
    caller = ContextVar("caller", default="")
    with gateway.client(headers=lambda: {"caller": caller.get()}) as memory:
        caller.set("me")
        memory.remember("x")
    assert gateway.callers[-1] == "me"


def test_call_in_its_own_thread_raises(gateway: Gateway) -> None:
    problems: list[BaseException] = []

    def headers() -> dict[str, str]:
        try:
            client.remember("x")
        except RuntimeError as problem:
            problems.append(problem)
        return {}

    client = gateway.client(headers=headers)
    with client:
        pass
    assert "wait for itself" in str(problems[0])


def test_address_may_name_its_scheme() -> None:
    with pytest.raises(MemoryUnreachable, match=r"Kafka at 127\.0\.0\.1:1"):
        SyncMemoryClient("kafka://127.0.0.1:1", timeout=2).open()
