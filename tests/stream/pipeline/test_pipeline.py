"""The whole pipeline, from a turn on its topic to the reply to a query."""

import asyncio
import json
from pathlib import Path

import pytest

from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message


async def test_published_turn_is_retrieved(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("The deploy target is fly.io now.", "t-1", speaker="Ana")
    await pipeline.remember("Lunch is at noon.", "t-2")
    await pipeline.topics.settled()
    reply = await pipeline.retrieve("where do we deploy?")
    best = reply["result"]["hits"][0]
    assert best["turn_id"] == "t-1"
    assert best["text"] == "The deploy target is fly.io now."
    assert best["speaker"] == "Ana"
    assert reply["status"] == "ok"
    assert reply["result"]["strategy"] == "hybrid"
    assert reply["warnings"] == []
    assert best["embedding_status"] == "ready"


async def test_turn_is_answered_with_its_memory(pipeline: InMemoryPipeline) -> None:
    reply = await pipeline.ask(pipeline.names.turns, turn_message("Tea, please.", "t-1"))
    memory_id = reply["result"].pop("memory_id")
    expected = {"turn_id": "t-1", "mode": "general", "mode_source": "fallback", "version": 1, "duplicate": False}
    assert reply["status"] == "ok"
    assert reply["result"] == expected
    assert (await pipeline.command("get_memory", memory_id=memory_id))["result"]["text"] == "Tea, please."


async def test_every_memory_has_its_vector_once_all_is_settled(pipeline: InMemoryPipeline) -> None:
    for number in range(100):
        await pipeline.remember(f"Crate {number} is in the hall.", user=f"u{number % 7}")
    await pipeline.topics.settled()
    statuses = [memory.embedding.status for memory in pipeline.memories.all()]
    assert statuses == ["ready"] * 100
    assert len(pipeline.embedder.passages) == 100


async def test_same_turn_again_is_a_duplicate_and_costs_no_vector(pipeline: InMemoryPipeline) -> None:
    first = await pipeline.ask(pipeline.names.turns, turn_message("Tea, please.", "t-1"))
    again = await pipeline.ask(pipeline.names.turns, turn_message("Tea, please.", "t-1"))
    assert again["result"] == first["result"] | {"duplicate": True}
    assert await pipeline.texts("tea") == ["Tea, please."]
    assert len(pipeline.embedder.passages) == 1


async def test_edited_turn_is_a_new_version_without_the_old_text(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("We deploy to heroku.", "t-1")
    await pipeline.remember("Lunch is at noon.", "t-2")
    await pipeline.topics.settled()
    await pipeline.remember("We deploy to fly.io.", "t-1")
    assert await pipeline.texts("heroku fly.io", top_k=1) == ["We deploy to fly.io."]
    hits = (await pipeline.retrieve("heroku", explain=True))["result"]["hits"]
    assert [hit["version"] for hit in hits if hit["turn_id"] == "t-1"] == [2]
    assert max(hit["scores"]["lexical"] for hit in hits) == 0
    assert {memory.embedding.status for memory in pipeline.memories.all()} == {"ready"}
    assert {memory.text for memory in pipeline.memories.all()} == {"We deploy to fly.io.", "Lunch is at noon."}


async def test_same_log_again_changes_nothing(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("We deploy to heroku.", "t-1")
    await pipeline.remember("We deploy to fly.io.", "t-1")
    await pipeline.remember("Lunch is at noon.", None)
    await pipeline.topics.settled()
    before = {memory.memory_id: (memory.text, memory.versions) for memory in pipeline.memories.all()}
    for record in pipeline.topics.records(pipeline.names.turns):
        await pipeline.publish(
            pipeline.names.turns, record.value or b"", key=record.key, timestamp_ms=record.timestamp_ms
        )
    await pipeline.topics.settled()
    assert {memory.memory_id: (memory.text, memory.versions) for memory in pipeline.memories.all()} == before


async def test_invalid_turns_are_dead_letters_and_valid_ones_found(pipeline: InMemoryPipeline) -> None:
    bad = [b"{", b"null", b'{"schema":"turn.v9"}', json.dumps(turn_message("", "t-1")).encode()]
    for number, value in enumerate(bad):
        await pipeline.remember(f"Crate {number} is in the hall.")
        await pipeline.publish(pipeline.names.turns, value, headers=(("trace", b"\xff"),))
    assert len(await pipeline.texts("crate")) == len(bad)
    # Three of them name no user: nothing says in which order those of several users are refused.
    letters = sorted(pipeline.dead_letters(), key=lambda letter: int(letter.header("dead_letter_offset") or b""))
    assert [letter.value for letter in letters] == bad
    codes = [letter.header("dead_letter_code") for letter in letters]
    assert codes == [b"invalid_json", b"invalid_json", b"unknown_schema", b"invalid_value"]
    offsets = [letter.header("dead_letter_offset") for letter in letters]
    assert offsets == [b"1", b"3", b"5", b"7"]
    assert {letter.header("trace") for letter in letters} == {b"\xff"}


async def test_rejected_turn_is_answered_with_the_reason(pipeline: InMemoryPipeline) -> None:
    reply = await pipeline.ask(pipeline.names.turns, turn_message("Tea.", "t-1", scope={"user_id": "u1", "team": "x"}))
    assert reply["status"] == "error"
    assert reply["error"]["code"] == "unknown_scope_field"
    assert reply["error"]["field"] == "scope.team"
    assert len(pipeline.dead_letters()) == 1


async def test_misplaced_record_is_moved_and_found(pipeline: InMemoryPipeline) -> None:
    wrong = (partition_of(b"u1", 4) + 1) % 4
    reply = await pipeline.ask(pipeline.names.turns, turn_message("Tea, please.", "t-1"), key=b"else", partition=wrong)
    assert reply["status"] == "ok"
    assert await pipeline.texts("tea") == ["Tea, please."]
    written, moved = pipeline.topics.records(pipeline.names.turns)
    assert moved.partition == partition_of(b"u1", 4)
    assert moved.key == b"u1"
    assert moved.timestamp_ms == written.timestamp_ms
    [answer] = pipeline.topics.records(pipeline.names.replies)[:1]
    assert answer.key == b"else"


async def test_turns_are_lexical_without_the_vector_index_and_embedded_later(pipeline: InMemoryPipeline) -> None:
    pipeline.index.down()
    accepted = await pipeline.ask(pipeline.names.turns, turn_message("The deploy target is fly.io.", "t-1"))
    reply = await pipeline.retrieve("deploy target")
    assert [hit["turn_id"] for hit in reply["result"]["hits"]] == ["t-1"]
    assert reply["result"]["strategy"] == "lexical"
    assert [warning["code"] for warning in reply["warnings"]] == ["degraded"]
    assert reply["result"]["hits"][0]["embedding_status"] == "pending"
    await pipeline.until_waiting_for("vector index")
    expected = pipeline.topics.unacknowledged(pipeline.names.remembered)
    assert len(expected) == 2, "the turn and its item"
    pipeline.index.up()
    await pipeline.topics.settled()
    shown = await pipeline.command("get_memory", memory_id=accepted["result"]["memory_id"])
    assert shown["result"]["embedding"]["status"] == "ready"
    assert (await pipeline.retrieve("deploy target"))["result"]["strategy"] == "hybrid"


async def test_turns_are_lexical_without_the_embedder_and_embedded_later(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("Lunch is at noon.", "t-1")
    await pipeline.topics.settled()
    pipeline.embedder.outage = True
    await pipeline.ask(pipeline.names.turns, turn_message("The deploy target is fly.io.", "t-2"))
    reply = await pipeline.retrieve("deploy target")
    assert reply["result"]["hits"][0]["turn_id"] == "t-2"
    assert [warning["code"] for warning in reply["warnings"]] == ["degraded"]
    await pipeline.until_waiting_for("embedder")
    pipeline.embedder.outage = False
    await pipeline.topics.settled()
    assert {memory.embedding.status for memory in pipeline.memories.all()} == {"ready"}


async def test_query_waits_for_its_read_after_turn(pipeline: InMemoryPipeline) -> None:
    asking = asyncio.create_task(pipeline.retrieve("tea", read_after=0))
    await pipeline.topics.until(lambda: bool(pipeline.topics.unacknowledged(pipeline.names.retrieve)))
    assert (await pipeline.remember("Tea, please.")).offset == 0
    reply = await asking
    assert [hit["text"] for hit in reply["result"]["hits"]] == ["Tea, please."]
    assert "not_caught_up" not in [warning["code"] for warning in reply["warnings"]]


async def test_query_past_its_wait_is_answered_with_a_warning(pipeline: InMemoryPipeline) -> None:
    deadline = str(round(pipeline.clock.now().timestamp() * 1000) + 200).encode()
    request = {"schema": "retrieve.v1", "scope": {"user_id": "u1"}, "query": "tea", "read_after": 7}
    reply = await pipeline.ask(pipeline.names.retrieve, request, (("deadline", deadline),))
    assert reply["status"] == "ok"
    assert [warning["code"] for warning in reply["warnings"]] == ["not_caught_up"]


async def test_deadline_drops_a_query_but_not_a_turn(pipeline: InMemoryPipeline) -> None:
    pipeline.clock.forward(10)
    late = (("deadline", b"0"), ("reply_to", pipeline.names.replies.encode()))
    request = {"schema": "retrieve.v1", "scope": {"user_id": "u1"}, "query": "tea"}
    await pipeline.publish(pipeline.names.retrieve, request, headers=late)
    await pipeline.publish(pipeline.names.turns, turn_message("Tea, please.", "t-1"), headers=late)
    await pipeline.topics.settled()
    assert pipeline.topics.records(pipeline.names.replies) == []
    assert await pipeline.texts("tea") == ["Tea, please."]


@pytest.mark.parametrize("topic", ["turns", "retrieve", "commands", "consolidate"])
async def test_nonsense_on_any_topic_is_answered_with_an_error(pipeline: InMemoryPipeline, topic: str) -> None:
    reply = await pipeline.ask(getattr(pipeline.names, topic), b"nonsense")
    assert reply["status"] == "error"
    assert reply["error"]["code"] == "invalid_json"
    await pipeline.topics.settled()
    assert len(pipeline.dead_letters()) == (topic == "turns")


@pytest.mark.parametrize("topic", ["turns", "retrieve", "commands", "consolidate"])
async def test_request_with_a_refused_reply_topic_is_a_dead_letter(pipeline: InMemoryPipeline, topic: str) -> None:
    headers = (("reply_to", pipeline.names.turns.encode()),)
    await pipeline.publish(getattr(pipeline.names, topic), turn_message("Tea, please.", "t-1"), headers=headers)
    await pipeline.topics.settled()
    [letter] = pipeline.dead_letters()
    assert letter.header("dead_letter_code") == b"reply_topic_refused"
    assert list(pipeline.memories.all()) == []


async def test_missing_reply_topic_delays_no_other(pipeline: InMemoryPipeline) -> None:
    headers = (("reply_to", f"{pipeline.names.replies}.gone".encode()),)
    await pipeline.publish(pipeline.names.turns, turn_message("Tea, please.", "t-1"), headers=headers)
    assert await pipeline.texts("tea") == ["Tea, please."]
    assert pipeline.dead_letters() == []


async def test_commands_are_answered(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("Tea, please.")
    await pipeline.topics.settled()
    assert [mode["name"] for mode in (await pipeline.command("list_modes"))["result"]["modes"]] == ["general"]
    assert (await pipeline.command("health"))["result"]["modes"]["general"]["ready"] == 1
    assert (await pipeline.command("dance"))["error"]["code"] == "unknown_command"
    assert (await pipeline.command("get_memory", memory_id="none"))["error"]["code"] == "not_found"


async def test_users_do_not_see_each_others_memories(pipeline: InMemoryPipeline) -> None:
    accepted = await pipeline.ask(pipeline.names.turns, turn_message("Ana likes tea.", "t-1", "ana"))
    await pipeline.remember("Ben likes tea.", "t-1", "ben")
    assert await pipeline.texts("tea", user="ana") == ["Ana likes tea."]
    assert await pipeline.texts("tea", user="ben") == ["Ben likes tea."]
    memory_id = accepted["result"]["memory_id"]
    assert (await pipeline.command("get_memory", user="ben", memory_id=memory_id))["error"]["code"] == "not_found"


async def test_unreadable_event_is_a_dead_letter_and_delays_no_other(pipeline: InMemoryPipeline) -> None:
    for topic in (pipeline.names.remembered, pipeline.names.embedded):
        await pipeline.publish(topic, b"nonsense")
    await pipeline.remember("Tea, please.")
    await pipeline.topics.settled()
    assert [memory.embedding.status for memory in pipeline.memories.all()] == ["ready"]
    expected = [letter.header("dead_letter_topic") for letter in pipeline.dead_letters()]
    assert expected == [pipeline.names.remembered.encode(), pipeline.names.embedded.encode()]


async def test_pipeline_finishes_after_a_restart(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        pipeline.index.down()
        for number in range(200):
            await pipeline.remember(f"Crate {number} is in the hall.")
        await pipeline.topics.until(lambda: not pipeline.topics.unacknowledged(pipeline.names.turns))
        assert pipeline.topics.unacknowledged(pipeline.names.remembered)
    pipeline.index.up()
    async with pipeline.running():
        assert len(await pipeline.texts("crate hall", top_k=100)) == 100
        assert [memory.embedding.status for memory in pipeline.memories.all()] == ["ready"] * 200
        assert (await pipeline.command("health"))["result"]["modes"]["general"]["ready"] == 200


async def test_unwritten_turn_is_processed_again_after_a_restart(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    # No changelog takes a row in this life.
    pipeline.tables._room = asyncio.Event().wait  # type: ignore[assignment]
    pipeline.index.down()
    async with pipeline.running():
        await pipeline.remember("Tea, please.")
        await pipeline.topics.until(lambda: any(pipeline.memories.all()))
    assert len(pipeline.topics.unacknowledged(pipeline.names.turns)) == 1
    async with pipeline.running():
        found = await pipeline.retrieve("tea", read_after=0)
        assert [hit["text"] for hit in found["result"]["hits"]] == ["Tea, please."]
        pipeline.index.up()
        await pipeline.topics.settled()
        assert [memory.embedding.status for memory in pipeline.memories.all()] == ["ready"]


async def test_turns_during_a_stop_are_processed_after_the_restart(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    await pipeline.remember("Tea, please.")
    async with pipeline.running():
        assert await pipeline.texts("tea") == ["Tea, please."]
