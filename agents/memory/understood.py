"""Apply the understanding of turns: by a language model, by one asked again, or by a new release's rules.

Enters: `Understood` and `Reread` events. Leaves: turns and items, written, and the events that must follow. Guaranteed:
what an earlier answer has found, and the new one has not, is removed with its evidence, claims, categories and vectors,
as if it had been forgotten, except that it may be found again. What changed is noted on the turn, with the write that
begins the change: however often an event or its job is repeated, it is counted once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.memory.change_memories import Move
from agents.memory.files import FileItems, KeepFiles
from agents.memory.items import KeepItems, MemoryEvent, WriteStep
from agents.memory.supersede import Supersede
from agents.memory.write_memory import Slices, WriteMemory
from agents.ports.stores import InteractionWriter, Memories, MemoryWriter, Modes
from agents.rules.cues.labels import has_signals
from agents.rules.interaction.stability import count_classification, count_correction, without_user
from agents.rules.items.analysis import AnalysedText, analyse
from agents.rules.items.extracting import ExtractedItem
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.understanding import (
    as_read_by_rules,
    is_about_current_text,
    is_answered_again,
    is_misclassified,
    restore_source,
    with_correction,
    with_refreshed,
    with_understanding,
)
from agents.rules.memory.visibility import is_affected
from agents.rules.modes.declaring import mode_after_answer, with_mode_source
from schemas.internal.changes import Change
from schemas.internal.events import Forgotten, Remembered, Reread, Understood
from schemas.moments import week_of
from schemas.scopes import PROJECT_FIELD
from schemas.state.interaction import Interaction, InteractionCounts
from schemas.state.memories import Memory, Refreshed, Support
from schemas.state.modes import ModeDeclarations, is_everywhere

# Correct interaction modes by command, and count classifications and corrections by week.
#
# Idempotent: a correction that is applied again changes no record, and a user counts once a week. Counts are written
# before the record: a killed worker repeats both.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountInteractions:
    """The part of `Remember` that counts classified turns and their corrections."""

    counts: InteractionWriter

    def add_classification(self, before: Memory, interaction: Interaction | None, at: datetime) -> None:
        """Count the first classification of a turn; `before` is its record without it."""
        if interaction is not None and before.reading.interaction is None:
            counts = self.counts.get()
            self._put(counts, count_classification(counts, before.boundary, interaction.mode, week_of(at)))

    def add_correction(self, before: Memory, at: datetime) -> None:
        """Count a correction of a memory's interaction mode."""
        counts = self.counts.get()
        self._put(counts, count_correction(counts, before.boundary, week_of(at)))

    def forget(self, boundary: str) -> None:
        """Remove a user from the counts while the user's own count can still be identified."""
        counts = self.counts.get()
        self._put(counts, without_user(counts, boundary))

    def _put(self, before: InteractionCounts, after: InteractionCounts) -> None:
        if after is not before:
            self.counts.put(after)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CorrectInteraction:
    """The part of `Remember` that corrects interaction modes."""

    memories: MemoryWriter
    write: WriteMemory
    counts: CountInteractions

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Yield the corrected memory, nothing if it was forgotten meanwhile."""
        assert change.interaction_mode is not None
        assert change.at is not None
        memory = self.memories.get(change.memory_id or "")
        if memory is None or not is_affected(memory, change):
            return
        if is_misclassified(memory, change.interaction_mode):
            self.counts.add_correction(memory, change.at)
        corrected = with_correction(memory, change.interaction_mode)
        if corrected != memory:
            self.write(corrected)
        yield corrected, ()


DerivedEvent = Remembered | Forgotten | None
"""The event that must follow a write of one memory, if any."""


def join_events(event: DerivedEvent, others: Sequence[MemoryEvent]) -> list[MemoryEvent]:
    """Return all events that must follow."""
    return ([] if event is None else [event]) + list(others)


@dataclass(frozen=True, slots=True)
class UnderstoodResult:
    """The events that must follow an `Understood` event, as for a turn.

    `agrees_with_default`: whether a model chose the default mode; None without a model's choice.
    """

    event: DerivedEvent = None
    agrees_with_default: bool | None = None
    item_events: tuple[MemoryEvent, ...] = ()

    @property
    def events(self) -> list[MemoryEvent]:
        return join_events(self.event, self.item_events)


@dataclass(frozen=True, slots=True)
class ApplyUnderstood:
    """The part of `Remember` that stores how turns were understood."""

    memories: Memories
    modes: Modes
    items: KeepItems
    supersede: Supersede
    file_items: FileItems
    files: KeepFiles
    move: Move
    count: CountInteractions

    def understood(self, event: Understood, text: AnalysedText | None) -> Slices[UnderstoodResult]:
        """Store an answer; if the model chose another mode, the turn and its vector move."""
        memory = self._concerned(event)
        if memory is None:
            return UnderstoodResult()
        self.count.add_classification(memory, event.interaction, event.at)
        understood = with_understanding(memory, event)
        analysis = analyse(understood, text, event.found, self.memories.get)
        answered = event.found.mode if event.found else None
        declared, project = self.modes.get(memory.boundary), memory.scope[PROJECT_FIELD]
        mode, source = mode_after_answer(understood, answered, project, declared)
        agrees = mode == declared.default(project)[0] if answered and source == "model" else None
        moves = mode != understood.mode
        released = self.supersede.release(memory) if moves else []
        if moves:
            updated = restore_source(self.move.into((mode, source), understood))
        else:
            updated = with_mode_source(source, understood)
        extracted = [_in_own_mode(item, updated, declared) for item in analysis.items]
        supports = self.items.supports_after(updated, extracted, keeps=event.found is None)
        noted = self._noted(updated, memory, event, supports)
        written, events = yield from self.items.write_in_slices(noted, supports)
        if event.found is not None:
            again = None if event.refresh is None else written.memory_id
            for memory_id in written.items:
                self.file_items.add_model_categories(self.memories.get(memory_id), event.found.categories, again=again)
                yield
        events += [*released, *self._removed_before(memory, event), *self._learned(written, memory, analysis, event)]
        for _, of_file in self.files.follow(written.memory_id) if moves else ():
            events += of_file
            yield
        # A redelivered answer: the worker may have been killed after the move and before it notified the indexer.
        resends = answered is not None and memory.reading.status == "model" and is_in_flight(written)
        agreement = agrees if event.refresh is None else None
        return UnderstoodResult(Remembered(memory=written) if moves or resends else None, agreement, tuple(events))

    def reread(self, event: Reread, text: AnalysedText | None) -> Slices[UnderstoodResult]:
        """Store the items that the rules find in a turn now; those that a model has found stay."""
        memory = self._concerned(event)
        if memory is None:
            return UnderstoodResult()
        analysis = analyse(memory, text, None, self.memories.get)
        is_by_model = memory.reading.status == "model"
        updated = memory if is_by_model else as_read_by_rules(memory)
        supports = self.items.supports_after(updated, analysis.items, keeps=is_by_model)
        noted = self._noted(updated, memory, event, supports)
        written, events = yield from self.items.write_in_slices(noted, supports)
        events += [*self._removed_before(memory, event), *self._learned(written, memory, analysis, event)]
        return UnderstoodResult(item_events=tuple(events))

    def _concerned(self, event: Understood | Reread) -> Memory | None:
        """Return the turn of an event; None if it was forgotten or edited, or its job already has an answer."""
        memory = self.memories.get(event.memory_id)
        if memory is None or not is_about_current_text(memory, event) or is_answered_again(memory, event):
            return None
        return memory

    def _noted(self, turn: Memory, before: Memory, event: Understood | Reread, supports: Sequence[Support]) -> Memory:
        """Record the changes that these supports will make, so that a repeated event finds them."""
        if event.refresh is None:
            return turn
        done = before.reading.refreshed
        if done is None or done.job_id != event.refresh.job_id:
            added, removed, changed = self.items.diff(turn, supports)
            is_answered, tokens = True, 0
            if isinstance(event, Understood):
                is_answered, tokens = event.found is not None, event.tokens
            done = Refreshed(
                job_id=event.refresh.job_id,
                at=event.at,
                tokens=tokens,
                is_answered=is_answered,
                added=added,
                removed=removed,
                changed=changed,
            )
        return with_refreshed(turn, done, event.revision)

    def _removed_before(self, before: Memory, event: Understood | Reread) -> list[MemoryEvent]:
        """Return the events of items that an earlier delivery of the event removed.

        A killed worker may have published none of them, and the commit of another event may have removed their words,
        by which a restart would find them.
        """
        done = before.reading.refreshed
        if event.refresh is None or done is None or done.job_id != event.refresh.job_id:
            return []
        gone = [item_id for item_id in done.removed if self.memories.is_removed(item_id)]
        return [Forgotten.last_in(item_id, self.memories.last_place(item_id)) for item_id in gone]

    def _learned(
        self, written: Memory, before: Memory, analysis: AnalysedText, event: Understood | Reread
    ) -> list[MemoryEvent]:
        """Return the event for agents that derive more from turns.

        A turn that is understood again always has one: a killed worker may have written the record without it, and the
        record no longer tells that an earlier answer had changed the intention.
        """
        is_due = has_signals(before) or written.items or analysis.has_signals or event.refresh is not None
        return [self.items.learned_event(written)] if is_due else []


def _in_own_mode(item: ExtractedItem, turn: Memory, declared: ModeDeclarations) -> ExtractedItem:
    """Return an item with the mode that a model has found for it; None if that is no declared one, or its turn's.

    Items of a turn that is private, or that no search finds, stay in its mode.
    """
    if item.mode is None:
        return item
    mode = turn.mode
    if is_everywhere(turn.visibility):
        mode, _ = mode_after_answer(turn, item.mode, turn.scope[PROJECT_FIELD], declared)
    return item._replace(mode=None if mode == turn.mode else mode)
