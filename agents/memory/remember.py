"""Store memories: the only writer of their records and of the lexical index.

Enters, in the order of the partition: turns; `Embedded`, which updates the embedding status; `Understood`, which may
change the mode; `Change`, the effect of a command; results of consolidations. Leaves: the events that must follow.
Guaranteed: a turn is stored and can be found by its words when `turn` returns. Every write replaces the value under a
deterministic id, so that the same input again, after a crash or a replay, leaves the same state. No method awaits.
Work that writes many memories is done in slices; other events are handled between two slices.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.memory.change_memories import Move, ReleaseVectors, SetVisibility, affected_memories
from agents.memory.files import FileItems, KeepFiles
from agents.memory.forget import NO_STEP, ForgetMemories
from agents.memory.items import KeepItems, MemoryEvent, ResolveClaims, WriteStep
from agents.memory.supersede import Supersede
from agents.memory.understood import (
    ApplyUnderstood,
    CorrectInteraction,
    CountInteractions,
    DerivedEvent,
    UnderstoodResult,
    join_events,
)
from agents.memory.write_memory import Slices, WriteMemory
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import LexicalWriter
from agents.ports.stores import Categories, ClaimWriter, FileWriter, InteractionWriter, MemoryWriter, Modes
from agents.rules.cues.labels import has_signals
from agents.rules.items.analysis import AnalysedText, analyse
from agents.rules.items.item_merging import supports_of
from agents.rules.memory.embedding_status import (
    apply_embedded,
    apply_kept,
    awaits_model,
    is_about_earlier_edit,
    is_compared_vector,
    is_in_other_space,
    mark_not_applicable,
    mark_pending,
    mark_waiting,
    orphaned_location,
    replace_held,
    reported_location,
    with_held,
    without_lost,
    written_location,
)
from agents.rules.memory.resources import IsReadable
from agents.rules.memory.understanding import with_interaction
from agents.rules.memory.versions import (
    TurnDraft,
    accept_draft,
    build_acceptance,
    build_forgotten_acceptance,
    draft_turn,
    has_same_text,
    identify_turn,
    is_redelivered,
    is_stale_redelivery,
)
from agents.rules.memory.visibility import awaits_indexer, mode_visibility, with_visibility
from agents.rules.modes.declaring import mode_on_arrival, with_decay
from schemas.internal.changes import Change
from schemas.internal.consolidation import Distilled, ItemsMerged
from schemas.internal.events import Embedded, Forgotten, Remembered, Reread, Understood
from schemas.messages.records import Record
from schemas.messages.turns import Turn, TurnAccepted
from schemas.moments import moment_of
from schemas.state.files import uploaded_sha256
from schemas.state.memories import Memory, VectorLocation


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The reply to a turn, and the events that must follow: of the turn, if any, and of what is derived from it."""

    result: TurnAccepted
    event: Remembered | None
    item_events: tuple[MemoryEvent, ...] = ()
    forgotten: bool = False

    @property
    def events(self) -> list[MemoryEvent]:
        return join_events(self.event, self.item_events)


class Remember:
    """Turns in, records and lexical index written, `Remembered` and `Forgotten` out."""

    def __init__(
        self,
        memories: MemoryWriter,
        words: LexicalWriter,
        modes: Modes,
        spaces: VectorSpaces,
        claims: ClaimWriter,
        interactions: InteractionWriter,
        categories: Categories,
        files: FileWriter,
        *,
        asks_model: bool = False,
        revision: int = 0,
        is_readable: IsReadable = lambda uri: uploaded_sha256(uri) is not None,
    ) -> None:
        """`asks_model`: a language model will be asked about every turn. `revision` is that of the pipelines.

        `is_readable` is true for URIs whose bytes are read.
        """
        self._revision = revision
        self._memories = memories
        self._words = words
        self._modes = modes
        self._spaces = spaces
        self._asks_model = asks_model
        self._write = write = WriteMemory(memories, words)
        self._items = KeepItems(memories, words, modes, ResolveClaims(memories, claims, write), write)
        self._supersede = Supersede(memories, words, self._items, write)
        self.files = KeepFiles(memories, words, modes, files, self._items, write, is_readable, asks_model=asks_model)
        self._forget = ForgetMemories(memories, words, self._items, self.files, write)
        self._file_items = FileItems(memories, words, categories, write)
        self._move = Move(modes, self._items, self._supersede, asks_model=asks_model)
        self._visibility = SetVisibility(modes, self._items, self._supersede, write, asks_model=asks_model)
        self._count = CountInteractions(interactions)
        self._understood = ApplyUnderstood(
            memories, modes, self._items, self._supersede, self._file_items, self.files, self._move, self._count
        )
        self._correct = CorrectInteraction(memories, write, self._count)
        self._release = ReleaseVectors(memories, words, write, spaces)

    def turn(
        self, turn: Turn, record: Record, draft: TurnDraft | None = None, text: AnalysedText | None = None
    ) -> Slices[TurnResult]:
        """Accept a turn from its `draft` and analysed `text`. Raises Rejected for an undeclared mode."""
        identity = identify_turn(turn, moment_of(record.timestamp_ms)) if draft is None else draft.identity
        known = self._memories.get(identity.memory_id)
        if known is not None and has_same_text(known, identity):
            return (yield from self._repeat(known, record, text))
        if known is not None and is_stale_redelivery(known, identity, record.offset):
            return TurnResult(build_acceptance(known, duplicate=False), None)
        if known is None and self._memories.is_forgotten(identity.memory_id):
            return TurnResult(build_forgotten_acceptance(turn, identity), None, forgotten=True)
        declared = self._modes.get(turn.scope.boundary)
        forgotten = declared.forgotten_turns
        if forgotten is not None and forgotten.covers(record.offset, record.timestamp_ms):
            # Its mode, and whether that was private, is not known any more. What it edits is forgotten by the change,
            # which is on its way.
            if known is None:
                self._memories.forget(identity.memory_id)
            return TurnResult(build_forgotten_acceptance(turn, identity), None, forgotten=True)
        mode = mode_on_arrival(turn.mode, turn.scope.project_id, declared, known)
        if draft is None or draft.memory is None or draft.stored != known:
            # Another event may have changed the memory since.
            draft = draft_turn(turn, identity, known, record.offset)
        assert draft.memory is not None
        memory = accept_draft(draft.memory, mode, asks_model=self._asks_model, revision=self._revision)
        memory = memory.model_copy(update={"items": known.items}) if known is not None and known.items else memory
        of_mode = mode_visibility(memory, declared)
        memory = with_visibility(with_decay(memory, declared), memory.own_visibility, of_mode)
        memory = self.files.arriving(memory, known)
        analysis = analyse(memory, text, None, self._memories.get)
        had_signals = known is not None and has_signals(known)
        released = self._supersede.release(known)
        memory, events = yield from self._items.write_in_slices(memory, supports_of(memory, analysis.items))
        for _, of_file in self.files.arrived(memory, known):
            events += of_file
            yield
        events += [*released, *self._learned(memory, analysis, had_signals=had_signals)]
        return TurnResult(build_acceptance(memory, duplicate=False), Remembered(memory=memory), tuple(events))

    def embedded(self, event: Embedded) -> DerivedEvent:
        """Update the embedding status; return the event that corrects a misplaced or outdated vector."""
        if event.status in ("kept", "lost"):
            return self._compared(event)
        place = reported_location(event)
        memory = self._memories.get(event.memory_id)
        if memory is None:
            return Forgotten(memory_id=event.memory_id, places=(place,)) if place else None
        if event.mode != memory.mode or not memory.visibility.searchable:
            # The memory has moved since, or was filtered: no search reads this vector any more.
            return Remembered(memory=memory, strays=(place,)) if place else None
        if event.content_hash != memory.content_hash:
            # A vector of another text lies where the current one was or will be, or where none can be made.
            return self._embed_again(replace_held(memory), place) if place else None
        if is_about_earlier_edit(memory, event):
            return None
        self._count.add_classification(memory, event.interaction, event.at)
        return self._apply_embedded(event, with_interaction(memory, event.interaction))

    def consolidated(self, event: Distilled | ItemsMerged) -> Sequence[MemoryEvent]:
        """Apply the result of a consolidation."""
        if isinstance(event, ItemsMerged):
            return self._supersede.apply_merge(event)
        return self._supersede.apply_distilled(event)

    def understood(self, event: Understood | Reread, text: AnalysedText | None = None) -> Slices[UnderstoodResult]:
        """Store how a turn was understood; if a model chose another mode, the turn and its vector move.

        `text`: the earlier findings of rules and model in the turn.
        """
        if isinstance(event, Reread):
            return self._understood.reread(event, text)
        return self._understood.understood(event, text)

    def changed(self, change: Change) -> Iterator[WriteStep]:
        """Apply a command's effect in steps of at most one memory; skip memories that already have it.

        Each memory is written when its step is yielded; between two steps other events may be handled. A step has the
        written memory, or the last record of a forgotten one. A memory that the lexical index still has in its earlier
        state was changed before a worker was killed: its events are published again.
        """
        if change.action == "forget":
            yield from self._forget.apply(change)
            yield from self._file_items.refile_rest(change) if change.whole else ()
            if change.whole == "user":
                self._count.forget(change.scope.boundary)
                yield NO_STEP
            return
        if change.action in ("assign", "refile"):
            file = self._file_items.apply if change.action == "assign" else self._file_items.refile
            yield from file(change)
            return
        if change.action == "correct":
            yield from self._correct.apply(change)
            return
        if change.action == "release":
            yield from self._release.apply(change)
            return
        for memory in affected_memories(change, self._memories, self._words):
            apply = self._visibility.apply if change.action in ("filter", "stale") else self._move.apply
            yield apply(memory, change)
            if memory.resources:
                yield from self.files.follow(memory.memory_id)

    def preview(self, change: Change) -> Iterator[Memory | None]:
        """Yield the memories that forgetting would remove; None as a place to pause."""
        return self._forget.preview(change)

    def _repeat(self, known: Memory, record: Record, text: AnalysedText | None) -> Slices[TurnResult]:
        """Write a turn again if this same record was redelivered; a duplicate is left alone.

        The changelog may have had the turn and not yet its items when a worker was killed.
        """
        if not is_redelivered(known, record.offset):
            return TurnResult(build_acceptance(known, duplicate=True), None)
        analysis = analyse(known, text, None, self._memories.get)
        known, events = yield from self._items.refresh_items(known, analysis.items)
        # For an edited turn, only the event of its earlier text may have been published.
        events += self._learned(known, analysis, had_signals=known.version > 1)
        is_due = known.embedding.status == "pending" or awaits_indexer(known)
        event = Remembered(memory=known) if is_due else None
        return TurnResult(build_acceptance(known, duplicate=False), event, tuple(events))

    def _learned(self, turn: Memory, analysis: AnalysedText, *, had_signals: bool) -> list[MemoryEvent]:
        """Return the event for agents that derive more from turns; `had_signals`: they may have done so already."""
        return [self._items.learned_event(turn)] if had_signals or turn.items or analysis.has_signals else []

    def _apply_embedded(self, event: Embedded, memory: Memory) -> DerivedEvent:
        """Apply an event about the current text and mode; a vector of an outdated embedder is requested again."""
        if event.status == "again" and memory.embedding.status == "ready":
            return Remembered(memory=memory)
        if event.status in ("stale", "again"):
            return self._embed_again(self._with_former_vector(memory))
        space, place = self._spaces.digest(memory), written_location(event)
        if event.status == "unkept" or (event.status == "waiting" and space is None):
            self._write(mark_not_applicable(memory) if event.status == "unkept" else mark_waiting(memory, event))
            return None
        # The model was loaded while this event was in flight: nothing else requests its vector.
        if event.space != space and space is not None:
            return self._embed_again(with_held(memory, place), place)
        if space is None and awaits_model(memory):
            # The vector is due in a space that is unknown until the model is loaded: this one may be outdated.
            return Remembered(memory=memory, strays=(place,)) if place else None
        if event.held and not self._spaces.has_former(memory):
            # They were released since: the indexer removes those vectors.
            event = event.model_copy(update={"held": ()})
        updated = apply_embedded(memory, self._file_items.with_current_names(event, memory))
        self._write(updated)
        orphaned = orphaned_location(memory, place, event.held)
        return Remembered(memory=updated, strays=(orphaned,)) if orphaned else None

    def _with_former_vector(self, memory: Memory) -> Memory:
        """Hold the vector of the mode's former embedder: the deployment, not a command, may have declared another."""
        embedding = memory.embedding
        if embedding.place is None or embedding.content_hash != memory.content_hash:
            return memory
        former = self._spaces.former_of(memory) if self._spaces.has_former(memory) else None
        is_former = former is not None and former[1].fingerprint.digest == embedding.space
        return with_held(memory, embedding.place) if is_former else memory

    def _compared(self, event: Embedded) -> DerivedEvent:
        """Apply the result of a comparison with the index; memories changed since are compared again."""
        memory = self._memories.get(event.memory_id)
        if memory is None or not is_compared_vector(memory, event):
            return None
        if (event.mode, event.content_hash) != (memory.mode, memory.content_hash) or is_about_earlier_edit(
            memory, event
        ):
            return None
        if event.status == "lost":
            self._write(without_lost(memory, event))
            return None
        is_due = awaits_model(memory) or is_in_other_space(memory, event.space)
        if not is_due or event.space != self._spaces.digest(memory):
            return None
        self._write(kept := apply_kept(memory, event))
        orphaned = orphaned_location(memory, kept.embedding.place, kept.embedding.held)
        return Remembered(memory=kept, strays=(orphaned,)) if orphaned else None

    def _embed_again(self, memory: Memory, stray: VectorLocation | None = None) -> Remembered:
        pending = mark_pending(memory)
        self._write(pending)
        return Remembered(memory=pending, strays=() if stray is None else (stray,))
