"""Understanding over the whole map: a language model's answers move turns, and nothing depends on them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.language import Prompt
from tests.fakes.language_model import ONE_PROFILE, marked_mode
from tests.worlds.in_memory_pipeline import InMemoryMap, Json, turn


@pytest.fixture
async def the_map(tmp_path: Path) -> AsyncIterator[InMemoryMap]:
    """A map with a language model, and a user with two modes, one of them the default."""
    async with InMemoryMap(tmp_path, profiles=ONE_PROFILE).running() as running:
        await running.command("declare_mode", name="code", embedder="tiny48", description="programming")
        await running.command("declare_mode", name="journal", embedder="tiny32", is_default=True)
        yield running


def decided(the_map: InMemoryMap, text: str) -> tuple[str, str]:
    memory = the_map.memory(text)
    return memory.mode, memory.mode_source


async def read(the_map: InMemoryMap, *texts: str) -> None:
    """Wait until a model has read these turns, and all that follows from it is done."""
    await the_map.until(lambda: all(the_map.memory(text).reading.status != "pending" for text in texts))
    await the_map.topics.settled()


async def say(the_map: InMemoryMap, text: str, turn_id: str | None = None, **fields: Any) -> Json:
    reply = await the_map.ask(the_map.names.turns, turn(text, turn_id or text, **fields))
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def held(the_map: InMemoryMap, text: str, **fields: Any) -> Json:
    """A turn that the model has been asked about, and does not answer yet."""
    the_map.language.released.clear()
    accepted = await say(the_map, text, **fields)
    await the_map.until(lambda: bool(the_map.language.asked))
    return accepted


async def test_the_models_mode_moves_a_turn_with_its_vector(the_map: InMemoryMap) -> None:
    accepted = await say(the_map, "Fixed the parser [[code]].")
    assert (accepted["mode"], accepted["mode_source"]) == ("journal", "user_default")
    await read(the_map, "Fixed the parser [[code]].")
    assert decided(the_map, "Fixed the parser [[code]].") == ("code", "model")
    assert the_map.memory("Fixed the parser [[code]].").embedding.status == "ready"
    [hit] = (await the_map.retrieve("parser", mode="code"))["result"]["hits"]
    assert (hit["mode"], hit["mode_source"]) == ("code", "model")
    assert (await the_map.retrieve("parser", mode="journal"))["result"]["hits"] == []
    ids = [accepted["memory_id"]]
    assert await the_map.index.hashes(the_map.space("journal", "tiny32"), ids) == {}
    assert list(await the_map.index.hashes(the_map.space("code", "tiny48"), ids)) == ids


async def test_each_turn_is_asked_about_once(the_map: InMemoryMap) -> None:
    texts = [f"Crate {number} [[code]]." for number in range(20)]
    for text in texts:
        await say(the_map, text)
    await read(the_map, *texts)
    assert len(the_map.language.asked) == 20
    assert {decided(the_map, text) for text in texts} == {("code", "model")}


async def test_a_mode_that_is_not_declared_is_no_answer(the_map: InMemoryMap) -> None:
    await say(the_map, "Fixed the parser [[none-such]].")
    await read(the_map, "Fixed the parser [[none-such]].")
    assert decided(the_map, "Fixed the parser [[none-such]].") == ("journal", "user_default")
    assert the_map.memory("Fixed the parser [[none-such]].").reading.status == "model"


async def test_an_empty_answer_leaves_the_default(the_map: InMemoryMap) -> None:
    await say(the_map, "Fixed the parser.")
    await read(the_map, "Fixed the parser.")
    assert decided(the_map, "Fixed the parser.") == ("journal", "user_default")


async def test_a_model_that_agrees_with_the_default_is_named_as_the_source_and_moves_nothing(
    the_map: InMemoryMap,
) -> None:
    await say(the_map, "A quiet day [[journal]].")
    await read(the_map, "A quiet day [[journal]].")
    assert decided(the_map, "A quiet day [[journal]].") == ("journal", "model")
    assert len(the_map.topics.records(the_map.names.remembered)) == 1
    telemetry = (await the_map.command("health"))["result"]["telemetry"]
    assert telemetry["model_agreement"] == 1.0


async def test_what_the_caller_said_stays_and_the_rest_of_the_answer_is_taken(the_map: InMemoryMap) -> None:
    the_map.language.answers = lambda prompt: {**marked_mode(prompt), "topic": "a parser", "entities": ["Parser"]}
    await say(the_map, "Fixed the parser [[code]].", mode="journal")
    await read(the_map, "Fixed the parser [[code]].")
    assert decided(the_map, "Fixed the parser [[code]].") == ("journal", "caller")
    memory = the_map.memory("Fixed the parser [[code]].")
    assert (memory.reading.topic, "Parser" in memory.entities) == ("a parser", True)


async def test_a_memory_that_a_command_has_put_into_a_mode_stays_there(the_map: InMemoryMap) -> None:
    accepted = await held(the_map, "Fixed the parser [[code]].")
    await the_map.command("set_memory_mode", memory_id=accepted["memory_id"], mode="general")
    the_map.language.released.set()
    await read(the_map, "Fixed the parser [[code]].")
    assert decided(the_map, "Fixed the parser [[code]].") == ("general", "caller")


async def test_a_late_answer_finds_a_mode_by_the_name_that_it_had(the_map: InMemoryMap) -> None:
    await held(the_map, "Fixed the parser [[code]].")
    await the_map.command("rename_mode", name="code", new_name="craft")
    the_map.language.released.set()
    await read(the_map, "Fixed the parser [[code]].")
    assert decided(the_map, "Fixed the parser [[code]].") == ("craft", "model")


async def test_a_late_answer_that_names_a_deleted_mode_is_no_answer(the_map: InMemoryMap) -> None:
    await held(the_map, "Fixed the parser [[code]].")
    await the_map.command("delete_mode", name="code", memories="forget")
    the_map.language.released.set()
    await read(the_map, "Fixed the parser [[code]].")
    assert decided(the_map, "Fixed the parser [[code]].") == ("journal", "user_default")


async def test_a_late_answer_about_a_forgotten_turn_brings_nothing_back(the_map: InMemoryMap) -> None:
    await held(the_map, "Fixed the parser [[code]].")
    await the_map.command("delete_mode", name="journal", memories="forget")
    the_map.language.released.set()
    await the_map.topics.until(lambda: len(the_map.topics.records(the_map.names.understood)) == 1)
    await the_map.topics.settled()
    assert list(the_map.memories.all()) == []


async def test_an_answer_about_a_text_that_was_replaced_is_ignored_and_the_new_one_is_asked_about(
    the_map: InMemoryMap,
) -> None:
    await held(the_map, "Fixed the parser [[code]].", turn_id="t")
    await say(the_map, "Slept badly [[general]].", "t")
    the_map.language.released.set()
    await read(the_map, "Slept badly [[general]].")
    assert decided(the_map, "Slept badly [[general]].") == ("general", "model")


async def test_a_text_that_comes_back_is_asked_about_again(the_map: InMemoryMap) -> None:
    for text in ("Fixed the parser [[code]].", "Slept badly.", "Fixed the parser [[code]]."):
        await say(the_map, text, "t")
        await read(the_map, text)
    assert len(the_map.language.asked) == 3
    assert the_map.memory("Fixed the parser [[code]].").version == 2


async def test_while_the_model_is_down_turns_are_accepted_found_and_pending_and_all_are_read_when_it_is_back(
    the_map: InMemoryMap,
) -> None:
    the_map.language.become("down")
    texts = [f"Fixed parser {number} [[code]]." for number in range(30)]
    for text in texts:
        assert (await say(the_map, text))["mode"] == "journal"
    await the_map.topics.settled()
    assert {the_map.memory(text).reading.status for text in texts} == {"pending"}
    assert {the_map.memory(text).embedding.status for text in texts} == {"ready"}
    hits = (await the_map.retrieve("fixed parser", mode="journal", top_k=100))["result"]["hits"]
    assert len(hits) == 30
    shown = await the_map.command("get_memory", memory_id=hits[0]["memory_id"])
    assert shown["result"]["understanding"] == "pending"
    the_map.language.become("ok")
    await read(the_map, *texts)
    assert {decided(the_map, text) for text in texts} == {("code", "model")}
    assert {the_map.memory(text).embedding.status for text in texts} == {"ready"}


async def test_a_model_that_answers_nonsense_is_not_asked_again_and_the_rules_stand(the_map: InMemoryMap) -> None:
    the_map.language.become("wrong")
    await say(the_map, "Call Ana on 2026-03-04.")
    await read(the_map, "Call Ana on 2026-03-04.")
    memory = the_map.memory("Call Ana on 2026-03-04.")
    assert (memory.reading.status, memory.reading.times) == ("rules", ("2026-03-04",))
    assert len(the_map.language.asked) == 1


async def test_nothing_waits_for_a_model_that_hangs(the_map: InMemoryMap) -> None:
    the_map.language.released.clear()
    for number in range(20):
        await say(the_map, f"Fixed parser {number} [[code]].")
    await the_map.topics.settled()
    assert {memory.embedding.status for memory in the_map.memories.all()} == {"ready"}
    assert {memory.reading.status for memory in the_map.memories.all()} == {"pending"}
    assert len(the_map.language.asked) == 4, "as many as are asked at the same time"
    assert (await the_map.command("health"))["status"] == "ok"
    the_map.language.released.set()
    await the_map.until(lambda: all(one.reading.status == "model" for one in the_map.memories.all()))


async def test_the_model_is_told_the_modes_and_the_turns_before(the_map: InMemoryMap) -> None:
    await say(the_map, "We had tea.", "t-1", occurred_at="2026-03-01T09:00:00Z")
    await say(the_map, "Of another conversation.", "t-2", conversation_id="c2")
    await read(the_map, "We had tea.", "Of another conversation.")
    await say(the_map, "And then coffee.", "t-3", occurred_at="2026-03-01T09:01:00Z")
    await read(the_map, "And then coffee.")
    asked: Prompt = the_map.language.asked[-1]
    assert all(told in asked.user for told in ("programming", "We had tea.", "And then coffee."))
    assert "Of another conversation." not in asked.user
    assert "coffee" not in asked.system
    memory = the_map.memory("And then coffee.")
    assert (memory.reading.model, memory.reading.prompt) == ("default", asked.version)


async def test_the_interaction_mode_stands_on_the_record_of_what_users_say(the_map: InMemoryMap) -> None:
    the_map.language.answers = lambda _: {"interaction_mode": "DEBUGGING", "interaction_confidence": 0.97}
    said = await say(the_map, "The login fails after five minutes and nobody knows why.")
    answered = await say(the_map, "Let me see.", role="assistant")
    await read(the_map, "The login fails after five minutes and nobody knows why.", "Let me see.")
    shown = (await the_map.command("get_memory", memory_id=said["memory_id"]))["result"]
    assert shown["interaction_mode"] == "DEBUGGING"
    assert shown["interaction_confidence"] > 0.7
    other = (await the_map.command("get_memory", memory_id=answered["memory_id"]))["result"]
    assert other["interaction_mode"] is None


async def test_without_a_language_model_the_rules_say_what_a_turn_is_for(tmp_path: Path) -> None:
    async with InMemoryMap(tmp_path).running() as the_map:
        await say(the_map, "The login fails after five minutes and nobody knows why.")
        await the_map.topics.settled()
        memory = the_map.memory("The login fails after five minutes and nobody knows why.")
        assert memory.reading.status == "rules"
        assert memory.reading.interaction is not None
        assert the_map.language.asked == []


async def test_a_context_has_the_last_turns_and_what_the_query_is_for(the_map: InMemoryMap) -> None:
    said = [await say(the_map, f"Crate {number} is in the hall.", f"t-{number}") for number in range(2)]
    reply = await the_map.assemble("where is crate 1?", conversation_id="c1", interaction_mode="TASK", read_after=1)
    assert (reply["status"], reply["result"]["interaction_mode"]) == ("ok", "TASK")
    assert reply["result"]["sections"]["recent_window"] == [one["memory_id"] for one in said]
    assert "Crate 1 is in the hall." in reply["result"]["messages"][1]["content"]
    judged = (await the_map.assemble("why does the login fail?", conversation_id="c1"))["result"]
    assert 0 <= judged["interaction_confidence"] <= 1


async def test_a_context_that_can_wait_no_longer_for_a_turn_comes_with_a_warning(the_map: InMemoryMap) -> None:
    deadline = str(round(the_map.clock.now().timestamp() * 1000) + 200).encode()
    request = {"schema": "assemble.v1", "scope": {"user_id": "u1"}, "query": "tea", "read_after": 7}
    reply = await the_map.ask(the_map.names.retrieve, request, (("deadline", deadline),))
    assert (reply["status"], [one["code"] for one in reply["warnings"]]) == ("ok", ["not_caught_up"])


async def test_a_context_in_a_mode_that_is_not_declared_is_refused(the_map: InMemoryMap) -> None:
    reply = await the_map.assemble("tea", mode="none-such")
    assert (reply["error"]["code"], reply["error"]["field"]) == ("unknown_mode", "mode")
