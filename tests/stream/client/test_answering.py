"""Answers of the language model, the same over each transport."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from modestream_client import Answered, MemoryCalls, MemoryServiceError
from modestream_client.answers import StreamedText

from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline

WORDS = "Under the pot."
FORM = {"type": "json_schema", "json_schema": {"name": "place", "schema": {"type": "object"}}}


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        yield running


async def test_answer_says_what_it_rests_on_and_is_stored(memory: MemoryCalls) -> None:
    said = await memory.remember("The spare key is under the pot.", conversation_id="old")
    answered = await memory.answer("where is the spare key?")
    assert answered.text == WORDS
    assert answered.references == (said.memory_id,)
    assert answered.stored is not None
    assert answered.profile == "default"
    assert (await memory.list_memories(conversation_id="default")).total == 2


async def test_answer_has_the_given_options(pipeline: InMemoryPipeline, memory: MemoryCalls) -> None:
    pipeline.language.words = ["{}"]
    how = {"store": False, "examples": [{"role": "user", "content": "Hi."}], "context_format": "full", "max_tokens": 7}
    answered = await memory.answer("where?", response_format=FORM, **how)  # type: ignore[arg-type]
    assert answered.parsed == {}
    assert answered.stored is None
    assert pipeline.language.chats[0].messages[1] == {"role": "user", "content": "Hi."}
    assert pipeline.language.chats[0].max_tokens == 7


async def test_pieces_of_a_stream_are_the_text_and_the_result_is_the_last(memory: MemoryCalls) -> None:
    *pieces, answered = [piece async for piece in memory.answer_stream("where is the spare key?")]
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == WORDS
    assert isinstance(answered, Answered)
    assert answered.text == WORDS


@pytest.mark.parametrize("behaviour", ["down", "wrong"])
async def test_model_without_an_answer_is_an_error(
    pipeline: InMemoryPipeline, memory: MemoryCalls, behaviour: str
) -> None:
    pipeline.language.become(behaviour)  # type: ignore[arg-type]
    with pytest.raises(MemoryServiceError, match="unavailable: the language model"):
        await memory.answer("where?")
    with pytest.raises(MemoryServiceError, match="unavailable: the language model"):
        _ = [piece async for piece in memory.answer_stream("where?")]


async def test_question_that_makes_no_sense_is_refused(memory: MemoryCalls) -> None:
    with pytest.raises(MemoryServiceError) as refused:
        _ = [piece async for piece in memory.answer_stream("where?", profile="never")]
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "profile"


def test_pieces_after_a_lost_one_come_with_the_whole_text() -> None:
    text = StreamedText()
    assert [text.take(number, piece) for number, piece in ((0, "Under "), (2, "pot."))] == [True, False]
    assert text.rest_of(WORDS) == "the pot."
