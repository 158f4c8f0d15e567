"""Filters of searches and lists: what matches, before anything is ranked, counted or shown."""

import random
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from agents.retrieval import vector_search
from agents.rules.index.memory_columns import MAX_FILTERED_VALUES
from schemas.state.categories import Category, Taxonomy
from schemas.state.intention import Intention, IntentionEntry
from schemas.state.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.items import distilled_of, item_of, spans, with_items
from tests.builders.memories import START, made
from tests.harnesses.lists import ListHarness
from tests.harnesses.retrieval import RetrievalHarness
from tests.properties import SEEDS, SHARED_FIXTURE, scaled

SCOPE = {"user_id": "ana", "project_id": "default"}
SPEAKERS, ROLES, CONVERSATIONS = ("Ana", "ana", "Ben", None), ("user", "assistant", "tool"), ("c1", "c2")
METADATA = ("mail", "7", "true", "", 7, 7.0, 0.5, -0.0, 0, 10**30, True, False, None, ["mail"], {"n": 7})
FILTERED = ("mail", "7", "true", "", 7, 7.0, 0.5, 0, 10**30, True, False)


def is_match(memory: Memory, filters: dict[str, Any], turns: dict[str, Memory]) -> bool:
    """Say by its record whether a memory matches."""
    if memory.origin != "said":
        return all(is_match(turns[quote.memory_id or ""], filters, turns) for quote in memory.evidence)
    named = {name: filters[name] for name in ("speaker", "role", "conversation_id") if name in filters}
    kinds = [(type(value) is bool, value) for value in memory.metadata.values() if isinstance(value, str | int | float)]
    wanted = [(type(value) is bool, value) for value in filters.get("metadata", {}).get("n", ())]
    return all(getattr(memory, name) in values for name, values in named.items()) and (
        not wanted or any(value in kinds for value in wanted)
    )


def drawn_memories(drawn: random.Random, user: str) -> tuple[list[Memory], list[Memory]]:
    """Return turns, and what is derived of one or several of them each."""
    turns = [
        made(
            f"The lamp {number} is broken.",
            number,
            user=user,
            speaker=drawn.choice(SPEAKERS),
            role=drawn.choice(ROLES),
            conversation_id=drawn.choice(CONVERSATIONS),
            metadata={"n": drawn.choice(METADATA)} if drawn.random() < 0.8 else {},
        )
        for number in range(12)
    ]
    derived = [
        drawn.choice((item_of, distilled_of))(*drawn.sample(turns, drawn.randint(1, 3)), text=f"Lamps break {number}.")
        for number in range(6)
    ]
    return turns, derived


def drawn_filters(drawn: random.Random) -> dict[str, Any]:
    choices = {
        "speaker": drawn.sample(("Ana", "Ben", "Cy"), drawn.randint(1, 2)),
        "role": drawn.sample(ROLES, drawn.randint(1, 2)),
        "conversation_id": drawn.sample(("c1", "c2", "c9"), drawn.randint(1, 2)),
        "metadata": {"n": drawn.sample(FILTERED, drawn.randint(1, 4))},
    }
    return {name: choices[name] for name in drawn.sample(list(choices), drawn.randint(1, 3))}


@settings(max_examples=scaled(30), suppress_health_check=SHARED_FIXTURE)
@given(seed=SEEDS)
async def test_a_search_finds_exactly_what_matches(words: SqliteLexicalIndex, seed: int) -> None:
    drawn, user = random.Random(seed), f"u{uuid.uuid4()}"
    library = RetrievalHarness(words, has_tokens=drawn.random() < 0.5)
    turns, derived = drawn_memories(drawn, user)
    await library.remember(*turns, *derived)
    by_id, filters = {turn.memory_id: turn for turn in turns}, drawn_filters(drawn)
    for types, among in (
        (None, [*turns, *(memory for memory in derived if memory.origin == "distilled")]),
        (["semantic"], derived),
    ):
        result, _ = await library.ask("which lamp is broken?", user, top_k=100, types=types, filters=filters)
        matching = {memory.memory_id for memory in among if is_match(memory, filters, by_id)}
        assert {hit.memory_id for hit in result.hits} == matching, filters
        assert result.diagnostics["candidates"] == len(matching)


LAMP = "The lamp in the hall is broken."


@pytest.mark.parametrize(
    ("given_ids", "spare"), [(5000, 75), (3, 75), (3, 0)], ids=["by ids", "among more than is wanted", "again by ids"]
)
async def test_the_best_that_match_are_found_behind_any_number_of_others(
    library: RetrievalHarness, given_ids: int, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "MAX_GIVEN_IDS", given_ids)
    monkeypatch.setattr(vector_search, "FILTERED_SPARE", spare)
    monkeypatch.setattr(vector_search, "DENSE_LIMIT", 5)
    library.has_tokens = True
    await library.remember(*(made(LAMP, number, speaker="Ben") for number in range(60)))
    rooms = [made(f"{name} likes tea.", 100 + number, speaker="Ana") for number, name in enumerate("KLMNOPQ")]
    await library.remember(*rooms, made("The lamp in the attic is broken.", 99, speaker="Ana"))
    texts = await library.texts("which lamp is broken?", top_k=3, filters={"speaker": "Ana"})
    assert texts[0] == "The lamp in the attic is broken."
    assert len(texts) == 3


@pytest.mark.parametrize(("enough", "searches"), [(2, 1), (3, 2)])
async def test_the_engine_is_asked_again_only_if_too_few_of_the_nearest_match(
    library: RetrievalHarness, enough: int, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"MAX_GIVEN_IDS": 0, "FILTERED_SPARE": 0, "MAXSIM_FULL_SCAN_LIMIT": 1, "DENSE_CANDIDATE_LIMIT": 4}
    for name, limit in {**limits, "DENSE_LIMIT": enough}.items():
        monkeypatch.setattr(vector_search, name, limit)
    # Of the 8 nearest, all about lamps, Ana said 2.
    speakers = [*["Ben"] * 6, *["Ana"] * 8, *["Ben"] * 2]
    texts = [*[LAMP] * 8, *["Kim likes tea."] * 8]
    said = zip(texts, speakers, strict=True)
    await library.remember(*(made(text, number, speaker=speaker) for number, (text, speaker) in enumerate(said)))
    await library.ask("which lamp is broken?", filters={"speaker": "Ana"})
    assert len(library.vectors.searched) == searches


async def test_an_item_of_other_turns_too_is_not_shown_inside_a_hit(library: RetrievalHarness) -> None:
    first, second = made(LAMP, 1, speaker="Ana"), made(LAMP, 2, speaker="Ben", conversation_id="c2")
    shared, own = item_of(first, second, text=LAMP), item_of(first, text="The lamp of the hall broke.")
    await library.remember(with_items(first, shared, own), with_items(second, shared), shared, own)
    [hit] = (await library.ask("which lamp is broken?", filters={"speaker": "Ana"}))[0].hits
    assert [item.memory_id for item in hit.items] == [own.memory_id]


async def test_an_edited_turn_takes_what_is_derived_of_it_along(library: RetrievalHarness) -> None:
    turn = made(LAMP, 1, metadata={"source": "chat"})
    summary = distilled_of(turn, text="Lamps break.")
    await library.remember(turn, summary)
    library.store(turn.model_copy(update={"metadata": {"source": "mail"}, "speaker": "Ana"}))
    for filters, texts in (
        ({"metadata": {"source": "chat"}}, set[str]()),
        ({"metadata": {"source": "mail"}, "speaker": "Ana"}, {LAMP, "Lamps break."}),
    ):
        assert set(await library.texts("lamps", filters=filters)) == texts


async def test_what_is_derived_of_a_turn_that_is_gone_matches_nothing(library: RetrievalHarness) -> None:
    turns = [made(LAMP, number, speaker="Ana") for number in range(2)]
    await library.remember(*turns, distilled_of(*turns, text="Lamps break."))
    library.words.remove(0, turns[0].memory_id)
    assert await library.texts("lamps", filters={"speaker": "Ana"}) == [LAMP]


async def test_counts_of_other_modes_are_of_what_matches(library: RetrievalHarness) -> None:
    await library.remember(*(made(LAMP, number, speaker=speaker) for number, speaker in enumerate(("Ana", "Ben"))))
    library.store(made(LAMP, 5, mode="work", speaker="Ben"), made(LAMP, 6, mode="work", speaker="Ana"))
    _, warnings = await library.ask("lamp", filters={"speaker": "Ana"})
    assert next(message for code, message in warnings if code == "other_modes").endswith("work (1)")


async def test_metadata_beyond_the_first_values_is_not_found(library: RetrievalHarness) -> None:
    await library.remember(made(LAMP, 1, metadata={f"n{number}": number for number in range(MAX_FILTERED_VALUES + 1)}))
    last = MAX_FILTERED_VALUES - 1
    assert await library.texts("lamp", filters={"metadata": {f"n{last}": last}}) == [LAMP]
    assert await library.texts("lamp", filters={"metadata": {f"n{last + 1}": last + 1}}) == []


async def test_an_intention_and_summaries_show_what_matches_alone(library: RetrievalHarness) -> None:
    goals = [made(f"I want to ship the beta in {month}.", number, speaker=speaker)
             for number, (month, speaker) in enumerate((("June", "Ana"), ("May", "Ben")))]  # fmt: skip
    await library.remember(*goals, made("The beta tester is called Cy.", 5), made("Soup for dinner.", 6))
    entries = [
        IntentionEntry(text=f"to ship the beta in {month}", source="said", at=START, offset=1, evidence=spans([goal]))
        for month, goal in zip(("June", "May"), goals, strict=True)
    ]
    said = IntentionEntry(text="to ship the beta", source="set", at=START, offset=1)
    library.intentions.put(0, SCOPE, Intention(goals=(*entries, said)))
    rests_on = {goal.memory_id: goal.content_hash for goal in goals}
    category = Category(
        name="beta",
        description="ship",
        summary="\n".join(goal.text for goal in goals),
        anchors=tuple(rests_on),
        rests_on=rests_on,
        declared=True,
    )
    library.categories.put(0, SCOPE, Taxonomy(categories={"beta": category}))
    asked: dict[str, Any] = {"project": "default", "depth": "auto", "filters": {"speaker": "Ana"}}
    result, _ = await library.ask("who tests the beta before we ship?", **asked)
    assert result.intention is not None
    assert [goal["text"] for goal in result.intention["goals"]] == ["to ship the beta in June"]
    assert [category["summary"] for category in result.categories] == [goals[0].text]


@pytest.fixture
def lists(tmp_path: Path) -> ListHarness:
    return ListHarness(tmp_path)


async def test_a_list_counts_what_matches(lists: ListHarness) -> None:
    said = [made(f"turn {number}", number, speaker=("Ana", "Ben")[number % 2]) for number in range(10)]
    lists.store(*said, distilled_of(*said[::2], text="even"), distilled_of(*said, text="all"))
    page = await lists.page(filters={"speaker": "Ana"}, limit=3)
    assert page.total == 6
    shown = {item.text for item in await lists.all(filters={"speaker": "Ana"})}
    assert shown == {*(turn.text for turn in said[::2]), "even"}
    [conversation] = await lists.all("conversations", filters={"speaker": "Ana"})
    assert conversation.speakers == ["Ana"]


async def test_a_turn_that_is_edited_while_a_page_is_read_is_not_shown(lists: ListHarness) -> None:
    [first, *_] = lists.store(*(made(f"turn {number}", number, speaker="Ana") for number in range(3)))

    def edit(memory_id: str) -> None:
        if memory_id != first.memory_id and lists.records[first.memory_id].speaker == "Ana":
            lists.store(first.model_copy(update={"speaker": "Ben"}))

    lists.on_read = edit
    assert await lists.texts(filters={"speaker": "Ana"}) == ["turn 2", "turn 1"]
