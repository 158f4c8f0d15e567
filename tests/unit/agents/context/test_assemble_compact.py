"""What a request may ask of its context: format, reserve, floor, examples, own texts, one mode."""

import json
from typing import Any

import pytest
from modestream_client.contexts import AssembleResult

from agents.context.assemble import ContextLimits
from schemas.failures import Rejected
from schemas.messages.assemble import DEFAULT_MIN_BEST_SCORE
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made
from tests.harnesses.contexts import ContextHarness, chatter


def entries(result: AssembleResult) -> list[str]:
    user = next(message.content for message in result.messages if '"memories"' in message.content)
    days = json.JSONDecoder().raw_decode(user, user.index("{"))[0]["memories"]
    return [entry for day in days.values() for entry in day]


async def compact(library: ContextHarness, **fields: Any) -> AssembleResult:
    return await library.assemble_context(format="compact", **fields)


async def test_numbers_of_entries_are_places_in_references(library: ContextHarness) -> None:
    ids = library.store(*chatter(3))
    result = await compact(library)
    assert [entry.split(" ")[0] for entry in entries(result)] == ["[1]", "[2]", "[3]"]
    assert result.references == ids
    assert not [memory_id for memory_id in ids if memory_id in result.messages[1].content]


async def test_compact_format_holds_more_than_the_full_one(library: ContextHarness) -> None:
    library.store(*chatter(100, words=12))
    few = await library.assemble_context(budget_tokens=1500, format="full")
    many = await compact(library, budget_tokens=1500)
    assert len(many.references) >= 1.5 * len(few.references)
    assert many.tokens["total"] <= 1500


async def test_evidence_fills_the_room_of_all_other_sections(library: ContextHarness) -> None:
    library.search.memories = chatter(100, words=12, conversation_id="c2")
    library.store(*library.search.memories)
    result = await compact(library, budget_tokens=1500, interaction_mode="DEBUGGING")
    assert result.tokens["total"] > 1400
    assert result.tokens["retrieved_evidence"] > result.budget["retrieved_evidence"]


@pytest.mark.parametrize(("reserve", "fits"), [(0, True), (1200, True), (1700, True), (1701, False), (5000, False)])
async def test_reserve_leaves_at_least_the_smallest_budget(library: ContextHarness, reserve: int, fits: bool) -> None:
    library.store(*chatter(100))
    if fits:
        result = await compact(library, budget_tokens=2000, reserve_tokens=reserve)
        assert result.tokens["total"] <= 2000 - reserve
        assert sum(result.budget.values()) <= 2000 - reserve
    else:
        with pytest.raises(Rejected) as refused:
            await compact(library, budget_tokens=2000, reserve_tokens=reserve)
        assert refused.value.code == "invalid_value"
        assert refused.value.field == "reserve_tokens"


async def test_budget_above_the_limit_of_the_deployment_is_rejected(words: SqliteLexicalIndex) -> None:
    library = ContextHarness(words, limits=ContextLimits(max_budget_tokens=1000))
    assert (await compact(library, budget_tokens=1000)).tokens["total"] <= 1000
    with pytest.raises(Rejected) as refused:
        await compact(library, budget_tokens=1001)
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "budget_tokens"


async def test_hits_below_the_floor_are_no_evidence(library: ContextHarness) -> None:
    library.search.memories = chatter(10, conversation_id="c2")
    ids = library.store(*library.search.memories)
    result = await compact(library, min_score=0.5)
    assert result.sections["retrieved_evidence"] == ids[:3], "scores are 0.9, 0.72, 0.58, 0.46, …"
    assert (await compact(library, min_score=1)).sections["retrieved_evidence"] == []
    assert len((await compact(library, min_score=0)).sections["retrieved_evidence"]) == 10


async def test_query_that_nothing_answers_has_no_evidence(words: SqliteLexicalIndex) -> None:
    library = ContextHarness(words, limits=ContextLimits(min_score=0.0, min_best_score=0.95))
    library.search.memories = chatter(3, conversation_id="c2")
    library.store(*library.search.memories)
    assert (await compact(library)).sections["retrieved_evidence"] == []
    assert len((await compact(library, min_score=0)).sections["retrieved_evidence"]) == 3
    assert ContextLimits().min_best_score == DEFAULT_MIN_BEST_SCORE


async def test_sections_have_memories_of_the_context_s_mode_alone(library: ContextHarness) -> None:
    journal = [
        made("I wish the login page were my only worry.", 0, mode="journal"),
        made("We decided to tell the children on Sunday.", 1, mode="journal"),
        made("No, I meant my sister, not my mother.", 2, mode="journal"),
    ]
    [*_, page] = library.store(*journal, made("The login page times out.", 3))
    library.search.memories = list(library.records.values())
    for name in ("compact", "full"):
        result = await library.assemble_context(format=name, pins=[journal[0].memory_id])
        assert result.references == [page]


async def test_safety_requirements_come_from_all_modes(library: ContextHarness) -> None:
    [safety, _] = library.store(
        made("Must validate all user input.", 0, mode="journal"), made("The login page times out.", 1)
    )
    assert (await compact(library)).sticky[0] == safety


async def test_texts_of_the_request_stand_among_the_memories(library: ContextHarness) -> None:
    ids = library.store(made("The lamp is in the cellar."))
    result = await compact(library, remember=[{"role": "user", "content": "The code name is Alabaster."}])
    assert entries(result) == ["[1] 10:00 user: The lamp is in the cellar.", "09:30 user: The code name is Alabaster."]
    assert result.references == ids


@pytest.mark.parametrize("field", ["system_prompt", "prefix", "suffix", "messages", "remember"])
async def test_own_texts_that_leave_no_room_are_rejected(library: ContextHarness, field: str) -> None:
    text = "word " * 500
    value = [{"role": "user", "content": text}] if field in ("messages", "remember") else text
    with pytest.raises(Rejected) as refused:
        await compact(library, budget_tokens=500, **{field: value})
    assert refused.value.code == "invalid_value"
    assert refused.value.field == field


async def test_examples_prefix_and_suffix_count_as_tokens(library: ContextHarness) -> None:
    library.store(*chatter(50))
    shots = [{"role": "user", "content": "Where is it? " * 20}, {"role": "assistant", "content": "Not known."}]
    plain = await compact(library, budget_tokens=600)
    shaped = await compact(library, budget_tokens=600, messages=shots, prefix="before " * 20, suffix="after " * 20)
    assert [message.role for message in shaped.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert shaped.tokens["total"] <= 600
    assert len(shaped.references) < len(plain.references)
