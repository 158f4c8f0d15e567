"""`POST …/answers`: the language model's answers over HTTP, whole and as server-sent events."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.connection_settings import MODEL_TOOLS
from gateway.http.document import ModelAnswer
from tests.fakes.language_model import ONE_PROFILE
from tests.harnesses.mcp import answer, error, in_process
from tests.worlds.guarded_gateway import GuardedGateway, gateway_of, write_keys
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]

PATH = "/v1/users/u1/answers"
QUESTION = {"query": "where is the key?", "conversation_id": "c1"}
WORDS = "Under the\u2028pot."


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        running.language.words = ["Under the\u2028", "pot."]
        yield running


@pytest.fixture
async def gateway(pipeline: InMemoryPipeline) -> AsyncIterator[GuardedGateway]:
    async with gateway_of(pipeline) as made:
        yield made


async def streamed(gateway: GuardedGateway, **fields: Any) -> list[tuple[str, Json]]:
    """Return the events of an answer, each with its name and its data."""
    response = await gateway.http.post(PATH, json={**QUESTION, "stream": True, **fields})
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [event.split("\n") for event in response.text.rstrip("\n").split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in lines]


async def test_whole_answer_has_the_documented_shape(gateway: GuardedGateway) -> None:
    response = await gateway.http.post(PATH, json=QUESTION)
    assert response.status_code == 200
    assert ModelAnswer.model_validate_json(response.content).text == WORDS


async def test_streamed_answer_is_pieces_and_then_the_whole(gateway: GuardedGateway) -> None:
    *pieces, (name, result) = await streamed(gateway)
    assert "".join(data["text"] for _, data in pieces) == WORDS
    assert name == "done"
    assert ModelAnswer.model_validate(result).text == WORDS


async def test_streamed_answer_that_fails_ends_in_a_problem(
    gateway: GuardedGateway, pipeline: InMemoryPipeline
) -> None:
    pipeline.language.become("down")
    [(name, problem)] = await streamed(gateway)
    assert name == "error"
    assert problem["status"] == 503
    assert problem["detail"] == "the language model is out of order"


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"profile": "never"}, "profile"), ({"querry": "q"}, "querry"), ({"stream": "yes"}, "stream"),
     ({"project_id": "*"}, "project_id"), ({"conversation_id": None}, "conversation_id")],
)  # fmt: skip
async def test_request_that_makes_no_sense_is_a_problem(gateway: GuardedGateway, fields: Json, field: str) -> None:
    response = await gateway.http.post(PATH, json={**QUESTION, "stream": True, **fields})
    assert response.status_code == 422
    assert response.json()["field"] == field


async def test_model_in_trouble_is_unavailable_for_a_while(gateway: GuardedGateway, pipeline: InMemoryPipeline) -> None:
    pipeline.language.become("down")
    response = await gateway.http.post(PATH, json=QUESTION)
    assert response.status_code == 503
    assert response.headers["retry-after"]


async def test_tool_answers_and_stores_in_a_conversation_alone(pipeline: InMemoryPipeline) -> None:
    async with in_process(InMemoryTransport(pipeline), tools=MODEL_TOOLS) as session:
        assert (await answer(session, "ask_memory", query="where?", project_id="*"))["text"] == WORDS
        await answer(session, "ask_memory", query="where is it?", conversation_id="c1")
        pipeline.language.become("down")
        assert "unavailable: the language model" in await error(session, "ask_memory", query="where?")
    await pipeline.topics.settled()
    assert sorted(memory.text for memory in pipeline.memories.all()) == [WORDS, "where is it?"]


async def test_key_that_reads_may_ask_and_not_store(pipeline: InMemoryPipeline, tmp_path: Path) -> None:
    write_keys(tmp_path / "keys.json", "reader")
    async with gateway_of(pipeline, tmp_path / "keys.json") as gateway:
        stored = await gateway.ask("POST", PATH, "reader", json=QUESTION)
        asked = await gateway.ask("POST", PATH, "reader", json={**QUESTION, "store": False})
    assert stored.status_code == 403
    assert asked.status_code == 200
