"""The whole map, from a turn on its topic to the answer on another, with nothing but channels in between."""

import asyncio
import json
from pathlib import Path

import pytest

from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryMap, turn


async def test_a_published_turn_is_found_by_a_request(the_map: InMemoryMap) -> None:
    await the_map.remember("The deploy target is fly.io now.", "t-1", speaker="Ana")
    await the_map.remember("Lunch is at noon.", "t-2")
    await the_map.topics.settled()
    reply = await the_map.retrieve("where do we deploy?")
    best = reply["result"]["hits"][0]
    assert (best["turn_id"], best["text"], best["speaker"]) == ("t-1", "The deploy target is fly.io now.", "Ana")
    assert (reply["status"], reply["result"]["strategy"], reply["warnings"]) == ("ok", "hybrid", [])
    assert best["embedding_status"] == "ready"


async def test_a_turn_is_answered_with_what_it_became(the_map: InMemoryMap) -> None:
    reply = await the_map.ask(the_map.names.turns, turn("Tea, please.", "t-1"))
    memory_id = reply["result"].pop("memory_id")
    told = {"turn_id": "t-1", "mode": "general", "mode_source": "fallback", "version": 1, "duplicate": False}
    assert (reply["status"], reply["result"]) == ("ok", told)
    assert (await the_map.command("get_memory", memory_id=memory_id))["result"]["text"] == "Tea, please."


async def test_every_memory_has_its_vector_once_all_is_settled(the_map: InMemoryMap) -> None:
    for number in range(100):
        await the_map.remember(f"Crate {number} is in the hall.", user=f"u{number % 7}")
    await the_map.topics.settled()
    statuses = [memory.embedding.status for memory in the_map.memories.all()]
    assert statuses == ["ready"] * 100
    assert len(the_map.embedder.passages) == 100


async def test_the_same_turn_again_is_a_duplicate_and_costs_no_vector(the_map: InMemoryMap) -> None:
    first = await the_map.ask(the_map.names.turns, turn("Tea, please.", "t-1"))
    again = await the_map.ask(the_map.names.turns, turn("Tea, please.", "t-1"))
    assert again["result"] == first["result"] | {"duplicate": True}
    assert await the_map.texts("tea") == ["Tea, please."]
    assert len(the_map.embedder.passages) == 1


async def test_an_edited_turn_is_a_new_version_and_its_old_text_is_not_found(the_map: InMemoryMap) -> None:
    await the_map.remember("We deploy to heroku.", "t-1")
    await the_map.remember("Lunch is at noon.", "t-2")
    await the_map.topics.settled()
    await the_map.remember("We deploy to fly.io.", "t-1")
    assert await the_map.texts("heroku fly.io", top_k=1) == ["We deploy to fly.io."]
    hits = (await the_map.retrieve("heroku", explain=True))["result"]["hits"]
    assert [hit["version"] for hit in hits if hit["turn_id"] == "t-1"] == [2]
    assert max(hit["scores"]["lexical"] for hit in hits) == 0
    assert {memory.embedding.status for memory in the_map.memories.all()} == {"ready"}
    assert {memory.text for memory in the_map.memories.all()} == {"We deploy to fly.io.", "Lunch is at noon."}


async def test_the_same_log_again_changes_nothing(the_map: InMemoryMap) -> None:
    await the_map.remember("We deploy to heroku.", "t-1")
    await the_map.remember("We deploy to fly.io.", "t-1")
    await the_map.remember("Lunch is at noon.", None)
    await the_map.topics.settled()
    before = {memory.memory_id: (memory.text, memory.versions) for memory in the_map.memories.all()}
    for record in the_map.topics.records(the_map.names.turns):
        await the_map.publish(
            the_map.names.turns, record.value or b"", key=record.key, timestamp_ms=record.timestamp_ms
        )
    await the_map.topics.settled()
    assert {memory.memory_id: (memory.text, memory.versions) for memory in the_map.memories.all()} == before


async def test_bad_turns_are_dead_letters_and_the_good_ones_between_them_are_found(the_map: InMemoryMap) -> None:
    bad = [b"{", b"null", b'{"schema":"turn.v9"}', json.dumps(turn("", "t-1")).encode()]
    for number, value in enumerate(bad):
        await the_map.remember(f"Crate {number} is in the hall.")
        await the_map.publish(the_map.names.turns, value, headers=(("trace", b"\xff"),))
    assert len(await the_map.texts("crate")) == len(bad)
    letters = the_map.dead_letters()
    assert [letter.value for letter in letters] == bad
    codes = [letter.header("dead_letter_code") for letter in letters]
    assert codes == [b"invalid_json", b"invalid_json", b"unknown_schema", b"invalid_value"]
    offsets = [letter.header("dead_letter_offset") for letter in letters]
    assert offsets == [b"1", b"3", b"5", b"7"]
    assert {letter.header("trace") for letter in letters} == {b"\xff"}


async def test_a_refused_turn_is_told_why(the_map: InMemoryMap) -> None:
    reply = await the_map.ask(the_map.names.turns, turn("Tea.", "t-1", scope={"user_id": "u1", "team": "x"}))
    assert reply["status"] == "error"
    assert (reply["error"]["code"], reply["error"]["field"]) == ("unknown_scope_field", "scope.team")
    assert len(the_map.dead_letters()) == 1


async def test_a_record_in_the_wrong_partition_is_moved_and_found(the_map: InMemoryMap) -> None:
    wrong = (partition_of(b"u1", 4) + 1) % 4
    reply = await the_map.ask(the_map.names.turns, turn("Tea, please.", "t-1"), key=b"else", partition=wrong)
    assert reply["status"] == "ok"
    assert await the_map.texts("tea") == ["Tea, please."]
    written, moved = the_map.topics.records(the_map.names.turns)
    assert (moved.partition, moved.key, moved.timestamp_ms) == (partition_of(b"u1", 4), b"u1", written.timestamp_ms)
    [answer] = the_map.topics.records(the_map.names.replies)[:1]
    assert answer.key == b"else"


async def test_without_the_vector_index_turns_are_found_by_words_and_embedded_when_it_is_back(
    the_map: InMemoryMap,
) -> None:
    the_map.index.down()
    accepted = await the_map.ask(the_map.names.turns, turn("The deploy target is fly.io.", "t-1"))
    reply = await the_map.retrieve("deploy target")
    assert [hit["turn_id"] for hit in reply["result"]["hits"]] == ["t-1"]
    assert (reply["result"]["strategy"], [one["code"] for one in reply["warnings"]]) == ("lexical", ["degraded"])
    assert reply["result"]["hits"][0]["embedding_status"] == "pending"
    await the_map.waiting_for("vector index")
    told = the_map.topics.unacknowledged(the_map.names.remembered)
    assert len(told) == 2, "the turn, and what was found in it"
    the_map.index.up()
    await the_map.topics.settled()
    kept = await the_map.command("get_memory", memory_id=accepted["result"]["memory_id"])
    assert kept["result"]["embedding"]["status"] == "ready"
    assert (await the_map.retrieve("deploy target"))["result"]["strategy"] == "hybrid"


async def test_without_the_embedder_turns_are_found_by_words_and_embedded_when_it_is_back(the_map: InMemoryMap) -> None:
    await the_map.remember("Lunch is at noon.", "t-1")
    await the_map.topics.settled()
    the_map.embedder.outage = True
    await the_map.ask(the_map.names.turns, turn("The deploy target is fly.io.", "t-2"))
    reply = await the_map.retrieve("deploy target")
    assert reply["result"]["hits"][0]["turn_id"] == "t-2"
    assert [one["code"] for one in reply["warnings"]] == ["degraded"]
    await the_map.waiting_for("embedder")
    the_map.embedder.outage = False
    await the_map.topics.settled()
    assert {memory.embedding.status for memory in the_map.memories.all()} == {"ready"}


async def test_a_question_waits_for_the_turn_that_it_reads_after(the_map: InMemoryMap) -> None:
    asking = asyncio.create_task(the_map.retrieve("tea", read_after=0))
    await the_map.topics.until(lambda: bool(the_map.topics.unacknowledged(the_map.names.retrieve)))
    assert (await the_map.remember("Tea, please.")).offset == 0
    reply = await asking
    assert [hit["text"] for hit in reply["result"]["hits"]] == ["Tea, please."]
    assert "not_caught_up" not in [one["code"] for one in reply["warnings"]]


async def test_a_question_that_can_wait_no_longer_is_answered_with_a_warning(the_map: InMemoryMap) -> None:
    deadline = str(round(the_map.clock.now().timestamp() * 1000) + 200).encode()
    request = {"schema": "retrieve.v1", "scope": {"user_id": "u1"}, "query": "tea", "read_after": 7}
    reply = await the_map.ask(the_map.names.retrieve, request, (("deadline", deadline),))
    assert (reply["status"], [one["code"] for one in reply["warnings"]]) == ("ok", ["not_caught_up"])


async def test_after_its_deadline_a_question_is_dropped_and_a_turn_is_kept(the_map: InMemoryMap) -> None:
    the_map.clock.forward(10)
    late = (("deadline", b"0"), ("reply_to", the_map.names.replies.encode()))
    request = {"schema": "retrieve.v1", "scope": {"user_id": "u1"}, "query": "tea"}
    await the_map.publish(the_map.names.retrieve, request, headers=late)
    await the_map.publish(the_map.names.turns, turn("Tea, please.", "t-1"), headers=late)
    await the_map.topics.settled()
    assert the_map.topics.records(the_map.names.replies) == []
    assert await the_map.texts("tea") == ["Tea, please."]


@pytest.mark.parametrize("topic", ["turns", "retrieve", "commands", "consolidate"])
async def test_nonsense_on_any_topic_is_answered_with_an_error(the_map: InMemoryMap, topic: str) -> None:
    reply = await the_map.ask(getattr(the_map.names, topic), b"nonsense")
    assert (reply["status"], reply["error"]["code"]) == ("error", "invalid_json")
    await the_map.topics.settled()
    assert len(the_map.dead_letters()) == (topic == "turns")


@pytest.mark.parametrize("topic", ["turns", "retrieve", "commands", "consolidate"])
async def test_a_request_that_wants_its_reply_elsewhere_is_a_dead_letter_and_not_done(
    the_map: InMemoryMap, topic: str
) -> None:
    headers = (("reply_to", the_map.names.turns.encode()),)
    await the_map.publish(getattr(the_map.names, topic), turn("Tea, please.", "t-1"), headers=headers)
    await the_map.topics.settled()
    [letter] = the_map.dead_letters()
    assert letter.header("dead_letter_code") == b"reply_topic_refused"
    assert list(the_map.memories.all()) == []


async def test_a_reply_topic_that_does_not_exist_delays_nobody(the_map: InMemoryMap) -> None:
    headers = (("reply_to", f"{the_map.names.replies}.gone".encode()),)
    await the_map.publish(the_map.names.turns, turn("Tea, please.", "t-1"), headers=headers)
    assert await the_map.texts("tea") == ["Tea, please."]
    assert the_map.dead_letters() == []


async def test_commands_are_answered(the_map: InMemoryMap) -> None:
    await the_map.remember("Tea, please.")
    await the_map.topics.settled()
    assert [mode["name"] for mode in (await the_map.command("list_modes"))["result"]["modes"]] == ["general"]
    assert (await the_map.command("health"))["result"]["modes"]["general"]["ready"] == 1
    assert (await the_map.command("dance"))["error"]["code"] == "unknown_command"
    assert (await the_map.command("get_memory", memory_id="none"))["error"]["code"] == "not_found"


async def test_one_user_never_sees_anothers_memories(the_map: InMemoryMap) -> None:
    accepted = await the_map.ask(the_map.names.turns, turn("Ana likes tea.", "t-1", "ana"))
    await the_map.remember("Ben likes tea.", "t-1", "ben")
    assert await the_map.texts("tea", user="ana") == ["Ana likes tea."]
    assert await the_map.texts("tea", user="ben") == ["Ben likes tea."]
    memory_id = accepted["result"]["memory_id"]
    assert (await the_map.command("get_memory", user="ben", memory_id=memory_id))["error"]["code"] == "not_found"


async def test_an_event_of_our_own_that_cant_be_read_is_a_dead_letter_and_delays_nobody(the_map: InMemoryMap) -> None:
    for topic in (the_map.names.remembered, the_map.names.embedded):
        await the_map.publish(topic, b"nonsense")
    await the_map.remember("Tea, please.")
    await the_map.topics.settled()
    assert [memory.embedding.status for memory in the_map.memories.all()] == ["ready"]
    told = [letter.header("dead_letter_topic") for letter in the_map.dead_letters()]
    assert told == [the_map.names.remembered.encode(), the_map.names.embedded.encode()]


async def test_a_map_that_is_stopped_in_the_middle_finishes_when_it_runs_again(tmp_path: Path) -> None:
    the_map = InMemoryMap(tmp_path)
    async with the_map.running():
        the_map.index.down()
        for number in range(200):
            await the_map.remember(f"Crate {number} is in the hall.")
        await the_map.topics.until(lambda: not the_map.topics.unacknowledged(the_map.names.turns))
        assert the_map.topics.unacknowledged(the_map.names.remembered)
    the_map.index.up()
    async with the_map.running():
        assert len(await the_map.texts("crate hall", top_k=100)) == 100
        assert [memory.embedding.status for memory in the_map.memories.all()] == ["ready"] * 200
        assert (await the_map.command("health"))["result"]["modes"]["general"]["ready"] == 200


async def test_a_turn_whose_record_was_not_safe_when_the_map_stopped_is_taken_again(tmp_path: Path) -> None:
    the_map = InMemoryMap(tmp_path)
    the_map.memories.outage = True
    the_map.index.down()
    async with the_map.running():
        await the_map.remember("Tea, please.")
        await the_map.topics.until(lambda: any(the_map.memories.all()))
    assert len(the_map.topics.unacknowledged(the_map.names.turns)) == 1
    the_map.memories.outage = False
    async with the_map.running():
        found = await the_map.retrieve("tea", read_after=0)
        assert [hit["text"] for hit in found["result"]["hits"]] == ["Tea, please."]
        the_map.index.up()
        await the_map.topics.settled()
        assert [memory.embedding.status for memory in the_map.memories.all()] == ["ready"]


async def test_turns_that_came_while_the_map_was_away_are_taken_up(tmp_path: Path) -> None:
    the_map = InMemoryMap(tmp_path)
    await the_map.remember("Tea, please.")
    async with the_map.running():
        assert await the_map.texts("tea") == ["Tea, please."]
