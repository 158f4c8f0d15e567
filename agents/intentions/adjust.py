"""Adjust the intention of a scope in a consolidation: what was reached, lifted, or is past its own last day.

Enters: a run. Leaves: the intention without what is done, and a difference for each entry, with the turn that says so.
By rules: constraints that limit themselves to a date; goals of the whole user that turns of this project report done. A
language model, where one is set, reads the turns that no earlier run has shown it. What the caller has set is resolved
by no model. Private turns are not shown to it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from modestream_client.arguments import SetIntention
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic import BaseModel, Field

from agents.ports.clock import Clock
from agents.ports.commands import Allowance, CommandResult, ConsolidationRun, ResultBody, parse_arguments
from agents.ports.indexes import LexicalIndex
from agents.ports.models import LanguageModel
from agents.ports.stores import IntentionWriter, Memories
from agents.rules.context.visible_memories import expired_spans
from agents.rules.index.memory_columns import TURN_TYPE
from agents.rules.intentions.extraction import REPORTING_ROLES
from agents.rules.intentions.transitions import (
    RESOLVABLE_BY_RUN,
    add_signals,
    apply_learned,
    apply_set_intention,
    build_intention_view,
    drop_set_entries,
    drop_stale_entries,
    expire_entries,
    forget_intention,
    newly_done,
    visible_intention,
    words_of,
)
from agents.rules.memory.understanding import current_text_hash
from agents.rules.prompts.prompting import CHARS_PER_TOKEN, MAX_EXCERPT_CHARS, Template, clip_text, fill_prompt
from agents.rules.text.overlap import content_stems
from schemas.failures import Unavailable
from schemas.internal.consolidation import Difference
from schemas.internal.events import Learned
from schemas.messages.commands import Command
from schemas.models.language import Unanswerable
from schemas.scopes import Scope, scope_of_user
from schemas.state.intention import SETTABLE_PARTS, Intention, IntentionEntry, IntentionPart, ResolutionSignal
from schemas.state.memories import Memory, ReadMemory

# Maintain intentions by `Learned` events and commands: the only writer of the table `intentions`.
#
# Idempotent. Views contain only entries that derive from existing memories which searches find.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intend:
    """`Learned` events and commands in; intentions out. Implements `agents.ports.stores.Intentions`.

    `boundary_fields` are those of the deployment's scopes.
    """

    intentions: IntentionWriter
    memories: Memories
    clock: Clock
    boundary_fields: BoundaryFields = USER_BOUNDARY

    def get(self, scope: Mapping[str, str]) -> Intention:
        """Return the visible intention of a scope: without duplicates and without entries of forgotten memories."""
        return visible_intention(self.intentions.get(scope), self._cached_reader())

    def learned(self, event: Learned) -> None:
        """Replace the entries of a turn by those found in it now.

        For a forgotten turn, drop all entries that derive from missing memories: the events of memories that were
        forgotten with it may be lost.
        """
        before = self.intentions.get(event.scope)
        if self._found(event.memory_id) is None:
            # The turn was forgotten or filtered since, and that event is in flight: this one must not restore its text.
            event = Learned(memory_id=event.memory_id, scope=event.scope)
            after = drop_stale_entries(apply_learned(before, event), self._cached_reader())
        else:
            after = apply_learned(before, event)
        self._put(event.scope, before, after)
        # What a consolidation has found resolved for the whole user rests on turns of its projects.
        above = scope_of_user(self.boundary_fields.key(event.scope), event.scope, self.boundary_fields)
        of_user = self.intentions.get(above)
        if any(signal.memory_id == event.memory_id for signal in of_user.signs):
            self._put(above, of_user, drop_stale_entries(of_user, self._cached_reader()))

    def before_forgetting(self, command: Command, offset: int) -> None:
        """Remove the entries that were set in a project, or all intentions of a user, before it is forgotten.

        Entries that were set by later commands stay, also if this command is redelivered.
        """
        if command.arguments.get("user") is True:
            for each in self.intentions.scopes(command.scope.boundary):
                before = self.intentions.get(each)
                self._put(each, before, forget_intention(before, offset))
            return
        scope = command.scope.model_dump()
        before = self.intentions.get(scope)
        self._put(scope, before, drop_set_entries(before, offset))

    async def get_intention(self, command: Command, _offset: int) -> CommandResult:
        """Show the intention of a scope, or of the whole user for any project."""
        return CommandResult(self._view(command.scope))

    async def set_intention(self, command: Command, offset: int) -> CommandResult:
        """Replace the goals or constraints that the user has set."""
        wanted, scope = parse_arguments(SetIntention, command), command.scope.model_dump()
        lists: list[tuple[IntentionPart, list[str] | None]] = [
            ("goals", wanted.goals),
            ("constraints", wanted.constraints),
        ]
        before = self.intentions.get(scope)
        replaced = [(part, texts) for part, texts in lists if texts is not None]
        self._put(scope, before, apply_set_intention(before, replaced, self.clock.now(), offset))
        return CommandResult(self._view(command.scope))

    def _view(self, scope: Scope) -> ResultBody:
        own = scope.model_dump()
        above = scope_of_user(scope.boundary, own, scope.boundary_fields)
        view = build_intention_view(self.get(own))
        if above != own:
            whole = build_intention_view(self.get(above))
            view["whole_user"] = {part: whole[part] for part in SETTABLE_PARTS}
        return view

    def _cached_reader(self) -> ReadMemory:
        """Return a reader that caches records: many entries may derive from one memory."""
        return cache(self._found)

    def _found(self, memory_id: str) -> Memory | None:
        """Return a memory if an intention may rest on it: searches must find it."""
        memory = self.memories.get(memory_id)
        return memory if memory is not None and memory.visibility.searchable else None

    def _put(self, scope: Mapping[str, str], before: Intention, after: Intention) -> None:
        if after != before:
            self.intentions.put(scope, after)


ADJUST_STEP, ADJUST_ROLE = "consolidate.adjust", "consolidate"
"""Names by which a deployment selects the language model profile."""

MAX_READ_TURNS = 1000
"""Maximum turns of a run examined, latest first: about 50 ms."""

MAX_SHOWN_TURNS, MAX_SHOWN_ENTRIES = 40, 40
"""Turns and entries in the prompt, the latest of both."""

MAX_DIFF_CHARS = 160


class ResolvedEntry(BaseModel, frozen=True, extra="ignore"):
    """An entry that a turn reports done, both by their ids in the prompt."""

    entry: str
    turn: str


class AdjustAnswer(BaseModel, frozen=True, extra="ignore"):
    """Entries that a language model finds done."""

    resolved: tuple[ResolvedEntry, ...] = Field(default=(), max_length=200)


@dataclass(frozen=True, slots=True)
class _Shown:
    """Entries and turns in a prompt, by their ids there."""

    entries: Mapping[str, tuple[IntentionPart, IntentionEntry]]
    turns: Mapping[str, Memory]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdjustIntention:
    """Runs in, adjusted intentions and their differences out."""

    intentions: IntentionWriter
    memories: Memories
    words: LexicalIndex
    model: LanguageModel
    template: Template
    boundary_fields: BoundaryFields = USER_BOUNDARY

    def by_rules(self, run: ConsolidationRun) -> list[Difference]:
        """Adjust the intentions of the run's scope and of the whole user."""
        today = run.at.date()

        def is_past(entry: IntentionEntry) -> bool:
            text = entry.text
            for span in reversed(expired_spans(text, entry.at, today)):
                text = text[: span.start] + text[span.end :]
            return not text.strip()

        own, above = run.scope, scope_of_user(run.trigger.scope.boundary, run.scope, self.boundary_fields)
        before, of_user = self.intentions.get(own), self.intentions.get(above)
        said = [signal for signal in before.signs if signal.source == "said"]
        return [
            *self._write(own, before, expire_entries(before, run.at, is_past)),
            *self._write(
                above, of_user, add_signals(expire_entries(of_user, run.at, is_past), said), name="whole_user."
            ),
        ]

    async def by_model(self, run: ConsolidationRun, since: int, allowance: Allowance) -> list[Difference] | None:
        """Adjust the scope's intention by turns from offset `since` on; None where the model could not be asked."""
        shown = self._shown(run, since)
        if not shown.entries or not shown.turns:
            return []
        entries = [{"id": name, "of": part, "text": entry.text} for name, (part, entry) in shown.entries.items()]
        turns = [
            {"id": name, "role": turn.role, "text": clip_text(turn.text, MAX_EXCERPT_CHARS)}
            for name, turn in shown.turns.items()
        ]
        parts = {"entries": _lines(entries), "turns": _lines(turns)}
        prompt = fill_prompt(self.template.text, self.template.version, parts)
        if not self.model.available(ADJUST_STEP, ADJUST_ROLE) or not allowance.may_spend(
            len(prompt.user) // CHARS_PER_TOKEN
        ):
            return None
        try:
            answered = await self.model.ask(ADJUST_STEP, ADJUST_ROLE, prompt, AdjustAnswer)
        except (Unavailable, Unanswerable):
            return None
        allowance.spend(answered.tokens_in + answered.tokens_out)
        before = self.intentions.get(run.scope)
        return self._write(run.scope, before, add_signals(before, self._signals(answered.answer, shown, before)))

    def _write(self, scope: Mapping[str, str], before: Intention, after: Intention, name: str = "") -> list[Difference]:
        if after == before:
            return []
        self.intentions.put(scope, after)
        read = cache(self._found)
        differences = []
        for part, entry in newly_done(visible_intention(before, read), visible_intention(after, read)):
            turn = read(entry.resolved_by) if entry.resolved_by else None
            differences.append(
                Difference(
                    op="expire_entry" if turn is None else "resolve_entry",
                    name=name + part,
                    memory_id=entry.resolved_by,
                    before=entry.text[:MAX_DIFF_CHARS],
                    after=turn and turn.text[:MAX_DIFF_CHARS],
                )
            )
        return differences

    def _shown(self, run: ConsolidationRun, since: int) -> _Shown:
        read = cache(self._found)
        visible = visible_intention(self.intentions.get(run.scope), read)
        entries = [
            (part, entry)
            for part in RESOLVABLE_BY_RUN
            for entry in visible.open_entries(part)
            if entry.source != "set"
            and not any(memory and memory.visibility.private for memory in map(self.memories.get, entry.memory_ids))
        ]
        latest = sorted(entries, key=lambda placed: placed[1].at)[-MAX_SHOWN_ENTRIES:]
        about = frozenset().union(*(content_stems(entry.text) for _, entry in latest))
        # The ids of the scope's turns from an offset on that belong to the run, oldest first.
        memories = self.words.memory_columns(run.trigger.scope.boundary)
        columns = memories.columns
        of_scope = memories.of_kind(lambda kind: kind.type == TURN_TYPE and dict(kind.scope) == run.scope)
        wanted = columns.live & of_scope.astype(np.bool_) & (columns.source >= since) & (columns.source < run.until)
        in_order = columns.by_time(np.flatnonzero(wanted))
        turns = [
            turn
            for memory_id in [memories.id_of[number] for number in in_order[-MAX_READ_TURNS:].tolist()]
            if (turn := read(memory_id)) is not None
            and turn.role in REPORTING_ROLES
            and not turn.visibility.private
            and not about.isdisjoint(content_stems(turn.text))
        ]
        return _Shown(
            {f"e{number}": placed for number, placed in enumerate(latest, 1)},
            {f"t{number}": turn for number, turn in enumerate(turns[-MAX_SHOWN_TURNS:], 1)},
        )

    def _signals(self, answer: AdjustAnswer, shown: _Shown, stored: Intention) -> list[ResolutionSignal]:
        signals = []
        for resolved in answer.resolved:
            placed, turn = shown.entries.get(resolved.entry), shown.turns.get(resolved.turn)
            now = turn and self._found(turn.memory_id)
            if placed is None or turn is None or now is None or current_text_hash(now) != current_text_hash(turn):
                continue
            part, entry = placed
            # What is shown as one entry may be several in the table: repetitions, or of items that were merged.
            repeated = {
                other.text
                for other in stored.of(part)
                if words_of(other.text) == words_of(entry.text) or (entry.item_id and other.item_id == entry.item_id)
            }
            signals += [
                ResolutionSignal(
                    text=text,
                    source="model",
                    of_run=True,
                    at=turn.occurred_at,
                    offset=turn.source,
                    memory_id=turn.memory_id,
                    text_hash=current_text_hash(turn),
                    conversation_id=turn.conversation_id,
                )
                for text in sorted(repeated)
            ]
        return signals

    def _found(self, memory_id: str) -> Memory | None:
        memory = self.memories.get(memory_id)
        return memory if memory is not None and memory.visibility.searchable else None


def _lines(entries: Sequence[Mapping[str, object]]) -> str:
    return "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
