"""Merge the supports of an item from several turns into one record, regardless of arrival order. Pure.

Enters: extracted items of a turn; the supports of an item and its latest turn. Leaves: supports, the item's record; and
whether the rules would find other items in a turn today.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

from modestream_client.hits import Evidence

from agents.rules.items.extracting import ExtractedItem
from agents.rules.memory.understanding import current_text_hash
from agents.rules.memory.versions import derive_item_id
from agents.rules.memory.visibility import item_visibility, with_applicable_embedding
from agents.rules.text.passages import embedding_text
from schemas.state.memories import Embedding, Item, Memory, Support, TextVersion, TurnUnderstanding, hash_texts

MAX_SUPPORTS = 32
"""Maximum latest supports per item: more add no confidence, and the record stays small."""

MAX_SUPPORTS_CHARS = 8192
"""Maximum characters of the latest supports per item: a page attached to every turn has some hundred segments, and each
is rewritten with all of its supports."""

MAX_COMBINED_CONFIDENCE = 0.99
"""Limit of the combined confidence: all turns may err alike."""

CONFIDENCE_DIGITS = 4
"""Digits of a confidence, so that the order of summation does not matter."""


def supports_of(turn: Memory, items: Iterable[ExtractedItem]) -> list[Support]:
    return [
        Support(
            memory_id=turn.memory_id,
            turn_id=turn.turn_id or "",
            text_hash=current_text_hash(turn),
            occurred_at=turn.occurred_at,
            source=turn.source,
            accepted_at=turn.latest_at,
            **item._asdict(),
        )
        for item in items
    ]


def support_item_id(turn: Memory, support: Support) -> str:
    """Return the id of the supported item, in its mode, with the visibility of the turn.

    So the turns of one item have one visibility, and no text passes from a filtered one to another's item.
    """
    return derive_item_id(turn.scope, filtered_mode(turn, support), support.type, support.text)


def item_mode(turn: Memory, support: Support) -> str:
    """Return the original mode of an item: that of its turn, unless a model has found another register.

    A mode that a caller has given to the turn applies to all its items.
    """
    return turn.mode if support.mode is None or turn.mode_source == "caller" else support.mode


def filtered_mode(turn: Memory, support: Support | None = None) -> str:
    """Return the mode of a turn, or of its item, with the turn's filters; no mode's name has a space."""
    mode, visibility = turn.mode if support is None else item_mode(turn, support), turn.visibility
    return f"{mode}{'' if visibility.searchable else ' unsearchable'}{' private' if visibility.private else ''}"


def modeless_item_id(turn: Memory, support: Support) -> str:
    """Return the id of the item independent of the mode, which the tombstone of a forgotten item has."""
    return derive_item_id(turn.scope, "", support.type, support.text)


def modeless_ids(turn: Memory, support: Support) -> set[str]:
    """Return the ids without a mode of an item, and of the rules' item that it replaces."""
    texts = {support.text, support.instead_of or support.text}
    return {derive_item_id(turn.scope, "", support.type, text) for text in texts}


PARTED = " parted"
"""Stands for the mode in the tombstone of a rules' item that was forgotten in part: other parts may be created."""


def tombstones_of(item: Memory, support: Support) -> set[str]:
    """Return the tombstones that forget an item, and the rules' item with the same words."""
    whole = set[str]()
    if support.instead_of is not None:
        whole = {derive_item_id(item.scope, PARTED, support.type, support.instead_of)}
    return {modeless_item_id(item, support)} | whole


def forgotten_by(turn: Memory, support: Support) -> set[str]:
    """Return the tombstones, each of which prevents an item."""
    if support.instead_of is not None:
        return modeless_ids(turn, support)
    return {modeless_item_id(turn, support), derive_item_id(turn.scope, PARTED, support.type, support.text)}


def supports_from_turn(item: Memory, turn: Memory) -> list[Support]:
    current = turn.memory_id, current_text_hash(turn)
    return [support for support in _supports(item) if (support.memory_id, support.text_hash) == current]


def restrict_to_turn(item: Memory, turn: Memory) -> Memory:
    """Return an item for the event of a turn, without other turns' evidence, which would make the event grow."""
    evidence = tuple(quote for quote in item.evidence if quote.memory_id == turn.memory_id)
    details = None if item.item is None else item.item.model_copy(update={"supports": ()})
    return item.model_copy(update={"evidence": evidence, "item": details})


def is_supported_by_any(item: Memory, turns: Collection[str]) -> bool:
    return any(support.memory_id in turns for support in _supports(item))


def replace_supports(item: Memory | None, turns: Collection[str], new: Iterable[Support] = ()) -> tuple[Support, ...]:
    """Return the supports of an item with those from `turns` replaced by `new`, the latest last.

    At most `MAX_SUPPORTS`, and as many as fit into `MAX_SUPPORTS_CHARS`, at least one.
    """
    others = () if item is None else [support for support in _supports(item) if support.memory_id not in turns]
    supports = sorted({*others, *new}, key=_order)[-MAX_SUPPORTS:]
    lengths = accumulate(len(support.text) for support in reversed(supports))
    fitting = sum(length <= MAX_SUPPORTS_CHARS for length in lengths)
    return tuple(supports[-max(fitting, 1) :])


class ItemDiff(NamedTuple):
    """Ids of items that a turn creates, removes, or gives changed evidence; each in one of the lists, in order."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def diff_items(
    turn: Memory, items: Iterable[tuple[str, Memory | None, Sequence[Support]]], dropped: Iterable[Memory]
) -> ItemDiff:
    """Compare items with their future state: those with these supports of a turn, and those that lose its own."""
    turns, added, removed, changed = (turn.memory_id,), set[str](), set[str](), set[str]()
    for memory_id, before, supports in items:
        if before is None:
            added.add(memory_id)
        elif set(replace_supports(before, turns, supports)) != set(_supports(before)):
            changed.add(memory_id)
    for item in dropped:
        if is_supported_by_any(item, turns):
            (changed if replace_supports(item, turns) else removed).add(item.memory_id)
    return ItemDiff(*(tuple(sorted(ids)) for ids in (added, removed, changed)))


def sum_diffs(diffs: Iterable[ItemDiff]) -> ItemDiff:
    """Return the total change of several turns: an item that one removed and another created is a changed one."""
    added, removed, changed = (set[str]() for _ in ItemDiff._fields)
    for diff in diffs:
        added |= {*diff.added}
        removed |= {*diff.removed}
        changed |= {*diff.changed}
    both = added & removed
    added, removed = added - both, removed - both
    return ItemDiff(*(tuple(sorted(ids)) for ids in (added, removed, (changed | both) - added - removed)))


def build_item(memory_id: str, supports: Sequence[Support], turn: Memory, before: Memory | None) -> Memory:
    """Build the record of an item with these supports; `turn` is the latest supporting turn.

    Text, kind, claim and stability are those of the last support. The mode of `before` stays: a user may have moved the
    item to another mode than its turns. Otherwise it is the original one, and the caller sets its visibility and its
    decay. An item of several turns has no turn, conversation, role or speaker.
    """
    last = supports[-1]
    is_single_turn = len({support.memory_id for support in supports}) == 1
    item_before = before.item if before is not None and before.item is not None else Item()
    mode = before.mode if before else item_mode(turn, last)
    memory = Memory(
        memory_id=memory_id,
        turn_id=last.turn_id if is_single_turn else None,
        conversation_id=turn.conversation_id if is_single_turn else None,
        scope=turn.scope,
        boundary=turn.boundary,
        type=last.type,
        mode=mode,
        mode_source=before.mode_source if before else turn.mode_source if mode == turn.mode else "model",
        role=turn.role if is_single_turn else None,
        speaker=turn.speaker if is_single_turn else None,
        text=last.text,
        occurred_at=last.occurred_at,
        source=last.source,
        latest=turn.latest,
        latest_at=turn.latest_at,
        importance=turn.importance,
        entities=last.entities,
        evidence=tuple(
            Evidence(**{name: getattr(support, name) for name in Evidence.model_fields}) for support in supports
        ),
        decay=before.decay if before else turn.decay,
        versions=(TextVersion(text_hash=hash_texts([last.text]), first_seen=turn.latest_at),),
        first_accepted_at=min(support.accepted_at or turn.latest_at for support in supports),
        content_hash="",
        reading=TurnUnderstanding(text_hash=hash_texts([last.text]), times=last.times),
        origin="extracted",
        item=item_before.model_copy(
            update={
                "kind": last.kind,
                "confidence": combine_confidences(supports),
                "stability": last.stability,
                "claim": last.claim,
                "valid_from": supports[0].occurred_at,
                "supports": tuple(supports),
            }
        ),
        revision=turn.revision,
        visibility=item_visibility(turn, before),
        own_visibility=turn.visibility if turn.origin == "said" else turn.own_visibility,
    )
    content_hash = hash_texts([embedding_text(memory)])
    retained: dict[str, object] = {}
    if before is not None:
        # The vector of another text is gone; its location is needed to remove it.
        is_same_text = before.content_hash == content_hash
        embedding = before.embedding if is_same_text else Embedding(place=before.embedding.place)
        retained = {
            "embedding": embedding,
            "superseded_by": before.superseded_by,
            "superseded_in": before.superseded_in,
            "superseded_at": before.superseded_at,
        }
    memory = apart_from(turn.mode, memory.model_copy(update={"content_hash": content_hash, **retained}))
    return with_applicable_embedding(memory)


def apart_from(turn_mode: str, item: Memory) -> Memory:
    """Return an item whose latest turn is in this mode."""
    apart = None if turn_mode == item.mode else turn_mode
    if item.item is None or item.item.turn_mode == apart:
        return item
    return item.model_copy(update={"item": item.item.model_copy(update={"turn_mode": apart})})


def combine_confidences(supports: Iterable[Support]) -> float:
    """Combine the confidences of independent turns by noisy-or (Pearl 1988, §4.3.2), one per turn."""
    by_turn: dict[str, float] = {}
    for support in supports:
        by_turn[support.memory_id] = max(support.confidence, by_turn.get(support.memory_id, 0.0))
    doubt = prod(1 - confidence for confidence in sorted(by_turn.values()))
    limit = max(MAX_COMBINED_CONFIDENCE, *by_turn.values())
    return round(min(limit, 1 - doubt), CONFIDENCE_DIGITS)


def _supports(item: Memory) -> tuple[Support, ...]:
    return () if item.item is None else item.item.supports


def _order(support: Support) -> tuple[object, ...]:
    span = support.resource or "", support.start, support.end
    return support.occurred_at, support.source, support.memory_id, *span, support.text


def is_due_by_rules(
    turn: Memory,
    supports: Iterable[Support],
    items: Sequence[Memory],
    read: Callable[[str], Memory | None],
    is_forgotten: Callable[[str], bool],
) -> bool:
    """True if the rules find other items in a turn than its record has; `items` are these.

    For a turn understood by a model, only added items count.
    """
    current = {support for item in items for support in supports_from_turn(item, turn)}
    wanted = {support for support in supports if not any(map(is_forgotten, forgotten_by(turn, support)))}
    if turn.reading.status == "model":
        current_ids = {item_id for support in current for item_id in modeless_ids(turn, support)}
        return any(modeless_item_id(turn, support) not in current_ids for support in wanted)
    if not current <= wanted:
        return True
    for support in wanted - current:
        item_id = support_item_id(turn, support)
        item = read(item_id)
        if item is None or item.item is None:
            return True
        # An item that already has the maximum of later supports is not due.
        of_turn = [other for other in current if support_item_id(turn, other) == item_id]
        if set(replace_supports(item, (turn.memory_id,), [*of_turn, support])) != set(item.item.supports):
            return True
    return False
