"""Adapters with their frameworks, over the in-memory pipeline; skipped where a framework is not installed."""

# ruff: noqa: PLC0415 - a framework that is not installed skips its test alone

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from modestream_client import MemoryCalls, MemoryUnreachable, Reply, Written
from modestream_client import outbox as outbox_module
from modestream_client.boundary import USER_BOUNDARY
from modestream_client.outbox import with_outbox

from tests.worlds.in_memory_client import InMemoryTransport, client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline


@pytest.fixture
def memory(pipeline: InMemoryPipeline) -> MemoryCalls:
    """A client of the user u1."""
    return client_of(pipeline)


class Service(InMemoryTransport):
    """The pipeline, which can be away."""

    is_away = False

    async def request(self, *positional: Any, **named: Any) -> tuple[Reply, Written]:
        if self.is_away:
            raise MemoryUnreachable("refused")
        return await super().request(*positional, **named)


@pytest.fixture
def service(pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(outbox_module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(outbox_module, "LONGEST_PAUSE_S", 0.02)
    return Service(pipeline)


@pytest.fixture
async def spooling(service: Service, tmp_path: Path) -> AsyncIterator[MemoryCalls]:
    """A client with an outbox."""
    transport = with_outbox(service, tmp_path / "outbox", 5.0, USER_BOUNDARY)
    await transport.open()
    yield MemoryCalls(transport, user_id="ana")
    await transport.close()


async def turns_of(memory: MemoryCalls, number: int) -> list[str]:
    """Return the texts of ana's turns, in order, once there are so many."""
    async with asyncio.timeout(20):
        while len(listed := [turn async for turn in memory.iter_memories(projects="*", types=["episodic"])]) < number:
            await asyncio.sleep(0.01)
    return [turn.text for turn in sorted(listed, key=lambda turn: turn.occurred_at)]


async def test_google_adk_finds_a_session_by_user_and_app(memory: MemoryCalls) -> None:
    pytest.importorskip("google.adk")
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
    from google.genai import types
    from modestream_client.adapters.google_adk import ModestreamMemoryService

    def said(author: str, text: str, number: int) -> Event:
        content = types.Content(role="user", parts=[types.Part(text=text)])
        return Event(author=author, content=content, id=f"e{number}", timestamp=1772357400.0 + number)

    events = [
        said("user", "The kettle is blue.", 1),
        said("helper", "Noted: a blue kettle.", 2),
        Event(author="helper"),
    ]
    session = Session(id="s1", app_name="kitchen", user_id="ana", events=events)
    service = ModestreamMemoryService(memory)
    for _ in range(2):
        await service.add_session_to_memory(session)
    found = await service.search_memory(app_name="kitchen", user_id="ana", query="what colour is the kettle?")
    texts = [(memory.author, part.text) for memory in found.memories for part in memory.content.parts or ()]
    assert sorted(texts) == [("helper", "Noted: a blue kettle."), ("user", "The kettle is blue.")]
    for app, user in (("garden", "ana"), ("kitchen", "ben")):
        assert (await service.search_memory(app_name=app, user_id=user, query="kettle")).memories == []


def a_session(number: int) -> Any:
    """A session of Google's ADK with so many events."""
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
    from google.genai import types

    events = [
        Event(
            author="user",
            content=types.Content(role="user", parts=[types.Part(text=f"Crate {at} is in the hall.")]),
            id=f"e{at}",
            timestamp=1772357400.0 + at,
        )
        for at in range(number)
    ]
    return Session(id="s1", app_name="kitchen", user_id="ana", events=events)


async def test_google_adk_finds_nothing_while_the_memory_is_away(spooling: MemoryCalls, service: Service) -> None:
    pytest.importorskip("google.adk")
    from modestream_client.adapters.google_adk import ModestreamMemoryService

    service.is_away = True
    found = await ModestreamMemoryService(spooling).search_memory(app_name="kitchen", user_id="ana", query="kettle")
    assert found.memories == []


async def test_google_adk_adds_a_session_once_the_memory_is_back(spooling: MemoryCalls, service: Service) -> None:
    pytest.importorskip("google.adk")
    from modestream_client.adapters.google_adk import ModestreamMemoryService

    service.is_away = True
    await ModestreamMemoryService(spooling).add_session_to_memory(a_session(3))
    service.is_away = False
    assert await turns_of(spooling, 3) == [f"Crate {at} is in the hall." for at in range(3)]


async def test_google_adk_tries_one_event_of_a_session_that_can_not_be_stored(
    pipeline: InMemoryPipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("google.adk")
    from modestream_client.adapters.google_adk import ModestreamMemoryService

    away = Service(pipeline)
    away.is_away = True
    await ModestreamMemoryService(MemoryCalls(away)).add_session_to_memory(a_session(3))
    assert caplog.text.count("goes on without its memory") == 1


async def test_agent_framework_goes_on_while_the_memory_is_away(spooling: MemoryCalls, service: Service) -> None:
    framework = pytest.importorskip("agent_framework")
    from modestream_client.adapters.agent_framework import ModestreamContextProvider

    provider, session = ModestreamContextProvider(spooling, user_id="ana"), framework.AgentSession()
    agent: Any = SimpleNamespace()
    context = framework.SessionContext(input_messages=[framework.Message("user", ["The kettle is blue."])])
    service.is_away = True
    await provider.before_run(agent=agent, session=session, context=context, state={})
    answer = framework.Message("assistant", ["Noted."], message_id="m-1")
    context._response = framework.AgentResponse(messages=[answer])
    await provider.after_run(agent=agent, session=session, context=context, state={})
    service.is_away = False
    assert await turns_of(spooling, 2) == ["The kettle is blue.", "Noted."]


async def test_langgraph_store_is_empty_while_the_memory_is_away(spooling: MemoryCalls, service: Service) -> None:
    pytest.importorskip("langgraph.store.base")
    from modestream_client.adapters.langgraph import ModestreamStore

    store = ModestreamStore(spooling, user_id="ana")
    await store.aput(("users",), "kettle", {"text": "The kettle is blue."})
    service.is_away = True
    assert await store.aget(("users",), "kettle") is None
    assert await store.asearch(("users",), query="kettle") == []
    assert await store.alist_namespaces() == []


async def test_langgraph_value_that_is_put_while_the_memory_is_away_replaces_the_former_one(
    spooling: MemoryCalls, service: Service
) -> None:
    pytest.importorskip("langgraph.store.base")
    from modestream_client.adapters.langgraph import ModestreamStore

    store = ModestreamStore(spooling, user_id="ana")
    await store.aput(("users",), "kettle", {"text": "The kettle is blue."})
    service.is_away = True
    await store.aput(("users",), "kettle", {"text": "The kettle is green."})
    service.is_away = False
    await turns_of(spooling, 2)
    kettle = await store.aget(("users",), "kettle")
    assert kettle is not None
    assert kettle.value == {"text": "The kettle is green."}
    found = await store.asearch(("users",), query="what colour is the kettle?")
    assert [item.value for item in found] == [{"text": "The kettle is green."}]
    await store.adelete(("users",), "kettle")
    assert await store.aget(("users",), "kettle") is None


async def test_langgraph_value_is_not_deleted_while_the_memory_is_away(spooling: MemoryCalls, service: Service) -> None:
    pytest.importorskip("langgraph.store.base")
    from modestream_client.adapters.langgraph import ModestreamStore

    service.is_away = True
    with pytest.raises(MemoryUnreachable):
        await ModestreamStore(spooling, user_id="ana").adelete(("users",), "kettle")


async def test_agent_framework_adds_memories_and_stores_the_run(memory: MemoryCalls) -> None:
    framework = pytest.importorskip("agent_framework")
    from modestream_client.adapters.agent_framework import ModestreamContextProvider

    provider = ModestreamContextProvider(memory, user_id="ana")
    agent: Any = SimpleNamespace()

    async def run(session: Any, question: str, answer: str) -> list[str]:
        context = framework.SessionContext(input_messages=[framework.Message("user", [question])])
        await provider.before_run(agent=agent, session=session, context=context, state={})
        context._response = framework.AgentResponse(messages=[framework.Message("assistant", [answer])])
        await provider.after_run(agent=agent, session=session, context=context, state={})
        return [message.text for message in context.context_messages.get("modestream", [])]

    assert await run(framework.AgentSession(), "The kettle is blue.", "Noted.") == []
    [added] = await run(framework.AgentSession(), "What colour is the kettle?", "Blue.")
    assert "The kettle is blue." in added
    assert (await memory.list_memories(user_id="ana")).total == 4


async def test_agent_framework_edits_a_message_that_comes_again(memory: MemoryCalls) -> None:
    framework = pytest.importorskip("agent_framework")
    from modestream_client.adapters.agent_framework import ModestreamContextProvider

    provider, session = ModestreamContextProvider(memory, user_id="ana"), framework.AgentSession()
    agent: Any = SimpleNamespace()

    async def said(text: str) -> Any:
        message = framework.Message("user", [text], message_id="m-1")
        context = framework.SessionContext(input_messages=[message])
        await provider.after_run(agent=agent, session=session, context=context, state={})
        [stored] = (await memory.list_memories(user_id="ana")).items
        return stored

    await said("The kettle is blue.")
    again = await said("The kettle is green.")
    assert again.text == "The kettle is green."


async def test_langgraph_store_puts_gets_searches_and_deletes(memory: MemoryCalls) -> None:
    pytest.importorskip("langgraph.store.base")
    from modestream_client.adapters.langgraph import ModestreamStore

    store = ModestreamStore(memory, user_id="ana")
    await store.aput(("users", "a/b"), "kettle", {"text": "The kettle is blue.", "size": 2})
    await store.aput(("users", "a/b"), "lamp", {"text": "The lamp is red.", "size": 5})
    await store.aput(("shops",), "kettle", {"text": "The kettle is sold."})
    await store.aput(("users", "a/b"), "kettle", {"text": "The kettle is green.", "size": 3})
    kettle = await store.aget(("users", "a/b"), "kettle")
    assert kettle is not None
    assert kettle.value == {"text": "The kettle is green.", "size": 3}
    assert kettle.key == "kettle"
    assert kettle.updated_at >= kettle.created_at
    found = await store.asearch(("users",), query="kettle")
    assert found[0].key == "kettle"
    assert found[0].namespace == ("users", "a/b")
    assert [item.key for item in await store.asearch(("users",), filter={"size": {"$gt": 3}})] == ["lamp"]
    assert await store.alist_namespaces() == [("shops",), ("users", "a/b")]
    assert await store.alist_namespaces(suffix=("*", "a/b")) == [("users", "a/b")]
    assert await store.alist_namespaces(prefix=("users",), max_depth=1) == [("users",)]
    await store.adelete(("users", "a/b"), "kettle")
    assert await store.aget(("users", "a/b"), "kettle") is None
    await store.aput(("users", "a/b"), "kettle", {"text": "A new kettle."})
    again = await asyncio.to_thread(store.get, ("users", "a/b"), "kettle")
    assert again is not None
    assert again.value == {"text": "A new kettle."}
    with pytest.raises(RuntimeError, match="aget"):
        store.get(("users", "a/b"), "kettle")
