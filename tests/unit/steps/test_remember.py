"""`RememberTurns` and `RememberEvents`: acknowledged only after their writes."""

import asyncio
import json
from pathlib import Path

from schemas.internal.events import Understood
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.wire.dead_letters import FILLER_HEADER, FILLER_VALUE
from tests.builders.turns import record, turn_fields
from tests.harnesses.remember_steps import FORGET, MOVE, REPLY, RememberSteps
from tests.harnesses.worker import HERE, TOPICS, event_record, run_step


async def test_forgotten_turn_gets_a_warning_and_is_not_stored(worker: RememberSteps) -> None:
    worker.say("violin", 0, mode="code")
    await worker.apply(FORGET)
    worker.publisher.sent.clear()
    worker.publisher.replies.clear()
    for offset, text in enumerate(["violin", "edited"], 1):
        again = turn_fields(text, turn_id="violin", mode="code")
        await run_step(worker.turns, record(again, offset=offset, headers=REPLY))
    answers = [json.loads(reply.value or b"") for reply in worker.publisher.replies]
    assert [(each["status"], each["warnings"][0]["code"]) for each in answers] == [("ok", "forgotten")] * 2
    assert list(worker.memories.all()) == []
    assert worker.publisher.sent == []
    assert worker.count_postings("violin") == 0


async def test_mode_source_is_counted_once_for_each_new_text(worker: RememberSteps) -> None:
    message = turn_fields("violin", turn_id="t", mode="code")
    for offset in range(2):
        await run_step(worker.turns, record(message, offset=offset))
    await run_step(worker.turns, record(turn_fields("cello", turn_id="u"), offset=2))
    assert worker.usage("modes_decided", source="caller") == 1
    assert worker.usage("modes_decided", source="fallback") == 1


def understood(memory: Memory, mode: str | None) -> Understood:
    return Understood(
        memory_id=memory.memory_id,
        text_hash=memory.reading.text_hash,
        interaction=Interaction(mode="TASK", confidence=0.9),
        found=Understanding(mode=mode),
        profile="default",
        prompt="understand-1",
        at=memory.occurred_at,
    )


async def test_model_mode_moves_a_memory_and_counts_disagreement(worker: RememberSteps) -> None:
    moved, agreed, silent = (worker.say(text, offset) for offset, text in enumerate(["violin", "cello", "drum"]))
    message = [understood(moved, "code"), understood(agreed, "general"), understood(silent, None)]
    await run_step(
        worker.events, *(event_record(event, TOPICS.understood, offset) for offset, event in enumerate(message))
    )
    assert [worker.stored(each).mode for each in (moved, agreed, silent)] == ["code", "general", "general"]
    assert [memory.mode for memory in worker.remembered_memories()] == ["code"]
    assert worker.publisher.to(TOPICS.remembered)[0].key == b"u1"
    assert worker.usage("model_modes", agrees="false") == 1
    assert worker.usage("model_modes", agrees="true") == 1
    assert worker.applied(TOPICS.understood) == 3


async def test_unreadable_event_is_a_dead_letter_and_skipped(worker: RememberSteps) -> None:
    memory = worker.say("violin", 0)
    bad = record(b"nonsense", topic=TOPICS.understood, offset=0)
    await run_step(worker.events, bad, event_record(understood(memory, "code"), TOPICS.understood, 1))
    assert worker.stored(memory).mode == "code"
    assert [out.value for out in worker.publisher.to(TOPICS.dead_letters)] == [b"nonsense"]


async def test_begun_change_is_not_durable_before_its_commit(worker: RememberSteps, tmp_path: Path) -> None:
    await run_step(worker.turns, record(turn_fields("violin", turn_id="t"), offset=0))
    await (await worker.changes.begin(event_record(MOVE, TOPICS.changes, 7)))
    again = SqliteLexicalIndex(tmp_path)
    again.open(HERE)
    offsets = again.databases.at(HERE).offsets()
    assert offsets.get(TOPICS.turns) == 1
    assert TOPICS.changes not in offsets, "its change is not settled"
    assert again.memory_columns(HERE, "u1").documents == 1
    again.close()


async def test_lexical_index_is_not_committed_during_a_change(worker: RememberSteps, tmp_path: Path) -> None:
    worker.say("violin", 0, mode="code")
    worker.words.commit(HERE)
    worker.publisher.hold()
    making = asyncio.create_task(worker.apply(MOVE))
    await asyncio.sleep(0)
    settling = asyncio.create_task(worker.turns.settle([HERE]))
    for _ in range(50):
        await asyncio.sleep(0)
    assert worker.texts("journal") == ["violin"]
    assert modes_on_disk(tmp_path) == {"code"}
    worker.publisher.release()
    await asyncio.gather(making, settling)
    assert modes_on_disk(tmp_path) == {"journal"}


def modes_on_disk(directory: Path) -> set[str]:
    words = SqliteLexicalIndex(directory)
    words.open(HERE)
    modes = set(words.counts(HERE, "u1"))
    words.close()
    return modes


async def test_filler_between_events_is_passed_over(worker: RememberSteps) -> None:
    await run_step(
        worker.events, record(FILLER_VALUE, topic=TOPICS.embedded, key=None, headers=((FILLER_HEADER, b""),))
    )
    assert worker.publisher.sent == []
