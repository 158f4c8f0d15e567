"""What understanding turns again comes to, and whether rules would find other items in them."""

from agents.rules.items.extracting import extract_by_rules
from agents.rules.items.item_merging import (
    MAX_SUPPORTS,
    ItemDiff,
    build_item,
    diff_items,
    sum_diffs,
    support_item_id,
    supports_of,
)
from agents.rules.items.rereading import is_due_by_rules
from agents.rules.memory.identity import hash_texts
from schemas.state.memories import Memory, Support, TextVersion
from tests.builders.memories import made

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
    return build_item(memory_id, sorted(given, key=lambda one: (one.occurred_at, one.source)), of, None)


def is_due(of: Memory, found: list[Support], *items: Memory, forgotten: bool = False) -> bool:
    by_id = {one.memory_id: one for one in items}
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
