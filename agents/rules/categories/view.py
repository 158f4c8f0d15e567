"""Categories as commands show them, and as questions are held against them. Pure."""

from collections.abc import Iterable
from typing import Any

from schemas.categories import Category
from schemas.memories import Memory

MAX_SHOWN_ITEMS = 100
"""Items of a category that are shown, the newest first: `size` says how many there are."""


def build_category_view(category: Category, size: int) -> dict[str, Any]:
    """What every command shows of a category."""
    return {
        "name": category.name,
        "description": category.description,
        "version": category.version,
        "size": size,
        "declared": category.declared,
    }


def category_text(category: Category) -> str:
    """What a category says, as a question is held against it."""
    return "\n".join((category.name, category.description, category.summary or ""))


def build_item_views(memories: Iterable[Memory], name: str) -> list[dict[str, Any]]:
    """Members as they are listed under a category."""
    return [_shown_item(memory, name) for memory in memories]


def _shown_item(memory: Memory, name: str) -> dict[str, Any]:
    under = memory.item.categories if memory.item else ()
    return {
        "memory_id": memory.memory_id,
        "type": memory.type,
        "mode": memory.mode,
        "text": memory.text,
        "confidence": next((one.confidence for one in under if one.name == name), None),
    }
