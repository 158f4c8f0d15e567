"""Changed values in a context: turns whose statements a later one has replaced."""

from datetime import timedelta
from typing import Any

from schemas.state.memories import Item, Memory
from schemas.state.modes import Visibility
from tests.builders.items import item_of, with_items
from tests.builders.memories import START, made
from tests.harnesses.contexts import ContextHarness, memories

LATER = START + timedelta(days=3)


def moved(library: ContextHarness, *, private: bool = False, **fields: Any) -> list[str]:
    """Store two homes, of which the later replaced the earlier; return the ids of the turns."""
    berlin, hamburg = made("I live in Berlin."), made("I live in Hamburg.", 3 * 24 * 60)
    visibility = Visibility(searchable=True, private=private)
    new = item_of(hamburg, text=hamburg.text, visibility=visibility)
    known: dict[str, Any] = {"superseded_by": new.memory_id, "item": Item(kind="fact", valid_until=LATER)}
    old = item_of(berlin, text=berlin.text, **known | fields)
    library.search.memories = [with_items(hamburg, new), with_items(berlin, old)]
    library.store(old, new, *library.search.memories)
    return [berlin.memory_id, hamburg.memory_id]


async def marks(library: ContextHarness, **fields: Any) -> list[str | None]:
    return [memory.get("changed_at") for memory in memories(await library.assemble_context(**fields))]


async def test_the_older_of_two_values_is_marked(library: ContextHarness) -> None:
    moved(library)
    assert await marks(library) == ["2026-02-04T10:00:00Z", None]


async def test_the_compact_form_says_when_it_was_changed(library: ContextHarness) -> None:
    moved(library)
    result = await library.assemble_context(format="compact")
    assert "[1] was changed on 2026-02-04." in result.messages[1].content


async def test_what_a_consolidation_has_merged_is_not_changed(library: ContextHarness) -> None:
    moved(library, item=Item(kind="fact"))
    assert await marks(library) == [None, None]


async def test_what_still_holds_is_not_marked(library: ContextHarness) -> None:
    moved(library, superseded_by=None, item=Item(kind="fact"))
    assert await marks(library) == [None, None]


async def test_a_change_that_was_forgotten_is_none(library: ContextHarness) -> None:
    moved(library, superseded_by="gone")
    assert await marks(library) == [None, None]


async def test_a_private_change_is_not_told(library: ContextHarness) -> None:
    moved(library, private=True)
    assert await marks(library) == [None, None]


async def test_a_marked_context_stays_within_its_budget(library: ContextHarness) -> None:
    turns: list[Memory] = []
    for number in range(60):
        turn = made(f"My lucky number is now {number}.", number)
        new = item_of(made("other", 1000 + number), text=f"new {number}")
        old = item_of(turn, text=turn.text, superseded_by=new.memory_id, item=Item(kind="fact", valid_until=LATER))
        turns.append(with_items(turn, old))
        library.store(old, new)
    library.store(*turns)
    result = await library.assemble_context(format="compact", budget_tokens=500)
    assert result.messages[1].content.count("was changed on 2026-02-04.") == len(result.references)
    assert result.tokens["total"] <= 500
