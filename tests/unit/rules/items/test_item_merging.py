from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agents.rules.items.extracting import ExtractedItem, extract_by_rules
from agents.rules.items.item_merging import (
    MAX_SUPPORTS,
    ItemDiff,
    build_item,
    combine_confidences,
    diff_items,
    is_due_by_rules,
    is_supported_by_any,
    replace_supports,
    sum_diffs,
    support_item_id,
    supports_of,
)
from agents.rules.memory.versions import derive_item_id, normalise_text
from schemas.state.memories import Memory, Support, TextVersion, hash_texts
from tests.builders.memories import embedded_in, made

TEXTS = ("The port is 81.", "The port is 81!", "the port is 81")


def support_from(turn: Memory, text: str | None = None, confidence: float = 0.5, start: int = 0) -> Support:
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
    assert item.text == TEXTS[2]
    assert item.occurred_at == TURNS[2].occurred_at
    assert item.item.valid_from == TURNS[0].occurred_at


def test_each_turn_raises_the_confidence_once() -> None:
    first, second = made("a", 1), made("b", 2)
    assert combine_confidences([support_from(first, confidence=0.5)]) == 0.5
    assert combine_confidences([support_from(first, confidence=0.5), support_from(second, confidence=0.6)]) == 0.8
    twice = [support_from(first, confidence=0.5), support_from(first, confidence=0.4, start=9)]
    assert combine_confidences(twice) == 0.5


def test_combined_confidence_is_bounded() -> None:
    assert combine_confidences(support_from(made("a", number), confidence=0.9) for number in range(30)) == 0.99
    assert combine_confidences([support_from(made("a"), confidence=1.0)]) == 1.0


def test_supports_of_turns_are_replaced_and_removed() -> None:
    first, second = made("a", 1), made("b", 2)
    item = build_item("item", [support_from(first), support_from(second)], second, None)
    assert is_supported_by_any(item, {first.memory_id})
    assert replace_supports(item, {first.memory_id}) == (support_from(second),)
    assert replace_supports(item, {second.memory_id}, [support_from(second, start=3)]) == (
        support_from(first),
        support_from(second, start=3),
    )
    assert replace_supports(item, {first.memory_id, second.memory_id}) == ()


def test_latest_supports_are_kept() -> None:
    turns = [made("a", number) for number in range(MAX_SUPPORTS + 5)]
    kept = replace_supports(None, (), map(support_from, reversed(turns)))
    assert [memory.memory_id for memory in kept] == [turn.memory_id for turn in turns[5:]]


def test_item_keeps_its_vector_while_its_text_stays() -> None:
    before = build_item("item", [support_from(TURNS[0])], TURNS[0], None)
    before = before.model_copy(update={"embedding": embedded_in("s1"), "mode": "code", "mode_source": "caller"})
    same = build_item("item", [support_from(TURNS[0]), support_from(TURNS[1], TEXTS[0])], TURNS[1], before)
    assert same.embedding == embedded_in("s1")
    assert same.mode == "code"
    assert same.mode_source == "caller"
    other = build_item("item", [support_from(TURNS[0]), support_from(TURNS[1])], TURNS[1], before)
    assert other.embedding.status == "pending"
    assert other.embedding.place == embedded_in("s1").place


def test_only_an_item_of_one_turn_has_a_conversation() -> None:
    alone = build_item("item", [support_from(TURNS[0]), support_from(TURNS[0], start=20)], TURNS[0], None)
    assert alone.turn_id == "t-0"
    assert alone.conversation_id == "c1"
    assert alone.role == "user"
    both = build_item("item", [support_from(TURNS[0]), support_from(TURNS[1])], TURNS[1], None)
    assert both.turn_id is None
    assert both.conversation_id is None
    assert both.role is None
    assert [quotation.memory_id for quotation in both.evidence] == [TURNS[0].memory_id, TURNS[1].memory_id]


def test_fewer_supports_of_long_texts_are_kept() -> None:
    turns = [made("The lantern hangs over the door. " * 30, number) for number in range(20)]
    kept: list[tuple[str, ...]] = []
    for order in (turns, turns[::-1]):
        supports: tuple[Support, ...] = ()
        for turn in order:
            item = build_item("item", supports, turns[0], None) if supports else None
            supports = replace_supports(item, (), [support_from(turn)])
        kept.append(tuple(support.memory_id for support in supports))
    assert kept[0] == kept[1] == tuple(turn.memory_id for turn in turns[-8:])


SCOPE = {"user_id": "u1", "project_id": "p1"}


def id_of(text: str, mode: str = "general", memory_type: str = "semantic", **scope: str) -> str:
    return derive_item_id(SCOPE | scope, mode, memory_type, text)


def test_ids_are_stable_between_releases() -> None:
    assert id_of("The deploy target is fly.io now.") == "6924296d-5992-5186-bb43-ebffd63c8320"


@pytest.mark.parametrize(
    "other",
    [
        "the deploy target is FLY.IO now",
        "  The deploy\ttarget is fly.io now!",
        "\u201cThe deploy target is fly.io now.\u201d",
        "The deploy target \u2013 is fly.io now\u2026",
        "The\u00a0deploy target is \uff46ly.io now.",
    ],
)
def test_case_spaces_and_punctuation_do_not_change_the_id(other: str) -> None:
    assert id_of(other) == id_of("The deploy target is fly.io now.")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("It is -5 degrees.", "It is 5 degrees."),
        ("I write C#.", "I write C."),
        ("I write C++.", "I write C."),
        ("Version 1.2", "Version 12"),
        ("I like \U0001f382", "I like \U0001f355"),
        ("...", "?!"),
        ("No smoking", "Smoking"),
    ],
)
def test_different_meanings_have_different_ids(first: str, second: str) -> None:
    assert id_of(first) != id_of(second)


def test_scope_mode_and_type_change_the_id() -> None:
    ids = {id_of("x"), id_of("x", user_id="u2"), id_of("x", "code"), id_of("x", memory_type="procedural")}
    assert len(ids) == 4


def test_apostrophes_are_normalised() -> None:
    assert normalise_text("I don\u2019t") == normalise_text("i don't")


@given(some.text(max_size=60))
def test_normalisation_is_idempotent(text: str) -> None:
    once = normalise_text(text)
    assert once == " ".join(once.split())
    assert normalise_text(once) == once


def test_run_of_punctuation_is_normalised_in_linear_time() -> None:
    assert normalise_text("a" + "." * 32_768 + "b").startswith("a.")
    assert normalise_text("." * 32_768 + "a") == "a"


TEXT = "My sister Ana lives in Lisbon. We decided to ship on Friday."


def turn(number: int = 1, status: str = "rules") -> Memory:
    memory = made(TEXT, number, role="user")
    reading = memory.reading.model_copy(update={"status": status})
    versions = (TextVersion(text_hash=hash_texts([TEXT]), first_seen=memory.occurred_at),)
    return memory.model_copy(update={"reading": reading, "versions": versions})


def supports(of: Memory) -> list[Support]:
    found = supports_of(of, extract_by_rules(of))
    assert len(found) == 2
    return found


def item(memory_id: str, *given: Support, of: Memory) -> Memory:
    return build_item(memory_id, sorted(given, key=lambda each: (each.occurred_at, each.source)), of, None)


def is_due(of: Memory, found: list[Support], *items: Memory, forgotten: bool = False) -> bool:
    by_id = {item.memory_id: item for item in items}
    return is_due_by_rules(of, found, items, by_id.get, lambda _: forgotten)


def test_turn_with_the_items_that_rules_find_is_not_due() -> None:
    first, second = supports(turn())
    assert not is_due(turn(), [first, second], item("a", first, of=turn()), item("b", second, of=turn()))


def test_turn_with_one_item_less_or_more_than_rules_find_is_due() -> None:
    first, second = supports(turn())
    only = item("a", first, of=turn())
    assert is_due(turn(), [first, second], only)
    assert is_due(turn(), [], only)
    assert is_due(turn(), [first.model_copy(update={"confidence": 0.1})], only)


def test_turn_that_a_model_has_read_is_due_for_new_items_alone() -> None:
    read = turn(status="model")
    first, second = supports(read)
    only = item("a", first, of=read)
    assert not is_due(read, [], only)
    assert not is_due(read, [first.model_copy(update={"confidence": 0.1})], only)
    assert is_due(read, [first, second], only)


def test_forgotten_item_makes_no_turn_due() -> None:
    assert not is_due(turn(), supports(turn()), forgotten=True)


def test_support_that_an_item_has_no_room_for_makes_no_turn_due() -> None:
    first, _ = supports(turn())
    later = [
        first.model_copy(update={"memory_id": f"m{number}", "source": 100 + number}) for number in range(MAX_SUPPORTS)
    ]
    full = item(support_item_id(turn(), first), *later, of=turn())
    assert not is_due_by_rules(turn(), [first], [full], {full.memory_id: full}.get, lambda _: False)


def test_diff_names_what_a_turn_makes_removes_and_changes() -> None:
    first, second = supports(turn())
    other = first.model_copy(update={"memory_id": "another"})
    own, shared = item("own", second, of=turn()), item("shared", first, other, of=turn())
    given = [("new", None, [first]), ("own", own, [second.model_copy(update={"confidence": 0.1})])]
    assert diff_items(turn(), given, [shared]) == ItemDiff(("new",), (), ("own", "shared"))
    assert diff_items(turn(), [("own", own, [second])], []) == ItemDiff()
    assert diff_items(turn(), [], [own]) == ItemDiff((), ("own",), ())


def test_sum_counts_an_item_that_one_turn_removed_and_another_made_as_changed() -> None:
    parts = [ItemDiff(("a", "b"), ("c",), ("d", "e")), ItemDiff(("c",), ("d",), ("a", "f"))]
    assert sum_diffs(parts) == ItemDiff(("a", "b"), ("d",), ("c", "e", "f"))
    assert sum_diffs([]) == ItemDiff()
