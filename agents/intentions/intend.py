"""The keeper of intentions: the only writer of the table `intentions`.

What was found in a turn comes in, and the commands that set and ask what somebody is after; the intention of a scope
leaves. Guaranteed: the same event or command again changes nothing; what is shown rests on memories that are there.
"""

from collections.abc import Mapping
from functools import cache

from agents.ports.clock import Clock
from agents.ports.command_types import CommandResult, parse_arguments
from agents.ports.intentions import IntentionWriter
from agents.ports.stores import Memories
from agents.rules.intentions.transitions import apply_learned, apply_set_intention, drop_set_entries, drop_stale_entries
from agents.rules.intentions.view import ReadMemory, build_intention_view, visible_intention
from schemas.commands import Command, SetIntention
from schemas.events import Learned
from schemas.intention import Intention, IntentionPart


class Intend:
    """What was found in turns in; intentions out. Implements `agents.ports.intentions.Intentions`."""

    def __init__(self, intentions: IntentionWriter, memories: Memories, clock: Clock) -> None:
        """Take the ports."""
        self._intentions = intentions
        self._memories = memories
        self._clock = clock

    def get(self, scope: Mapping[str, str]) -> Intention:
        """The intention of a scope as it may be shown: each thing once, and only what rests on what is there."""
        return visible_intention(self._intentions.get(scope), self._find())

    def learned(self, event: Learned) -> None:
        """Replace what the intention has of a turn by what was found there.

        With a turn that is gone goes all that rests on what is not there: of what went with it nobody may have told.
        """
        before = self._intentions.get(event.scope)
        if self._memories.get(event.memory_id) is None:
            # The turn was forgotten since; that event is on its way, and this one must not bring its text back.
            event = Learned(memory_id=event.memory_id, scope=event.scope)
            after = drop_stale_entries(apply_learned(before, event), self._find())
        else:
            after = apply_learned(before, event)
        self._put(event.scope, before, after)

    def before_forgetting(self, command: Command, offset: int) -> None:
        """Remove what was set in a project, or in all of a user's, before the command that forgets it is answered.

        What is set by a command after it stays, also when this one comes again.
        """
        scope = command.scope.model_dump()
        whole = command.arguments.get("user") is True
        scopes = self._intentions.scopes(command.scope.boundary) if whole else [scope]
        for each in scopes:
            before = self._intentions.get(each)
            self._put(each, before, drop_set_entries(before, offset))

    async def get_intention(self, command: Command, _offset: int) -> CommandResult:
        """Show the intention of a scope."""
        return CommandResult(build_intention_view(self.get(command.scope.model_dump())))

    async def set_intention(self, command: Command, offset: int) -> CommandResult:
        """Replace the goals or constraints that the user has set."""
        wanted, scope = parse_arguments(SetIntention, command), command.scope.model_dump()
        lists: list[tuple[IntentionPart, list[str] | None]] = [
            ("goals", wanted.goals),
            ("constraints", wanted.constraints),
        ]
        before = self._intentions.get(scope)
        given = [(part, texts) for part, texts in lists if texts is not None]
        self._put(scope, before, apply_set_intention(before, given, self._clock.now(), offset))
        return CommandResult(build_intention_view(self.get(scope)))

    def _find(self) -> ReadMemory:
        """Reads records of this moment, each once, however many entries rest on it."""
        return cache(self._memories.get)

    def _put(self, scope: Mapping[str, str], before: Intention, after: Intention) -> None:
        if after != before:
            self._intentions.put(scope, after)
