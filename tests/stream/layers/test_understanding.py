"""Understanding through the whole pipeline: a language model's answers move turns, and nothing waits for them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.models.language import Prompt
from tests.fakes.language_model import ONE_PROFILE, marked_mode
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A pipeline with a language model and a user with two modes, one of them the default."""
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        await running.command("declare_mode", name="code", embedder="tiny48", description="programming")
        await running.command("declare_mode", name="journal", embedder="tiny32", is_default=True)
        yield running


def decided(pipeline: InMemoryPipeline, text: str) -> tuple[str, str]:
    memory = pipeline.memory(text)
    return memory.mode, memory.mode_source


async def until_read(pipeline: InMemoryPipeline, *texts: str) -> None:
    """Wait until a model has answered about these turns and all records are processed."""
    await pipeline.until(lambda: all(pipeline.memory(text).reading.status != "pending" for text in texts))
    await pipeline.topics.settled()


async def say(pipeline: InMemoryPipeline, text: str, turn_id: str | None = None, **fields: Any) -> Json:
    reply = await pipeline.ask(pipeline.names.turns, turn_message(text, turn_id or text, **fields))
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def unanswered(pipeline: InMemoryPipeline, text: str, **fields: Any) -> Json:
    """Remember a turn whose request to the model is unanswered."""
    pipeline.language.released.clear()
    accepted = await say(pipeline, text, **fields)
    await pipeline.until(lambda: bool(pipeline.language.asked))
    return accepted


async def test_models_mode_moves_a_turn_with_its_vector(pipeline: InMemoryPipeline) -> None:
    accepted = await say(pipeline, "Fixed the parser [[code]].")
    assert accepted["mode"] == "journal"
    assert accepted["mode_source"] == "user_default"
    await until_read(pipeline, "Fixed the parser [[code]].")
    assert decided(pipeline, "Fixed the parser [[code]].") == ("code", "model")
    assert pipeline.memory("Fixed the parser [[code]].").embedding.status == "ready"
    [hit] = (await pipeline.retrieve("parser", mode="code"))["result"]["hits"]
    assert hit["mode"] == "code"
    assert hit["mode_source"] == "model"
    assert (await pipeline.retrieve("parser", mode="journal"))["result"]["hits"] == []
    ids = [accepted["memory_id"]]
    assert await pipeline.index.hashes(pipeline.space("journal", "tiny32"), ids) == {}
    assert list(await pipeline.index.hashes(pipeline.space("code", "tiny48"), ids)) == ids


async def test_model_is_asked_once_about_each_turn(pipeline: InMemoryPipeline) -> None:
    texts = [f"Crate {number} [[code]]." for number in range(20)]
    for text in texts:
        await say(pipeline, text)
    await until_read(pipeline, *texts)
    assert len(pipeline.language.asked) == 20
    assert {decided(pipeline, text) for text in texts} == {("code", "model")}


async def test_item_in_another_register_is_found_there_with_a_vector(pipeline: InMemoryPipeline) -> None:
    tired, types = "I am so tired that I could cry", ["semantic"]
    item = {"kind": "fact", "text": tired, "quote": tired, "mode": "journal"}
    pipeline.language.answers = lambda prompt: {**marked_mode(prompt), "items": [item]}
    text = f"The parser took all day to debug, and {tired} [[code]]."
    await say(pipeline, text)
    await until_read(pipeline, text)
    [hit] = (await pipeline.retrieve("how tired I am", mode="journal", types=types))["result"]["hits"]
    assert hit["text"] == tired
    assert hit["embedding_status"] == "ready"
    assert (await pipeline.retrieve("how tired I am", mode="code", types=types))["result"]["hits"] == []


async def test_item_in_another_register_is_a_hit_where_its_turn_is_none(pipeline: InMemoryPipeline) -> None:
    tired = "I am so tired that I could cry"
    item = {"kind": "fact", "text": tired, "quote": tired, "mode": "journal"}
    pipeline.language.answers = lambda prompt: {**marked_mode(prompt), "items": [item]}
    text = f"The parser took all day to debug, and {tired} [[code]]."
    await say(pipeline, text)
    await until_read(pipeline, text)
    found = {
        str(mode): [hit["text"] for hit in (await pipeline.retrieve("tired", mode=mode))["result"]["hits"]]
        for mode in ("journal", "code", ["code", "journal"])
    }
    assert found == {"journal": [tired], "code": [text], "['code', 'journal']": [text]}


async def test_item_that_was_moved_is_a_hit_in_its_mode_until_its_turn_follows(pipeline: InMemoryPipeline) -> None:
    text = "I prefer tea when I am tired [[code]]."
    said = await say(pipeline, text)
    await until_read(pipeline, text)
    [item] = pipeline.memory(text).items
    await pipeline.command("set_memory_mode", memory_id=item, mode="journal")
    hits = [hit["memory_id"] for hit in (await pipeline.retrieve("tea", mode="journal"))["result"]["hits"]]
    await pipeline.command("set_memory_mode", memory_id=said["memory_id"], mode="journal")
    after = [hit["memory_id"] for hit in (await pipeline.retrieve("tea", mode="journal"))["result"]["hits"]]
    assert [hits, after] == [[item], [said["memory_id"]]]


async def test_hit_has_no_item_of_another_register(pipeline: InMemoryPipeline) -> None:
    tired = "I am so tired that I could cry"
    item = {"kind": "fact", "text": tired, "quote": tired, "mode": "journal"}
    pipeline.language.answers = lambda prompt: {**marked_mode(prompt), "items": [item]}
    text = f"The parser took all day to debug, and {tired} [[code]]."
    await say(pipeline, text)
    await until_read(pipeline, text)
    inside = {
        str(mode): [
            hit.get("items", []) != [] for hit in (await pipeline.retrieve("tired", mode=mode))["result"]["hits"]
        ]
        for mode in ("code", ["code", "journal"])
    }
    assert inside == {"code": [False], "['code', 'journal']": [True]}


async def test_answer_with_an_undeclared_mode_is_ignored(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, "Fixed the parser [[none-such]].")
    await until_read(pipeline, "Fixed the parser [[none-such]].")
    assert decided(pipeline, "Fixed the parser [[none-such]].") == ("journal", "user_default")
    assert pipeline.memory("Fixed the parser [[none-such]].").reading.status == "model"


async def test_empty_answer_leaves_the_default(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, "Fixed the parser.")
    await until_read(pipeline, "Fixed the parser.")
    assert decided(pipeline, "Fixed the parser.") == ("journal", "user_default")


async def test_agreeing_model_is_the_mode_source_and_moves_nothing(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, "A quiet day [[journal]].")
    await until_read(pipeline, "A quiet day [[journal]].")
    assert decided(pipeline, "A quiet day [[journal]].") == ("journal", "model")
    assert len(pipeline.topics.records(pipeline.names.remembered)) == 1
    telemetry = (await pipeline.command("health"))["result"]["telemetry"]
    assert telemetry["model_agreement"] == 1.0


async def test_callers_mode_stays_and_other_answers_apply(pipeline: InMemoryPipeline) -> None:
    pipeline.language.answers = lambda prompt: {**marked_mode(prompt), "topic": "a parser", "entities": ["Parser"]}
    await say(pipeline, "Fixed the parser [[code]].", mode="journal")
    await until_read(pipeline, "Fixed the parser [[code]].")
    assert decided(pipeline, "Fixed the parser [[code]].") == ("journal", "caller")
    memory = pipeline.memory("Fixed the parser [[code]].")
    assert memory.reading.topic == "a parser"
    assert "Parser" in memory.entities


async def test_mode_set_by_a_command_stays(pipeline: InMemoryPipeline) -> None:
    accepted = await unanswered(pipeline, "Fixed the parser [[code]].")
    await pipeline.command("set_memory_mode", memory_id=accepted["memory_id"], mode="general")
    pipeline.language.released.set()
    await until_read(pipeline, "Fixed the parser [[code]].")
    assert decided(pipeline, "Fixed the parser [[code]].") == ("general", "caller")


async def test_late_answer_finds_a_mode_by_the_name_that_it_had(pipeline: InMemoryPipeline) -> None:
    await unanswered(pipeline, "Fixed the parser [[code]].")
    await pipeline.command("rename_mode", name="code", new_name="craft")
    pipeline.language.released.set()
    await until_read(pipeline, "Fixed the parser [[code]].")
    assert decided(pipeline, "Fixed the parser [[code]].") == ("craft", "model")


async def test_late_answer_with_a_deleted_mode_is_ignored(pipeline: InMemoryPipeline) -> None:
    await unanswered(pipeline, "Fixed the parser [[code]].")
    await pipeline.command("delete_mode", name="code", memories="forget")
    pipeline.language.released.set()
    await until_read(pipeline, "Fixed the parser [[code]].")
    assert decided(pipeline, "Fixed the parser [[code]].") == ("journal", "user_default")


async def test_late_answer_about_a_forgotten_turn_is_ignored(pipeline: InMemoryPipeline) -> None:
    await unanswered(pipeline, "Fixed the parser [[code]].")
    await pipeline.command("delete_mode", name="journal", memories="forget")
    pipeline.language.released.set()
    await pipeline.topics.until(lambda: len(pipeline.topics.records(pipeline.names.understood)) == 1)
    await pipeline.topics.settled()
    assert list(pipeline.memories.all()) == []


async def test_answer_about_a_replaced_text_is_ignored_and_asked_again(pipeline: InMemoryPipeline) -> None:
    await unanswered(pipeline, "Fixed the parser [[code]].", turn_id="t")
    await say(pipeline, "Slept badly [[general]].", "t")
    pipeline.language.released.set()
    await until_read(pipeline, "Slept badly [[general]].")
    assert decided(pipeline, "Slept badly [[general]].") == ("general", "model")


async def test_restored_text_is_asked_about_again(pipeline: InMemoryPipeline) -> None:
    for text in ("Fixed the parser [[code]].", "Slept badly.", "Fixed the parser [[code]]."):
        await say(pipeline, text, "t")
        await until_read(pipeline, text)
    assert len(pipeline.language.asked) == 3
    assert pipeline.memory("Fixed the parser [[code]].").version == 2


async def test_turns_during_a_model_outage_are_accepted_and_read_later(pipeline: InMemoryPipeline) -> None:
    pipeline.language.become("down")
    texts = [f"Fixed parser {number} [[code]]." for number in range(30)]
    for text in texts:
        assert (await say(pipeline, text))["mode"] == "journal"
    await pipeline.topics.settled()
    assert {pipeline.memory(text).reading.status for text in texts} == {"pending"}
    assert {pipeline.memory(text).embedding.status for text in texts} == {"ready"}
    hits = (await pipeline.retrieve("fixed parser", mode="journal", top_k=100))["result"]["hits"]
    assert len(hits) == 30
    shown = await pipeline.command("get_memory", memory_id=hits[0]["memory_id"])
    assert shown["result"]["understanding"] == "pending"
    pipeline.language.become("ok")
    await until_read(pipeline, *texts)
    assert {decided(pipeline, text) for text in texts} == {("code", "model")}
    assert {pipeline.memory(text).embedding.status for text in texts} == {"ready"}


async def test_invalid_answer_is_not_repeated_and_rules_apply(pipeline: InMemoryPipeline) -> None:
    pipeline.language.become("wrong")
    await say(pipeline, "Call Ana on 2026-03-04.")
    await until_read(pipeline, "Call Ana on 2026-03-04.")
    memory = pipeline.memory("Call Ana on 2026-03-04.")
    assert memory.reading.status == "rules"
    assert memory.reading.times == ("2026-03-04",)
    assert len(pipeline.language.asked) == 1


async def test_nothing_waits_for_a_model_that_hangs(pipeline: InMemoryPipeline) -> None:
    pipeline.language.released.clear()
    for number in range(20):
        await say(pipeline, f"Fixed parser {number} [[code]].")
    await pipeline.topics.settled()
    assert {memory.embedding.status for memory in pipeline.memories.all()} == {"ready"}
    assert {memory.reading.status for memory in pipeline.memories.all()} == {"pending"}
    await pipeline.until(lambda: len(pipeline.language.asked) >= 4)
    await pipeline.topics.settled()
    assert len(pipeline.language.asked) == 4, "the limit of concurrent requests"
    assert (await pipeline.command("health"))["status"] == "ok"
    pipeline.language.released.set()
    await pipeline.until(lambda: all(memory.reading.status == "model" for memory in pipeline.memories.all()))


async def test_prompt_has_modes_and_earlier_turns(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, "We had tea.", "t-1", occurred_at="2026-03-01T09:00:00Z")
    await say(pipeline, "Of another conversation.", "t-2", conversation_id="c2")
    await until_read(pipeline, "We had tea.", "Of another conversation.")
    await say(pipeline, "And then coffee.", "t-3", occurred_at="2026-03-01T09:01:00Z")
    await until_read(pipeline, "And then coffee.")
    asked: Prompt = pipeline.language.asked[-1]
    assert all(text in asked.user for text in ("programming", "We had tea.", "And then coffee."))
    assert "Of another conversation." not in asked.user
    assert "coffee" not in asked.system
    memory = pipeline.memory("And then coffee.")
    assert memory.reading.model == "default"
    assert memory.reading.prompt == asked.version


async def test_interaction_mode_is_on_records_of_user_turns(pipeline: InMemoryPipeline) -> None:
    pipeline.language.answers = lambda _: {"interaction_mode": "DEBUGGING", "interaction_confidence": 0.97}
    accepted = await say(pipeline, "The login fails after five minutes and nobody knows why.")
    answered = await say(pipeline, "Let me see.", role="assistant")
    await until_read(pipeline, "The login fails after five minutes and nobody knows why.", "Let me see.")
    shown = (await pipeline.command("get_memory", memory_id=accepted["memory_id"]))["result"]
    assert shown["interaction_mode"] == "DEBUGGING"
    assert shown["interaction_confidence"] > 0.7
    other = (await pipeline.command("get_memory", memory_id=answered["memory_id"]))["result"]
    assert other["interaction_mode"] is None


async def test_rules_classify_turns_without_a_language_model(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path).running() as pipeline:
        await say(pipeline, "The login fails after five minutes and nobody knows why.")
        await pipeline.topics.settled()
        memory = pipeline.memory("The login fails after five minutes and nobody knows why.")
        assert memory.reading.status == "rules"
        assert memory.reading.interaction is not None
        assert pipeline.language.asked == []


async def test_context_has_the_last_turns_and_the_interaction_mode(pipeline: InMemoryPipeline) -> None:
    accepted = [await say(pipeline, f"Crate {number} is in the hall.", f"t-{number}") for number in range(2)]
    reply = await pipeline.assemble("where is crate 1?", conversation_id="c1", interaction_mode="TASK", read_after=1)
    assert reply["status"] == "ok"
    assert reply["result"]["interaction_mode"] == "TASK"
    assert reply["result"]["sections"]["recent_window"] == [memory["memory_id"] for memory in accepted]
    assert "Crate 1 is in the hall." in reply["result"]["messages"][1]["content"]
    judged = (await pipeline.assemble("why does the login fail?", conversation_id="c1"))["result"]
    assert 0 <= judged["interaction_confidence"] <= 1


async def test_context_past_its_wait_is_answered_with_a_warning(pipeline: InMemoryPipeline) -> None:
    deadline = str(round(pipeline.clock.now().timestamp() * 1000) + 200).encode()
    request = {"schema": "assemble.v1", "scope": {"user_id": "u1"}, "query": "tea", "read_after": 7}
    reply = await pipeline.ask(pipeline.names.retrieve, request, (("deadline", deadline),))
    assert reply["status"] == "ok"
    assert [warning["code"] for warning in reply["warnings"]] == ["not_caught_up"]


async def test_context_in_an_undeclared_mode_is_rejected(pipeline: InMemoryPipeline) -> None:
    reply = await pipeline.assemble("tea", mode="none-such")
    assert reply["error"]["code"] == "unknown_mode"
    assert reply["error"]["field"] == "mode"
