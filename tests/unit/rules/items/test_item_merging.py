"""Items merged from the supports of several turns."""

from itertools import permutations

import pytest

from agents.rules.items.extracted_item import ExtractedItem
from agents.rules.items.item_merging import (
    MAX_SUPPORTS,
    build_item,
    combine_confidences,
    is_supported_by_any,
    replace_supports,
    supports_of,
)
from schemas.state.memories import Memory, Support
from tests.builders.memories import embedded_in, made

TEXTS = ("The port is 81.", "The port is 81!", "the port is 81")


def support_from(turn: Memory, text: str | None = None, confidence: float = 0.5, start: int = 0) -> Support:
    """Return a support of an item from a turn."""
    said = turn.text if text is None else text
    found = ExtractedItem("fact", "semantic", said, start, start + len(said), None, confidence, 0.5, None, (), ())
    [support] = supports_of(turn, [found])
    return support


TURNS = [made(text, number) for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_item_is_independent_of_arrival_order(order: tuple[int, ...]) -> None:
    item: Memory | None = None
    supports: tuple[Support, ...] = ()
    for number in order:
        supports = replace_supports(
            item, (), [*(item.item.supports if item and item.item else ()), support_from(TURNS[number])]
        )
        last = next(turn for turn in TURNS if turn.memory_id == supports[-1].memory_id)
        item = build_item("item", supports, last, item)
    assert item is not None
    assert item.item is not None
    assert item == build_item("item", replace_supports(None, (), map(support_from, TURNS)), TURNS[2], None)
    assert (item.text, item.occurred_at, item.item.valid_from) == (TEXTS[2], TURNS[2].occurred_at, TURNS[0].occurred_at)


def test_each_turn_raises_the_confidence_once() -> None:
    one, other = made("a", 1), made("b", 2)
    assert combine_confidences([support_from(one, confidence=0.5)]) == 0.5
    assert combine_confidences([support_from(one, confidence=0.5), support_from(other, confidence=0.6)]) == 0.8
    twice = [support_from(one, confidence=0.5), support_from(one, confidence=0.4, start=9)]
    assert combine_confidences(twice) == 0.5


def test_combined_confidence_is_bounded() -> None:
    assert combine_confidences(support_from(made("a", number), confidence=0.9) for number in range(30)) == 0.99
    assert combine_confidences([support_from(made("a"), confidence=1.0)]) == 1.0


def test_supports_of_turns_are_replaced_and_removed() -> None:
    one, other = made("a", 1), made("b", 2)
    item = build_item("item", [support_from(one), support_from(other)], other, None)
    assert is_supported_by_any(item, {one.memory_id})
    assert replace_supports(item, {one.memory_id}) == (support_from(other),)
    assert replace_supports(item, {other.memory_id}, [support_from(other, start=3)]) == (
        support_from(one),
        support_from(other, start=3),
    )
    assert replace_supports(item, {one.memory_id, other.memory_id}) == ()


def test_latest_supports_are_kept() -> None:
    turns = [made("a", number) for number in range(MAX_SUPPORTS + 5)]
    kept = replace_supports(None, (), map(support_from, reversed(turns)))
    assert [one.memory_id for one in kept] == [turn.memory_id for turn in turns[5:]]


def test_item_keeps_its_vector_while_its_text_stays() -> None:
    before = build_item("item", [support_from(TURNS[0])], TURNS[0], None)
    before = before.model_copy(update={"embedding": embedded_in("s1"), "mode": "code", "mode_source": "caller"})
    same = build_item("item", [support_from(TURNS[0]), support_from(TURNS[1], TEXTS[0])], TURNS[1], before)
    assert (same.embedding, same.mode, same.mode_source) == (embedded_in("s1"), "code", "caller")
    other = build_item("item", [support_from(TURNS[0]), support_from(TURNS[1])], TURNS[1], before)
    assert (other.embedding.status, other.embedding.place) == ("pending", embedded_in("s1").place)


def test_only_an_item_of_one_turn_has_a_conversation() -> None:
    alone = build_item("item", [support_from(TURNS[0]), support_from(TURNS[0], start=20)], TURNS[0], None)
    assert (alone.turn_id, alone.conversation_id, alone.role) == ("t-0", "c1", "user")
    both = build_item("item", [support_from(TURNS[0]), support_from(TURNS[1])], TURNS[1], None)
    assert (both.turn_id, both.conversation_id, both.role) == (None, None, None)
    assert [one.memory_id for one in both.evidence] == [TURNS[0].memory_id, TURNS[1].memory_id]


def test_fewer_supports_of_long_texts_are_kept() -> None:
    turns = [made("The lantern hangs over the door. " * 30, number) for number in range(20)]
    kept: list[tuple[str, ...]] = []
    for order in (turns, turns[::-1]):
        supports: tuple[Support, ...] = ()
        for turn in order:
            item = build_item("item", supports, turns[0], None) if supports else None
            supports = replace_supports(item, (), [support_from(turn)])
        kept.append(tuple(one.memory_id for one in supports))
    assert kept[0] == kept[1] == tuple(turn.memory_id for turn in turns[-8:])
