"""What of a category may be shown: nothing of a memory that is gone, replaced or superseded. Pure.

A category is kept beside the memories that its summary and anchors were taken from, and refreshed after they change.
Whoever shows one asks here first, so that what is forgotten is seen no more from that moment on.
"""

from collections.abc import Callable

from agents.rules.categories.summary import summary_of
from schemas.categories import Category
from schemas.memories import Memory

ReadMemory = Callable[[str], Memory | None]
"""The record of an id as it is now; None for one that is gone."""


def is_current(category: Category, read: ReadMemory) -> bool:
    """Whether all that the category's summary and anchors rest on is there as it was."""
    return all(_stands(category, memory_id, read) for memory_id in category.rests_on)


def visible_category(category: Category, read: ReadMemory) -> Category:
    """The category itself, or where it rests on what is not there any more, what is left of it.

    Then the anchors are those that are left, and the summary is made of their texts alone.
    """
    if is_current(category, read):
        return category
    left = {one: memory for one in category.anchors if _stands(category, one, read) and (memory := read(one))}
    return category.model_copy(
        update={
            "summary": summary_of(memory.text for memory in left.values()),
            "anchors": tuple(left),
            "rests_on": {one: category.rests_on[one] for one in left},
            "profile": None,
        }
    )


def _stands(category: Category, memory_id: str, read: ReadMemory) -> bool:
    memory = read(memory_id)
    hash_then = category.rests_on.get(memory_id)
    return memory is not None and memory.superseded_by is None and memory.content_hash == hash_then
