"""Categories as commands return them, and as queries are compared with them. Pure."""

from collections.abc import Iterable
from typing import Any

from schemas.state.categories import Category
from schemas.state.memories import Memory

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
