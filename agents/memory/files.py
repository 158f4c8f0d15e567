"""Keep the files of turns: which are to be read, their document memories, and which bytes no memory has any more.

Enters: turns as written, texts of files, and what moves or forgets turns. Leaves: records, rows of the table `files`,
and the events that must follow. Guaranteed: a document memory has an id of its turn, its resource and its number, so
that reading a file again makes no second one; bytes are removed once no memory of the user has them, and that is
durable.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.memory.items import KeepItems, MemoryEvent, WriteStep, forgotten_event
from agents.memory.write_memory import Slices, WriteMemory
from agents.ports.indexes import LexicalWriter
from agents.ports.stores import Categories, FileWriter, MemoryWriter, Modes
from agents.rules.categories.assignment import merge_assignments, rename_assignments, top_model_categories
from agents.rules.items.analysis import AnalysedText, analyse
from agents.rules.items.item_merging import build_item
from agents.rules.memory.resources import (
    IsReadable,
    derive_part_id,
    find_resource,
    part_ids,
    part_support,
    statuses_of,
    support_of_turn,
    uploads_of,
    with_resource,
    with_statuses,
)
from agents.rules.memory.versions import move_to_mode
from agents.rules.memory.visibility import list_ids, list_ids_in_scope
from agents.rules.modes.declaring import with_decay
from schemas.internal.changes import Change
from schemas.internal.events import Embedded
from schemas.messages.turns import Turn
from schemas.state.files import FileHolders, FileStatuses, FileText, ReadFailure, file_key, uploaded_sha256
from schemas.state.memories import CategoryAssignment, Memory, Resource, Support, all_index_names
from schemas.state.understanding import FoundCategory

# File items under categories.
#
# Enters: a change, a language model's answer, or the outcome of an embedding. Leaves: items, written with their
# categories. Guaranteed: an item is filed under the current names of existing categories, whenever the assignment was
# made: one to a renamed category follows it, one to a deleted category is dropped. Idempotent.

FilingStep = tuple[Memory | None, tuple[()]]
"""A written item, or nothing; no event follows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileItems:
    """The part of `Remember` that assigns categories."""

    memories: MemoryWriter
    words: LexicalWriter
    categories: Categories
    write: WriteMemory

    def apply(self, change: Change) -> Iterator[FilingStep]:
        """Write each item that still exists in the change's scope; yields a step for each id of the change."""
        for memory_id, categories in change.assigned.items():
            item = self._item(memory_id, change.scope.model_dump())
            yield (None if item is None else self._assign(item, categories)), ()

    def refile(self, change: Change) -> Iterator[FilingStep]:
        """Reassign the items in the change's categories, in all scopes; yields a step for each."""
        for index_name in all_index_names(change.scope.boundary):
            columns = self.words.memory_columns(index_name)
            postings = self.words.category_postings(index_name, change.categories)
            # A snapshot, because the writes change the columns.
            numbers = dict.fromkeys(number for each in postings for number in each.numbers.tolist())
            for memory_id in [columns.id_of[number] for number in numbers]:
                yield self._refile(self._item(memory_id, change.scope.model_dump())), ()

    def refile_rest(self, change: Change) -> Iterator[FilingStep]:
        """Reassign the items that remain after a project or user was forgotten with its categories."""
        scope = None if change.whole == "user" else change.scope.model_dump()
        for index_name in all_index_names(change.scope.boundary):
            columns = self.words.memory_columns(index_name)
            for memory_id in list_ids(columns) if scope is None else list_ids_in_scope(columns, scope):
                yield self._refile(self.memories.get(memory_id)), ()

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
        if not event.categories:
            return event
        categories = rename_assignments(event.categories, self.categories.get(memory.scope))
        return event.model_copy(update={"categories": categories})

    def _item(self, memory_id: str, scope: Mapping[str, str]) -> Memory | None:
        memory = self.memories.get(memory_id)
        return memory if memory is not None and memory.item is not None and memory.scope == scope else None

    def _refile(self, memory: Memory | None) -> Memory | None:
        """Write an item under the current names of its categories; None for a turn."""
        return None if memory is None or memory.item is None else self._assign(memory, memory.item.categories)

    def _assign(self, memory: Memory, categories: Iterable[CategoryAssignment]) -> Memory:
        """Write an item in these categories, an unchanged one too: its index entry may be outdated after a kill."""
        assert memory.item is not None
        current = rename_assignments(categories, self.categories.get(memory.scope))
        updated = memory.model_copy(update={"item": memory.item.model_copy(update={"categories": current})})
        self.write(updated)
        return updated


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KeepFiles:
    """The part of `Remember` that keeps files."""

    memories: MemoryWriter
    words: LexicalWriter
    modes: Modes
    files: FileWriter
    items: KeepItems
    write: WriteMemory
    is_readable: IsReadable
    asks_model: bool = False

    def arriving(self, turn: Memory, before: Memory | None) -> Memory:
        """Return a turn that is to be written, its new files pending."""
        return with_statuses(turn, before, self.is_readable)

    def arrived(self, turn: Memory, before: Memory | None) -> Iterator[WriteStep]:
        """Note the files of a turn that was written; document memories of those that it no longer has are removed."""
        if before is None or not before.resources:
            self._note(turn, before)
            return
        kept = {resource.uri for resource in turn.resources}
        for resource in before.resources:
            if resource.uri not in kept:
                yield from self._remove(part_ids(before, resource))
        self._note(turn, before)
        yield from self.follow(turn.memory_id)

    def brought(self, turn: Turn, memory_id: str) -> None:
        """Have a turn's uploads removed if no memory has them: the turn was forgotten or has other files now."""
        boundary = turn.scope.boundary
        for sha256 in filter(None, {uploaded_sha256(resource.uri) for resource in turn.resources}):
            holders = self.files.holders(boundary, sha256)
            if memory_id not in (*holders.memories, *holders.former):
                self.files.remove_bytes(file_key(boundary, sha256, memory_id))

    def follow(self, memory_id: str) -> Iterator[WriteStep]:
        """Give the document memories of a turn its new mode and filter fields."""
        turn = self.memories.get(memory_id)
        for resource in () if turn is None else turn.resources:
            for part_id in part_ids(turn, resource) if turn is not None else ():
                part, turn = self.memories.get(part_id), self.memories.get(memory_id)
                if part is None or part.item is None or turn is None:
                    continue
                support = part.item.supports[-1].model_copy(update=support_of_turn(turn))
                built = self._built(part_id, turn, support, part)
                yield None, self.items.put_item(built, part)[1] if built != part else ()

    def begin(self, memory_id: str, uri: str, text: FileText) -> bool:
        """Note how many document memories a file has now; False if the turn does not wait for it any more."""
        turn, resource = self._pending(memory_id, uri)
        if turn is None or resource is None:
            return False
        parts = max(resource.parts, len(text.segments))
        if parts != resource.parts:
            # Before the first part is written: whatever forgets the turn finds all of them.
            self.write(with_resource(turn, resource.model_copy(update={"parts": parts})))
        return True

    def put_part(self, memory_id: str, uri: str, text: FileText, number: int) -> list[MemoryEvent]:
        """Write a document memory of a file that is pending; return the events that must follow."""
        turn, _ = self._pending(memory_id, uri)
        part_id = derive_part_id(memory_id, uri, number)
        if turn is None or self.memories.is_forgotten(part_id):
            return []
        before = self.memories.get(part_id)
        built = self._built(part_id, turn, part_support(turn, uri, text, number), before)
        return self.items.put_item(built, before)[1] if built != before else []

    def as_read(self, memory_id: str, uri: str, text: FileText) -> Memory | None:
        """Return a turn as it is once this file is read; None if it does not wait for it any more."""
        turn, resource = self._pending(memory_id, uri)
        if turn is None or resource is None:
            return None
        read = {
            "status": "ready",
            "reader": text.reader,
            "characters": len(text.text),
            "pages": text.pages,
            "seconds": text.seconds,
            "parts": len(text.segments),
            "code": None,
            "error": None,
        }
        return with_resource(turn, resource.model_copy(update=read))

    def finish(
        self, memory_id: str, uri: str, text: FileText, analysis: AnalysedText | None
    ) -> Slices[list[MemoryEvent]]:
        """Note that all of a file is there, with the items that are found in it; return the events that must follow.

        `analysis` is that of the turn `as_read`. A language model reads the turn again, with its files.
        """
        turn, resource = self._pending(memory_id, uri)
        read = self.as_read(memory_id, uri, text)
        if turn is None or resource is None or read is None:
            return []
        # What an earlier reading had more.
        events = [event for _, gone in self._remove(part_ids(turn, resource)[len(text.segments) :]) for event in gone]
        if self.asks_model:
            read = read.model_copy(update={"reading": read.reading.model_copy(update={"status": "pending"})})
        extracted = analyse(read, analysis, None, self.memories.get).items
        written, of_items = yield from self.items.refresh_items(read, extracted)
        self.files.put_turn(written.boundary, written.memory_id, statuses_of(written))
        return [*events, *of_items, *([self.items.learned_event(written)] if written.items else [])]

    def fail(self, memory_id: str, uri: str, code: ReadFailure, error: str) -> None:
        turn, resource = self._pending(memory_id, uri)
        if turn is not None and resource is not None:
            self._state(turn, resource, status="failed", code=code, error=error)

    def retry(self, memory_id: str) -> int:
        """Have the failed files of a turn read again; return their number."""
        turn = self.memories.get(memory_id)
        failed = [each for each in turn.resources if each.status == "failed"] if turn is not None else []
        for resource in failed:
            current = self.memories.get(memory_id)
            if current is not None:
                self._state(current, resource, status="pending")
        return len(failed)

    def forget_parts(self, turn: Memory) -> Iterator[WriteStep]:
        """Forget the document memories of a turn that is about to be forgotten; no new ones are made meanwhile."""
        if not any(resource.status for resource in turn.resources):
            return
        stopped = tuple(resource.model_copy(update={"status": None}) for resource in turn.resources)
        self.write(turn.model_copy(update={"resources": stopped}))
        for resource in turn.resources:
            for part_id in part_ids(turn, resource):
                if (part := self.memories.get(part_id)) is not None:
                    self.words.remove(part_id)
                    self.memories.forget(part_id, part.embedding.place)
                    yield part, [forgotten_event(part)]

    def forgotten(self, turn: Memory) -> None:
        """Mark a turn as forgotten, so that files only it had are removed."""
        if turn.resources:
            self._release(turn, uploads_of(turn))
            self.files.put_turn(turn.boundary, turn.memory_id, FileStatuses())

    def _pending(self, memory_id: str, uri: str) -> tuple[Memory | None, Resource | None]:
        turn = self.memories.get(memory_id)
        resource = find_resource(turn, uri)
        return (turn, resource) if resource is not None and resource.status == "pending" else (None, None)

    def _built(self, part_id: str, turn: Memory, support: Support, before: Memory | None) -> Memory:
        """Return a document memory; it is in its turn's mode, unless it was moved alone."""
        declared = self.modes.get(turn.boundary)
        base = before
        if before is not None and before.mode != turn.mode and before.item and before.item.turn_mode is None:
            base = with_decay(move_to_mode(before, (turn.mode, turn.mode_source)), declared)
        built = build_item(part_id, [support], turn, base)
        return built if before is not None else with_decay(built, declared)

    def _remove(self, part_ids_: Sequence[str]) -> Iterator[WriteStep]:
        for part_id in part_ids_:
            if (part := self.memories.get(part_id)) is not None:
                self.words.remove(part_id)
                self.memories.remove(part_id, part.embedding.place)
                yield part, [forgotten_event(part)]

    def _state(self, turn: Memory, resource: Resource, **state: object) -> None:
        """Write a new state of a resource and clear its earlier error."""
        changed = resource.model_copy(update={"code": None, "error": None, **state})
        written = with_resource(turn, changed)
        self.write(written)
        self.files.put_turn(written.boundary, written.memory_id, statuses_of(written))

    def _note(self, turn: Memory, before: Memory | None) -> None:
        if not turn.resources and (before is None or not before.resources):
            return
        now, then = uploads_of(turn), uploads_of(before)
        for sha256 in now:
            holders = self.files.holders(turn.boundary, sha256)
            if turn.memory_id not in holders.memories:
                memories = (*holders.memories, turn.memory_id)
                self.files.put_holders(turn.boundary, sha256, holders.model_copy(update={"memories": memories}))
        self._release(turn, then - now)
        self.files.put_turn(turn.boundary, turn.memory_id, statuses_of(turn))

    def _release(self, turn: Memory, hashes: Iterable[str]) -> None:
        for sha256 in hashes:
            holders = self.files.holders(turn.boundary, sha256)
            left = tuple(memory_id for memory_id in holders.memories if memory_id != turn.memory_id)
            former = tuple(dict.fromkeys((*holders.former, turn.memory_id)))
            if not left:
                for memory_id in former:
                    self.files.remove_bytes(file_key(turn.boundary, sha256, memory_id))
            self.files.put_holders(turn.boundary, sha256, FileHolders(memories=left, former=former))
