"""OpenAI's address before the whole pipeline in memory: what earlier conversations said, and what is kept of this."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.keys.callers import KeyCallers
from gateway.service.service import MemoryService
from tests.fakes.provider import completion
from tests.worlds.guarded_gateway import POLICY, headers_of, pipeline_with_grants, write_keys
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message
from tests.worlds.openai_address import COMPLETIONS, OpenAiAddress, openai_address

PATIENT = {"wait": "20"}


@pytest.fixture
async def address(pipeline: InMemoryPipeline) -> AsyncIterator[OpenAiAddress]:
    async with openai_address(MemoryService(InMemoryTransport(pipeline))) as served:
        yield served


async def remember(pipeline: InMemoryPipeline, text: str, **fields: Any) -> None:
    message = turn_message(text, f"t-{text}", conversation_id="earlier", **fields)
    reply = await pipeline.ask(pipeline.names.turns, message)
    assert reply["status"] == "ok", reply


def added(address: OpenAiAddress) -> str:
    """Return what was added to the last request, before its own messages; empty where nothing was."""
    messages = json.loads(address.provider.asked[-1].body)["messages"]
    return str(messages[0]["content"]) if messages[1:2] == [{"role": "assistant", "content": "Ok"}] else ""


async def stored(pipeline: InMemoryPipeline, count: int) -> list[tuple[str, str]]:
    """Return roles and texts, once there are so many turns."""
    await pipeline.until(lambda: len(turns_of(pipeline)) >= count)
    return turns_of(pipeline)


def turns_of(pipeline: InMemoryPipeline) -> list[tuple[str, str]]:
    return sorted((str(memory.role), memory.text) for memory in pipeline.memories.all() if memory.type == "episodic")


async def test_an_earlier_conversation_is_recalled(address: OpenAiAddress, pipeline: InMemoryPipeline) -> None:
    await remember(pipeline, "The spare key is under the third pot.")
    answer = await address.ask("Where is the spare key?", **PATIENT)
    assert answer.headers["x-modestream-memory"] == "used"
    assert "third pot" in added(address)


async def test_an_earlier_answer_is_recalled(address: OpenAiAddress, pipeline: InMemoryPipeline) -> None:
    address.provider.next(completion("Keep the spare key in the blue box."))
    await address.ask("Where shall I keep the spare key?", **PATIENT)
    await stored(pipeline, 2)
    await address.ask("In which box is the spare key?", **PATIENT)
    assert "blue box" in added(address)


async def test_nothing_private_reaches_the_provider(address: OpenAiAddress, pipeline: InMemoryPipeline) -> None:
    await remember(pipeline, "The code of my locker is on a note.")
    await remember(pipeline, "The code of my locker is 4711.", private=True)
    await address.ask("What is the code of my locker?", **PATIENT)
    assert "note" in added(address)
    assert "4711" not in added(address)


async def test_a_conversation_does_not_recall_what_it_says_itself(
    address: OpenAiAddress, pipeline: InMemoryPipeline
) -> None:
    own = [{"role": "user", "content": "The spare key is under the third pot."}]
    await address.ask(own, **PATIENT)
    await stored(pipeline, 2)
    own += [{"role": "assistant", "content": "Tea."}, {"role": "user", "content": "Where is the spare key?"}]
    await address.ask(own, **PATIENT)
    assert json.loads(address.provider.asked[-1].body)["messages"] == own


async def test_a_conversation_that_grows_and_is_retried_is_stored_once(
    address: OpenAiAddress, pipeline: InMemoryPipeline
) -> None:
    own: list[dict[str, str]] = []
    for question, said in (("Tea or coffee?", "Tea."), ("With it?", "Jam.")):
        own.append({"role": "user", "content": question})
        for _ in range(2):
            address.provider.next(completion(said))
            await address.ask(own, **PATIENT)
        own.append({"role": "assistant", "content": said})
    assert await stored(pipeline, 4) == sorted((each["role"], each["content"]) for each in own)
    await pipeline.topics.settled()
    assert len(turns_of(pipeline)) == 4


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[tuple[OpenAiAddress, InMemoryPipeline]]:
    write_keys(tmp_path / "keys.json", "owner", "reader", "writer", "stranger")
    callers = KeyCallers(tmp_path / "keys.json", POLICY, 1e6)
    async with (
        pipeline_with_grants(tmp_path / "data").running() as pipeline,
        openai_address(MemoryService(InMemoryTransport(pipeline)), callers=callers) as served,
    ):
        yield served, pipeline


@pytest.mark.parametrize(
    ("key", "memory", "turns"),
    [("owner", "used", 2), ("reader", "used", 0), ("writer", "unavailable", 2), ("stranger", "unavailable", 0)],
)
async def test_a_key_does_what_its_grants_admit(
    guarded: tuple[OpenAiAddress, InMemoryPipeline], key: str, memory: str, turns: int
) -> None:
    address, pipeline = guarded
    body = {"model": "m", "user": "u1", "messages": [{"role": "user", "content": "Tea?"}]}
    headers = headers_of(key) | {"x-modestream-wait": "20"}
    answer = await address.http.post(COMPLETIONS, json=body, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["x-modestream-memory"] == memory
    outcome = "stored" if turns else "refused"
    while address.count("turns_total", outcome=outcome) != 2:
        await pipeline.topics.settled()
    assert len(await stored(pipeline, turns)) == turns
