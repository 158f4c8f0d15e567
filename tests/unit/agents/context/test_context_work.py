"""What one context may take: pauses on the event loop, and bounds of the texts that are read."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from agents.context import packing, revised_rules, sizing
from schemas.failures import Rejected
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made
from tests.fakes.tokenizer import FakeTokens
from tests.harnesses.contexts import ContextHarness

LARGEST_BUDGET = 200_000


@asynccontextmanager
async def counting_turns_of_others() -> AsyncIterator[list[None]]:
    """Count how often another task runs."""
    turns: list[None] = []

    async def others() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    yield turns
    task.cancel()
    await asyncio.wait([task])


async def test_others_run_between_two_sticky_memories(library: ContextHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "SLICE_S", 0.0)
    library.store(*(made(f"You must never deploy version {number} on a Friday.", number) for number in range(100)))
    async with counting_turns_of_others() as turns:
        result = await library.assemble_context(budget_tokens=LARGEST_BUDGET)
    assert len(result.sticky) == 100
    assert len(turns) >= 2 * 100


async def test_others_run_between_two_rules_that_may_have_expired(
    library: ContextHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [made(f"Never deploy version {number} until 3 May 2031.", number) for number in range(100)]
    library.store(*rules, made("The ban of version 7 is lifted.", 200))
    monkeypatch.setattr(sizing, "SLICE_S", 0.0)
    async with counting_turns_of_others() as turns:
        await library.assemble_context(budget_tokens=300)
    assert len(turns) >= 2 * 100


class Clock:
    """In place of `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


async def test_long_work_waits_for_nobody_where_nobody_has_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(sizing, "time", clock)
    pauses = sizing.Pauses()
    clock.now += 10
    async with asyncio.timeout(1):
        await pauses.pause_if_due()


async def test_long_work_leaves_half_of_the_time_to_others_that_have_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, worked = Clock(), [0.0]
    monkeypatch.setattr(sizing, "time", clock)

    async def others() -> None:
        while True:
            clock.now += 0.004
            worked[0] += 0.004
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await asyncio.sleep(0)
    pauses = sizing.Pauses()
    worked[0] = 0.0
    clock.now += 10
    await pauses.pause_if_due()
    assert worked[0] == pytest.approx(10, abs=0.01)
    task.cancel()
    await asyncio.wait([task])


class MeteredTokens(FakeTokens):
    """Counts the characters that it is given, too."""

    def __init__(self) -> None:
        super().__init__()
        self.chars = 0

    async def count(self, texts: Sequence[str]) -> list[int]:
        self.chars += sum(map(len, texts))
        return await super().count(texts)


def long_texts(count: int, words: int = 6000) -> list[str]:
    return [f"Report {number}. " + "island " * words for number in range(count)]


async def test_texts_without_room_are_not_counted(words: SqliteLexicalIndex) -> None:
    tokens = MeteredTokens()
    library = ContextHarness(words, tokens=tokens)
    texts = long_texts(100)
    library.store(*(made(text, number) for number, text in enumerate(texts)))
    library.search.memories = list(library.records.values())
    result = await library.assemble_context(budget_tokens=LARGEST_BUDGET)
    assert len(result.references) == 33
    assert len(result.dropped) == 67
    assert tokens.chars < 3 * 33 * len(texts[0])


async def test_texts_beyond_the_characters_of_a_context_are_dropped(
    library: ContextHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = long_texts(8, 1000)
    monkeypatch.setattr(packing, "MAX_OFFERED_CHARS", 3 * len(texts[0]))
    ids = library.store(*(made(text, number, conversation_id="c2") for number, text in enumerate(texts)))
    library.search.memories = list(library.records.values())
    result = await library.assemble_context(budget_tokens=LARGEST_BUDGET)
    assert len(result.references) == 3
    assert sorted([*result.references, *result.dropped]) == sorted(ids)


async def test_sticky_memories_beyond_their_characters_are_breaches(
    library: ContextHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [f"Never deploy version {number} on a Friday." for number in range(5)]
    monkeypatch.setattr(packing, "MAX_STICKY_CHARS", 2 * len(rules[0]))
    ids = library.store(*(made(rule, number) for number, rule in enumerate(rules)))
    result = await library.assemble_context(budget_tokens=LARGEST_BUDGET, conversation_id=None)
    assert result.sticky == ids[:2:-1]
    assert [breach.memory_id for breach in result.breaches] == ids[2::-1]


async def test_rules_beyond_the_characters_that_are_revised_hold(
    library: ContextHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "Nothing is deployed until 6 January 2026."
    monkeypatch.setattr(revised_rules, "MAX_REVISED_CHARS", 2 * len(rule))
    ids = library.store(*(made(rule, number) for number in range(3)))
    result = await library.assemble_context(budget_tokens=2000)
    assert result.sticky == ids[:1]


async def test_of_many_withdrawals_in_one_turn_the_first_count(
    library: ContextHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = library.store(made("No deploys on Fridays.", 0), made("It must run offline.", 1))
    assert (await library.assemble_context(budget_tokens=2000)).sticky == ids[::-1]
    library.store(made("The Friday deploy ban is lifted. It no longer has to run offline.", 2))
    assert (await library.assemble_context(budget_tokens=2000)).sticky == []
    monkeypatch.setattr(revised_rules, "MAX_TAKING_BACK", 1)
    assert (await library.assemble_context(budget_tokens=2000)).sticky == ids[1:]


async def test_own_texts_far_beyond_the_budget_are_refused_uncounted(words: SqliteLexicalIndex) -> None:
    tokens = MeteredTokens()
    library = ContextHarness(words, tokens=tokens)
    prompt = " " * (packing.MAX_CHARS_PER_TOKEN * 300)
    assert (await library.assemble_context(budget_tokens=300, system_prompt=prompt)).messages[0].content == prompt
    tokens.chars = 0
    with pytest.raises(Rejected) as refused:
        await library.assemble_context(budget_tokens=300, system_prompt="x", suffix=prompt)
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "suffix"
    assert tokens.chars == 0
