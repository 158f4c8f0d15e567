"""Category summaries as memories of a context. Pure."""

from collections.abc import Callable, Mapping

from agents.rules.categories.taxonomy import visible_category
from schemas.models.vectors import MemoryFilter
from schemas.scopes import PROJECT_FIELD
from schemas.state.categories import Category
from schemas.state.memories import Memory

CATEGORY_ID_PREFIX = "category:"
"""Prefix of a summary's id; ids of memories are UUIDs and can't collide with it."""


def capsule_of(
    scope: Mapping[str, str], category: Category, where: MemoryFilter, read: Callable[[str], Memory | None]
) -> Memory | None:
    """Return the current summary, without a speaker, at the time of its latest source; None without summary or source.

    `read` reads a memory by its id.
    """
    visible = visible_category(category, read)
    sources = [memory for memory in map(read, visible.rests_on) if memory is not None]
    if not visible.summary or not sources:
        return None
    latest = max(sources, key=lambda memory: (memory.occurred_ms, memory.memory_id))
    without_turn = dict.fromkeys(("turn_id", "conversation_id", "role", "speaker"))
    fields = {
        "memory_id": _id(scope, category, where),
        "scope": dict(scope),
        "type": "semantic",
        "origin": "distilled",
        "text": f"{category.name}: {visible.summary}",
        "evidence": (),
        "resources": (),
    }
    return latest.model_copy(update=without_turn | fields)


def _id(scope: Mapping[str, str], category: Category, where: MemoryFilter) -> str:
    """Return the id; it contains the project if the filter selects several."""
    one_project = where.scope.get(PROJECT_FIELD) is not None and len(where.scope[PROJECT_FIELD] or ()) == 1
    return CATEGORY_ID_PREFIX + (category.name if one_project else f"{scope[PROJECT_FIELD]}/{category.name}")
