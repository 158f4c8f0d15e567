"""Compare the items of a turn with those that the rules find in it now. Pure."""

from collections.abc import Callable, Iterable, Sequence

from agents.rules.items.item_merging import modeless_item_id, replace_supports, support_item_id, supports_from_turn
from schemas.state.memories import Memory, Support


def is_due_by_rules(
    turn: Memory,
    found: Iterable[Support],
    items: Sequence[Memory],
    read: Callable[[str], Memory | None],
    is_forgotten: Callable[[str], bool],
) -> bool:
    """True if the rules find other items in a turn than its record has; `items` are these.

    Of a turn that a model has understood, items are only added.
    """
    current = {support for item in items for support in supports_from_turn(item, turn)}
    current_ids = {support_item_id(turn, one) for one in current}
    wanted = {one for one in found if not is_forgotten(modeless_item_id(turn, one))}
    if turn.reading.status == "model":
        return any(support_item_id(turn, one) not in current_ids for one in wanted)
    return not current <= wanted or any(_is_missing(turn, one, current, read) for one in wanted - current)


def _is_missing(turn: Memory, wanted: Support, current: set[Support], read: Callable[[str], Memory | None]) -> bool:
    """True unless the item has as many later supports as it may have."""
    item_id = support_item_id(turn, wanted)
    item = read(item_id)
    if item is None or item.item is None:
        return True
    own = [one for one in current if support_item_id(turn, one) == item_id]
    return set(replace_supports(item, (turn.memory_id,), [*own, wanted])) != set(item.item.supports)
