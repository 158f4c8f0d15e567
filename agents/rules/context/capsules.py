"""A category's summary as a memory that a context can show. Pure."""

from collections.abc import Callable, Mapping

from agents.rules.categories.visibility import visible_category
from schemas.categories import Category
from schemas.memories import Memory
from schemas.scopes import PROJECT_FIELD
from schemas.vectors import MemoryFilter

CATEGORY_ID_PREFIX = "category:"
"""What the id of such a memory begins with: ids of memories are UUIDs, so it is none of theirs."""


def capsule_of(
    scope: Mapping[str, str], category: Category, where: MemoryFilter, read: Callable[[str], Memory | None]
) -> Memory | None:
    """The summary as it stands, said by nobody at the time of the latest memory that it rests on; None without one."""
    standing = visible_category(category, read)
    sources = [memory for memory in map(read, standing.rests_on) if memory is not None]
    if not standing.summary or not sources:
        return None
    latest = max(sources, key=lambda memory: (memory.occurred_ms, memory.memory_id))
    nobody = dict.fromkeys(("turn_id", "conversation_id", "role", "speaker"))
    fields = {
        "memory_id": _id(scope, category, where),
        "scope": dict(scope),
        "type": "semantic",
        "origin": "distilled",
        "text": f"{category.name}: {standing.summary}",
        "evidence": (),
        "resources": (),
    }
    return latest.model_copy(update=nobody | fields)


def _id(scope: Mapping[str, str], category: Category, where: MemoryFilter) -> str:
    """Of a read of several projects, with the project before the name."""
    one_project = where.scope.get(PROJECT_FIELD) is not None and len(where.scope[PROJECT_FIELD] or ()) == 1
    return CATEGORY_ID_PREFIX + (category.name if one_project else f"{scope[PROJECT_FIELD]}/{category.name}")
