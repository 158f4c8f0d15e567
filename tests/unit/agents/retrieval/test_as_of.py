"""What was known then: searches and lists as of a time."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from schemas.state.intention import Intention, IntentionEntry
from schemas.state.memories import Memory, TextVersion
from tests.builders.items import distilled_of, item_of, spans, with_items
from tests.builders.memories import START, made
from tests.harnesses.lists import ListHarness
from tests.harnesses.retrieval import RetrievalHarness

LAMP = "The lamp in the hall is broken."
QUESTION = "which lamp is broken?"
DAY = timedelta(days=1)


def accepted(memory: Memory, days: float, **fields: Any) -> Memory:
    """Return a memory whose record came some days after the start."""
    at = START + days * DAY
    version = TextVersion(text_hash="hash", first_seen=at)
    return memory.model_copy(update={"versions": (version,), "latest_at": at} | fields)


def as_of(days: float) -> dict[str, str]:
    return {"as_of": (START + days * DAY).isoformat()}


@pytest.mark.parametrize(("days", "known"), [(0.9, set()), (1, {"hall"}), (2, {"hall", "attic"})])
async def test_a_search_finds_what_was_accepted_until_then(
    library: RetrievalHarness, days: float, known: set[str]
) -> None:
    # In the order of their records, not of what they tell of.
    hall, attic = made(LAMP, 9), made("The lamp in the attic is broken.", 1)
    await library.remember(accepted(hall, 1), accepted(attic, 2))
    texts = await library.texts(QUESTION, **as_of(days))
    assert {room for room in ("hall", "attic") if f"in the {room} " in " ".join(texts)} == known


async def test_a_memory_says_when_it_was_accepted(library: RetrievalHarness) -> None:
    await library.remember(accepted(made(LAMP), 1))
    [hit] = (await library.ask(QUESTION))[0].hits
    assert hit.accepted_at == "2026-02-02T10:00:00Z"


@pytest.mark.parametrize(("days", "edited"), [(1, True), (2, False)])
async def test_an_edited_text_is_that_of_today_and_says_so(
    library: RetrievalHarness, days: float, edited: bool
) -> None:
    versions = tuple(TextVersion(text_hash=str(day), first_seen=START + day * DAY) for day in (1, 2))
    await library.remember(accepted(made(LAMP), 2, versions=versions, current=1))
    [hit] = (await library.ask(QUESTION, **as_of(days)))[0].hits
    assert hit.edited_since is edited


@pytest.mark.parametrize(("days", "current"), [(2, LAMP), (3, "Lamps break.")])
async def test_what_superseded_it_later_does_not_yet(library: RetrievalHarness, days: float, current: str) -> None:
    turn = accepted(made(LAMP), 1)
    summary = accepted(distilled_of(turn, text="Lamps break."), 3)
    superseded = {"superseded_by": summary.memory_id, "superseded_at": summary.accepted_at}
    await library.remember(turn.model_copy(update=superseded), summary)
    assert await library.texts("do lamps break, is one broken?", **as_of(days)) == [current]


async def test_an_item_of_a_later_turn_is_not_shown_inside_a_hit(library: RetrievalHarness) -> None:
    turn = accepted(made(LAMP), 1)
    early, late = (item_of(turn, text=f"The lamp {number} of the hall broke.") for number in range(2))
    items = [accepted(item, day, first_accepted_at=None) for item, day in ((early, 1), (late, 3))]
    await library.remember(with_items(turn, *items), *items)
    [hit] = (await library.ask(QUESTION, **as_of(2)))[0].hits
    assert [item.memory_id for item in hit.items] == [early.memory_id]


async def test_an_intention_of_a_later_turn_is_not_shown(library: RetrievalHarness) -> None:
    turn = accepted(made("I want to ship the beta in June."), 2)
    await library.remember(turn, made("The beta tester is called Cy.", 5))
    entry = IntentionEntry(text="to ship the beta in June", source="said", at=START, offset=1, evidence=spans([turn]))
    library.intentions.put(0, turn.scope, Intention(goals=(entry,)))
    for days, shown in ((1, False), (2, True)):
        asked: dict[str, Any] = {"project": "default", "depth": "auto"} | as_of(days)
        result, _ = await library.ask("who tests the beta before we ship?", **asked)
        assert bool(result.intention and result.intention["goals"]) is shown


@pytest.mark.parametrize(("days", "listed"), [(0, []), (1, [LAMP]), (2, ["It is repaired.", LAMP])])
async def test_a_list_has_what_was_accepted_until_then(tmp_path: Path, days: float, listed: list[str]) -> None:
    lists = ListHarness(tmp_path)
    lists.store(accepted(made(LAMP, 1), 1), accepted(made("It is repaired.", 2), 2))
    page = await lists.page(**as_of(days))
    assert [item.text for item in page.items] == listed
    assert page.total == len(listed)
