"""Maintain intentions by `Learned` events and commands: the only writer of the table `intentions`.

Idempotent. Views contain only entries that derive from existing memories which searches find.
"""

from collections.abc import Mapping
from functools import cache

from modestream_client.arguments import SetIntention
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields

from agents.ports.clock import Clock
from agents.ports.commands import CommandResult, ResultBody, parse_arguments
from agents.ports.stores import IntentionWriter, Memories
from agents.rules.intentions.transitions import (
    apply_learned,
    apply_set_intention,
    build_intention_view,
    drop_set_entries,
    drop_stale_entries,
    forget_intention,
    visible_intention,
)
from schemas.internal.events import Learned
from schemas.messages.commands import Command
from schemas.scopes import Scope, scope_of_user
from schemas.state.intention import SETTABLE_PARTS, Intention, IntentionPart
from schemas.state.memories import Memory, ReadMemory


class Intend:
    """`Learned` events and commands in; intentions out. Implements `agents.ports.stores.Intentions`."""

    def __init__(
        self,
        intentions: IntentionWriter,
        memories: Memories,
        clock: Clock,
        boundary_fields: BoundaryFields = USER_BOUNDARY,
    ) -> None:
        """`boundary_fields` are those of the deployment's scopes."""
        self._boundary_fields = boundary_fields
        self._intentions = intentions
        self._memories = memories
        self._clock = clock

    def get(self, scope: Mapping[str, str]) -> Intention:
        """Return the visible intention of a scope: without duplicates and without entries of forgotten memories."""
        return visible_intention(self._intentions.get(scope), self._cached_reader())

    def learned(self, event: Learned) -> None:
        """Replace the entries of a turn by what was found in it.

        For a forgotten turn, drop all entries that derive from missing memories: the events of memories that were
        forgotten with it may be lost.
        """
        before = self._intentions.get(event.scope)
        if self._found(event.memory_id) is None:
            # The turn was forgotten or filtered since, and that event is in flight: this one must not restore its text.
            event = Learned(memory_id=event.memory_id, scope=event.scope)
            after = drop_stale_entries(apply_learned(before, event), self._cached_reader())
        else:
            after = apply_learned(before, event)
        self._put(event.scope, before, after)
        # What a consolidation has found resolved for the whole user rests on turns of its projects.
        above = scope_of_user(self._boundary_fields.key(event.scope), event.scope, self._boundary_fields)
        of_user = self._intentions.get(above)
        if any(signal.memory_id == event.memory_id for signal in of_user.signs):
            self._put(above, of_user, drop_stale_entries(of_user, self._cached_reader()))

    def before_forgetting(self, command: Command, offset: int) -> None:
        """Remove the entries that were set in a project, or all intentions of a user, before it is forgotten.

        Entries that were set by later commands stay, also if this command is redelivered.
        """
        if command.arguments.get("user") is True:
            for each in self._intentions.scopes(command.scope.boundary):
                before = self._intentions.get(each)
                self._put(each, before, forget_intention(before, offset))
            return
        scope = command.scope.model_dump()
        before = self._intentions.get(scope)
        self._put(scope, before, drop_set_entries(before, offset))

    async def get_intention(self, command: Command, _offset: int) -> CommandResult:
        """Show the intention of a scope, or with any project that of the user."""
        return CommandResult(self._view(command.scope))

    async def set_intention(self, command: Command, offset: int) -> CommandResult:
        """Replace the goals or constraints that the user has set."""
        wanted, scope = parse_arguments(SetIntention, command), command.scope.model_dump()
        lists: list[tuple[IntentionPart, list[str] | None]] = [
            ("goals", wanted.goals),
            ("constraints", wanted.constraints),
        ]
        before = self._intentions.get(scope)
        replaced = [(part, texts) for part, texts in lists if texts is not None]
        self._put(scope, before, apply_set_intention(before, replaced, self._clock.now(), offset))
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
        """Return a memory that an intention may rest on: one that searches find."""
        memory = self._memories.get(memory_id)
        return memory if memory is not None and memory.visibility.searchable else None

    def _put(self, scope: Mapping[str, str], before: Intention, after: Intention) -> None:
        if after != before:
            self._intentions.put(scope, after)
