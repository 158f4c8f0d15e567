"""Hits that the cross-encoder orders: where it was asked for, in time, and never with what was forgotten."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents.rules.answer.reranking import CONTRIBUTION
from schemas.failures import ModelMissing, Unavailable
from tests.stream.pipelines.test_editing import edit
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message

TEXTS = ("The lantern is in the hall.", "The lantern is red.", "A lantern was sold.")


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A pipeline whose cross-encoder prefers what was sold, and a user with three turns."""
    world = InMemoryPipeline(tmp_path)
    world.cross_encoder.numbers = {"hall": -80.0, "red": -11.0, "sold": 40.0}
    async with world.running() as running:
        for number, text in enumerate(TEXTS):
            assert (await running.ask(running.names.turns, turn_message(text, f"t{number}")))["status"] == "ok"
        await running.topics.settled()
        yield running


def texts(reply: Json) -> list[str]:
    return [hit["text"] for hit in reply["result"]["hits"]]


def scores(reply: Json) -> list[float]:
    return [hit["score"] for hit in reply["result"]["hits"]]


def codes(reply: Json) -> list[str]:
    return [warning["code"] for warning in reply["warnings"]]


async def asked(pipeline: InMemoryPipeline, **fields: Any) -> Json:
    return await pipeline.retrieve("where is the lantern?", **fields)


@pytest.mark.parametrize("rerank", [None, False, True])
async def test_cross_encoder_reads_nothing_unless_it_was_asked_to(pipeline: InMemoryPipeline, rerank: Any) -> None:
    await asked(pipeline, rerank=rerank)
    assert pipeline.cross_encoder.read == []


async def test_cross_encoder_orders_hits(pipeline: InMemoryPipeline) -> None:
    reply = await asked(pipeline, rerank="local")
    assert texts(reply) == [TEXTS[2], TEXTS[1], TEXTS[0]]
    assert codes(reply) == []
    assert reply["result"]["diagnostics"]["reranked_by"] == "local"


async def test_score_is_that_of_both_and_falls_along_the_hits(pipeline: InMemoryPipeline) -> None:
    plain = dict(zip(texts(reply := await asked(pipeline)), scores(reply), strict=True))
    reply = await asked(pipeline, rerank="local")
    assert scores(reply) == sorted(scores(reply), reverse=True)
    assert scores(reply)[0] > plain[TEXTS[2]]
    assert scores(reply)[-1] < plain[TEXTS[0]]


async def test_reading_is_one_of_the_contributions(pipeline: InMemoryPipeline) -> None:
    reply = await asked(pipeline, rerank="local", explain=True)
    assert all(CONTRIBUTION in hit["contributions"] for hit in reply["result"]["hits"])


async def test_best_hit_of_one_is_the_best_of_all_that_were_read(pipeline: InMemoryPipeline) -> None:
    assert texts(await asked(pipeline, rerank="local", top_k=1)) == [TEXTS[2]]


async def test_floor_holds_for_the_score_of_both(pipeline: InMemoryPipeline) -> None:
    best = scores(await asked(pipeline, rerank="local"))[0]
    assert texts(await asked(pipeline, rerank="local", min_score=best)) == [TEXTS[2]]


async def test_floor_holds_for_the_order_of_the_search(pipeline: InMemoryPipeline) -> None:
    best = scores(plain := await asked(pipeline))[0]
    pipeline.cross_encoder.failure = ModelMissing("there is none")
    assert texts(await asked(pipeline, rerank="local", min_score=best)) == texts(plain)[:1]


@pytest.mark.parametrize("failure", [ModelMissing("none"), Unavailable("it has ended"), RuntimeError("a bad text")])
async def test_failure_leaves_the_order_with_a_warning(pipeline: InMemoryPipeline, failure: Exception) -> None:
    plain = await asked(pipeline)
    pipeline.cross_encoder.failure = failure
    reply = await asked(pipeline, rerank="local")
    assert reply["result"]["hits"] == plain["result"]["hits"]
    assert codes(reply) == ["not_reranked"]
    assert str(failure) in reply["warnings"][0]["message"]


async def test_model_that_hangs_is_given_up_in_time(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path)
    world.settings = world.settings.model_copy(update={"rerank_timeout_s": 0.05})
    async with world.running() as pipeline:
        for number, text in enumerate(TEXTS):
            await pipeline.ask(pipeline.names.turns, turn_message(text, f"t{number}"))
        pipeline.cross_encoder.released.clear()
        reply = await asked(pipeline, rerank="local")
    assert len(texts(reply)) == 3
    assert codes(reply) == ["not_reranked"]
    assert "within 0.1 s" in reply["warnings"][0]["message"]


async def test_turn_forgotten_while_it_is_read_is_in_no_answer(pipeline: InMemoryPipeline) -> None:
    pipeline.cross_encoder.released.clear()
    waiting = asyncio.create_task(asked(pipeline, rerank="local"))
    await pipeline.until(lambda: bool(pipeline.cross_encoder.read))
    await pipeline.command("forget", turn_id="t2", conversation_id="c1")
    pipeline.cross_encoder.released.set()
    assert texts(await waiting) == [TEXTS[1], TEXTS[0]]


async def test_question_in_another_language_keeps_the_order(pipeline: InMemoryPipeline) -> None:
    question = "Wo ist denn die Laterne, und wer hat sie gesehen?"
    reply = await pipeline.retrieve(question, rerank="local")
    assert pipeline.cross_encoder.read == []
    assert codes(reply) == ["not_reranked"]
    assert "English" in reply["warnings"][0]["message"]


async def test_pipelines_without_the_step_read_nothing(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, {"op": "config", "step_id": "retrieve.rerank", "enabled": False})
    reply = await asked(pipeline, rerank="local")
    assert len(texts(reply)) == 3
    assert pipeline.cross_encoder.read == []


@pytest.mark.parametrize("rerank", ["remote", "true", 1])
async def test_other_values_are_refused(pipeline: InMemoryPipeline, rerank: Any) -> None:
    reply = await asked(pipeline, rerank=rerank)
    assert reply["status"] == "error"
    assert reply["error"]["code"] == "invalid_value"
