"""The commands and `Remember` over fakes."""

from typing import Any

import pytest

from agents.commands.admit import DispatchCommands
from agents.commands.handle_commands import HandleCommands
from agents.memory.write_memory import finish
from agents.ports.commands import CommandHandler, CommandResult
from schemas.failures import Rejected
from schemas.internal.changes import JOB_KINDS, Change
from schemas.messages.commands import Command
from schemas.scopes import Scope
from schemas.state.modes import ModeDeclarations
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.fakes.clock import FakeClock
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes

PARTITION = record().partition
NAMES = (
    "declare_mode",
    "rename_mode",
    "delete_mode",
    "set_default_mode",
    "list_modes",
    "set_memory_mode",
    "set_interaction_mode",
    "get_memory",
    "forget",
)
"""Commands whose handler has the same name."""


class CommandsHarness:
    """The commands of one partition, with `Remember` for their memories."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.memories, self.modes, self.embedders = FakeMemories(), FakeModes(), FakeEmbedders()
        self.clock = FakeClock()
        stores = fake_stores(words, self.memories, self.modes).at(PARTITION)
        self.remember = remember_over(stores, self.embedders)
        agent = HandleCommands(PARTITION, stores.memories, stores.modes, self.embedders, self._health, self.clock)
        others: dict[str, CommandHandler] = dict.fromkeys(JOB_KINDS, agent.start_job)
        others["health"] = agent.health
        self.dispatch = DispatchCommands({name: getattr(agent, name) for name in NAMES} | others)
        self.offset = 0
        self.permitted: tuple[str, ...] | None = None
        """The projects in which the sender is permitted; None for all."""

    def say(self, text: str, offset: int, **changes: Any) -> str:
        """Remember a turn; returns the memory's id."""
        accepted = finish(self.remember.turn(turn(text, **({"turn_id": "t"} | changes)), record(offset=offset)))
        return accepted.result.memory_id

    async def handle(
        self, command: str, project: str = "p1", offset: int | None = None, /, **arguments: Any
    ) -> CommandResult:
        self.offset = self.offset + 1 if offset is None else offset
        scope = Scope(user_id="u1", project_id=project)
        message = Command(command=command, scope=scope, arguments=arguments)
        return await self.dispatch.handle(message.limited_to(self.permitted), self.offset)

    async def __call__(self, command: str, project: str = "p1", /, **arguments: Any) -> dict[str, Any]:
        return (await self.handle(command, project, **arguments)).result

    async def change(self, command: str, project: str = "p1", /, **arguments: Any) -> Change | None:
        return (await self.handle(command, project, **arguments)).change

    async def rejection(self, command: str, project: str = "p1", /, **arguments: Any) -> tuple[str, str | None]:
        """Return the code and field of a rejection, which declares nothing."""
        before = self.declarations()
        with pytest.raises(Rejected) as error:
            await self(command, project, **arguments)
        assert self.declarations() == before
        assert len(error.value.message) < 500
        return error.value.code, error.value.field

    def declarations(self, user: str = "u1") -> ModeDeclarations:
        return self.modes.get(PARTITION, user)

    async def _health(self, command: Command) -> dict[str, Any]:
        return {"of": command.scope.boundary}
