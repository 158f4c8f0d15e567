"""The keeper's topics: turns and what models say of them; nothing is settled before it is safe."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.internal.events import Understood
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.turns import record, turn_fields
from tests.harnesses.remember import FORGET, MOVE, REPLY, RememberSteps
from tests.harnesses.worker import HERE, TOPICS, arriving, run


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RememberSteps]:
    home = RememberSteps(tmp_path)
    yield home
    home.words.close()


async def test_forgotten_turn_gets_a_warning_and_is_not_stored(home: RememberSteps) -> None:
    home.tell("violin", 0, mode="code")
    await home.make(FORGET)
    home.publisher.sent.clear()
    home.publisher.replies.clear()
    for offset, text in enumerate(["violin", "edited"], 1):
        again = turn_fields(text, turn_id="violin", mode="code")
        await run(home.turns, record(again, offset=offset, headers=REPLY))
    answers = [json.loads(reply.value or b"") for reply in home.publisher.replies]
    assert [(one["status"], one["warnings"][0]["code"]) for one in answers] == [("ok", "forgotten")] * 2
    assert (list(home.memories.all()), home.publisher.sent, home.finds("violin")) == ([], [], 0)


async def test_who_decided_a_mode_is_counted_once_for_each_new_text(home: RememberSteps) -> None:
    said = turn_fields("violin", turn_id="t", mode="code")
    for offset in range(2):
        await run(home.turns, record(said, offset=offset))
    await run(home.turns, record(turn_fields("cello", turn_id="u"), offset=2))
    assert home.usage("modes_decided", source="caller") == 1
    assert home.usage("modes_decided", source="fallback") == 1


def understood(memory: Memory, mode: str | None) -> Understood:
    """What a model said of a memory's text."""
    return Understood(
        memory_id=memory.memory_id,
        text_hash=memory.reading.text_hash,
        interaction=Interaction(mode="TASK", confidence=0.9),
        found=Understanding(mode=mode),
        profile="default",
        prompt="understand-1",
        at=memory.occurred_at,
    )


async def test_model_mode_moves_a_memory_and_counts_disagreement(home: RememberSteps) -> None:
    moved, agreed, silent = (home.tell(text, offset) for offset, text in enumerate(["violin", "cello", "drum"]))
    said = [understood(moved, "code"), understood(agreed, "general"), understood(silent, None)]
    await run(home.events, *(arriving(event, TOPICS.understood, offset) for offset, event in enumerate(said)))
    assert [home.kept(one).mode for one in (moved, agreed, silent)] == ["code", "general", "general"]
    assert [memory.mode for memory in home.remembered()] == ["code"]
    assert home.publisher.to(TOPICS.remembered)[0].key == b"u1"
    assert home.usage("model_modes", agrees="false") == 1
    assert home.usage("model_modes", agrees="true") == 1
    assert home.words.applied(HERE)[TOPICS.understood] == 3


async def test_an_event_that_cannot_be_read_is_a_dead_letter_and_passed_over(home: RememberSteps) -> None:
    memory = home.tell("violin", 0)
    bad = record(b"nonsense", topic=TOPICS.understood, offset=0)
    await run(home.events, bad, arriving(understood(memory, "code"), TOPICS.understood, 1))
    assert home.kept(memory).mode == "code"
    assert [out.value for out in home.publisher.to(TOPICS.dead_letters)] == [b"nonsense"]


async def test_nothing_is_settled_before_the_word_index_is_safe(home: RememberSteps, tmp_path: Path) -> None:
    await run(home.turns, record(turn_fields("violin", turn_id="t"), offset=0))
    await (await home.changes.begin(arriving(MOVE, TOPICS.changes, 7)))
    again = SqliteLexicalIndex(tmp_path)
    again.open(HERE)
    assert again.applied(HERE) == {TOPICS.turns: 1}, "what was settled, and nothing that was only begun"
    assert again.memory_columns(HERE, "u1").documents == 1
    again.close()


async def test_the_word_index_is_not_committed_while_a_change_is_not_told(home: RememberSteps, tmp_path: Path) -> None:
    home.tell("violin", 0, mode="code")
    home.words.commit(HERE)
    home.publisher.hold()
    making = asyncio.create_task(home.make(MOVE))
    await asyncio.sleep(0)
    settling = asyncio.create_task(home.turns.settle([HERE]))
    for _ in range(50):
        await asyncio.sleep(0)
    assert (home.texts("journal"), modes_on_disk(tmp_path)) == (["violin"], {"code"})
    home.publisher.release()
    await asyncio.gather(making, settling)
    assert modes_on_disk(tmp_path) == {"journal"}


def modes_on_disk(directory: Path) -> set[str]:
    """The modes that a worker finds which is started now."""
    words = SqliteLexicalIndex(directory)
    words.open(HERE)
    modes = set(words.counts(HERE, "u1"))
    words.close()
    return modes
