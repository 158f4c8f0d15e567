"""Categories as commands and queries see them. Pure.

A category's summary and anchors are refreshed some time after its memories change. Every reader filters a category
here first, so that forgotten, filtered, replaced and superseded memories
disappear at once.
"""

from collections.abc import Callable, Iterable
from typing import Any

from agents.rules.categories.summary import summary_of
from schemas.state.categories import Category
from schemas.state.memories import Memory

ReadMemory = Callable[[str], Memory | None]
"""Return the current record of a memory id; None if it is gone."""


def is_current(category: Category, read: ReadMemory) -> bool:
    """True if all memories behind the category's summary and anchors are unchanged."""
    return all(_is_unchanged(category, memory_id, read) for memory_id in category.rests_on)


def visible_category(category: Category, read: ReadMemory) -> Category:
    """Return the category, reduced to its unchanged anchors and a summary of their texts if it is not current."""
    if is_current(category, read):
        return category
    current = {one: memory for one in category.anchors if _is_unchanged(category, one, read) and (memory := read(one))}
    return category.model_copy(
        update={
            "summary": summary_of(memory.text for memory in current.values()),
            "anchors": tuple(current),
            "rests_on": {one: category.rests_on[one] for one in current},
            "profile": None,
        }
    )


def _is_unchanged(category: Category, memory_id: str, read: ReadMemory) -> bool:
    memory = read(memory_id)
    expected_hash = category.rests_on.get(memory_id)
    if memory is None or not memory.visibility.searchable:
        return False
    return memory.superseded_by is None and memory.content_hash == expected_hash


MAX_SHOWN_ITEMS = 100
"""Items listed under a category, newest first; `size` counts all of them."""


def build_category_view(category: Category, size: int) -> dict[str, Any]:
    """Return what every command shows of a category."""
    return {
        "name": category.name,
        "description": category.description,
        "version": category.version,
        "size": size,
        "declared": category.declared,
    }


def category_text(category: Category) -> str:
    """Return the text that a query is compared with: name, description and summary."""
    return "\n".join((category.name, category.description, category.summary or ""))


def build_item_views(memories: Iterable[Memory], name: str) -> list[dict[str, Any]]:
    """Return the items as they are listed under the category `name`."""
    return [_item_view(memory, name) for memory in memories]


def _item_view(memory: Memory, name: str) -> dict[str, Any]:
    assignments = memory.item.categories if memory.item else ()
    return {
        "memory_id": memory.memory_id,
        "type": memory.type,
        "mode": memory.mode,
        "text": memory.text,
        "confidence": next((one.confidence for one in assignments if one.name == name), None),
    }
