"""File items under categories.

Enters: a change, a language model's answer, or the outcome of an embedding. Leaves: items, written with their
categories. Guaranteed: an item is filed under the current names of existing categories, whenever the assignment was
made: one to a renamed category follows it, one to a deleted category is dropped. Idempotent.
"""

from collections.abc import Iterable, Iterator, Mapping

from agents.memory.write_memory import WriteMemory
from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import Categories, MemoryWriter
from agents.rules.categories.assignment import merge_assignments, rename_assignments, top_model_categories
from agents.rules.memory.visibility import list_ids, list_ids_in_scope
from schemas.internal.changes import Change
from schemas.internal.events import Embedded
from schemas.state.memories import CategoryAssignment, Memory, all_index_names
from schemas.state.understanding import FoundCategory

FilingStep = tuple[Memory | None, tuple[()]]
"""An item that was written, or none; no event follows."""


class FileItems:
    """The part of `Remember` that assigns categories."""

    def __init__(
        self, memories: MemoryWriter, words: LexicalWriter, categories: Categories, write: WriteMemory
    ) -> None:
        self._memories = memories
        self._words = words
        self._categories = categories
        self._write = write

    def apply(self, change: Change) -> Iterator[FilingStep]:
        """Write each item that still exists in the change's scope; yields a step for each id of the change."""
        for memory_id, categories in change.assigned.items():
            item = self._item(memory_id, change.scope.model_dump())
            yield (None if item is None else self._assign(item, categories)), ()

    def refile(self, change: Change) -> Iterator[FilingStep]:
        """File the items in the change's categories anew; yields a step for each, those of other scopes included."""
        for index_name in all_index_names(change.scope.boundary):
            columns = self._words.memory_columns(index_name)
            postings = self._words.category_postings(index_name, change.categories)
            # A snapshot, because the writes change the columns.
            numbers = dict.fromkeys(number for each in postings for number in each.numbers.tolist())
            for memory_id in [columns.id_of[number] for number in numbers]:
                yield self._refile(self._item(memory_id, change.scope.model_dump())), ()

    def refile_rest(self, change: Change) -> Iterator[FilingStep]:
        """File the items anew that are left of a forgotten project or user, whose categories are gone."""
        scope = None if change.whole == "user" else change.scope.model_dump()
        for index_name in all_index_names(change.scope.boundary):
            columns = self._words.memory_columns(index_name)
            for memory_id in list_ids(columns) if scope is None else list_ids_in_scope(columns, scope):
                yield self._refile(self._memories.get(memory_id)), ()

    def add_model_categories(
        self, memory: Memory | None, categories_of_turn: Iterable[FoundCategory], *, again: str | None = None
    ) -> None:
        """Add a language model's categories of a turn to an item that was found in it.

        `again` is the id of a turn that was understood again: they replace those of the earlier answer, unless other
        turns support the item as well.
        """
        if memory is None or memory.item is None:
            return
        categories, before = top_model_categories(categories_of_turn), memory.item.categories
        if again is not None and {support.memory_id for support in memory.item.supports} == {again}:
            before = tuple(assignment for assignment in before if assignment.by != "model")
        if categories or before != memory.item.categories:
            self._assign(memory, merge_assignments(before, categories))

    def with_current_names(self, event: Embedded, memory: Memory) -> Embedded:
        """Return the event with the current names of its categories."""
        if not event.categories:
            return event
        categories = rename_assignments(event.categories, self._categories.get(memory.scope))
        return event.model_copy(update={"categories": categories})

    def _item(self, memory_id: str, scope: Mapping[str, str]) -> Memory | None:
        """Return the item of this id in a scope; None if there is none."""
        memory = self._memories.get(memory_id)
        return memory if memory is not None and memory.item is not None and memory.scope == scope else None

    def _refile(self, memory: Memory | None) -> Memory | None:
        """Write an item under the current names of its categories; None for a turn."""
        return None if memory is None or memory.item is None else self._assign(memory, memory.item.categories)

    def _assign(self, memory: Memory, categories: Iterable[CategoryAssignment]) -> Memory:
        """Write an item in these categories, an unchanged one too: its index entry may be outdated after a kill."""
        assert memory.item is not None
        current = rename_assignments(categories, self._categories.get(memory.scope))
        updated = memory.model_copy(update={"item": memory.item.model_copy(update={"categories": current})})
        self._write(updated)
        return updated
