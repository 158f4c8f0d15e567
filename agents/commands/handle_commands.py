"""Answers commands, and keeps what is declared: the only writer of the table `modes`.

A command comes in with its scope; its result leaves, or the error that says what to do. What it changes in memories
leaves as a `Change`, which answers the command when it is carried out: `ok` holds for every later request. A command
that comes again gives the same again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from agents.ports.clock import Clock
from agents.ports.command_types import BeforeForgetting, CommandHandler, CommandResult, ResultBody, parse_arguments
from agents.ports.embedder import Embedders
from agents.ports.stores import Memories, Modes
from agents.rules.memory.identity import derive_memory_id
from agents.rules.memory.views import shown_memory, shown_mode
from agents.rules.modes.declaring import (
    declare_mode,
    delete_mode,
    rename_mode,
    require_mode,
    set_default_mode,
    unknown_mode_error,
)
from schemas.changes import Change
from schemas.commands import (
    Command,
    DeclareMode,
    DeleteMode,
    Forget,
    GetMemory,
    RenameMode,
    RunJob,
    SetDefaultMode,
    SetMemoryMode,
)
from schemas.failures import Rejected
from schemas.jobs import JOB_KINDS, Job
from schemas.modes import Mode, ModeDeclarations

HealthCheck = Callable[[Command, int], Awaitable[ResultBody]]
"""How a boundary and the deployment stand."""


class HandleCommands:
    """Commands in; results, declared modes and changes out."""

    def __init__(
        self,
        memories: Memories,
        modes: Modes,
        embedders: Embedders,
        health: HealthCheck,
        clock: Clock,
        others: Mapping[str, CommandHandler] | None = None,
        before_forgetting: Sequence[BeforeForgetting] = (),
    ) -> None:
        """Take the ports; `others` are commands that the keepers of other tables carry out, by name.

        `before_forgetting` are told of a command that forgets a whole project or user.
        """
        self._before_forgetting = before_forgetting
        self._memories = memories
        self._modes = modes
        self._embedders = embedders
        self._health = health
        self._clock = clock
        self._commands: Mapping[str, CommandHandler] = {
            "declare_mode": self._declare_mode,
            "rename_mode": self._rename_mode,
            "delete_mode": self._delete_mode,
            "set_default_mode": self._set_default_mode,
            "list_modes": self._list_modes,
            "set_memory_mode": self._set_memory_mode,
            "get_memory": self._get_memory,
            "forget": self._forget,
            **dict.fromkeys(JOB_KINDS, self._job),
            "health": self._show_health,
            **(others or {}),
        }

    async def handle(self, command: Command, partition: int, offset: int) -> CommandResult:
        """Carry out a command that stands at this offset. Raises Rejected with the code of the contract."""
        run = self._commands.get(command.command)
        if run is None:
            names = ", ".join(sorted(self._commands))
            message = f"{command.command[:80]!r} is not a command here; commands are: {names}"
            raise Rejected("unknown_command", message, "command")
        return await run(command, partition, offset)

    async def _declare_mode(self, command: Command, partition: int, offset: int) -> CommandResult:
        wanted, project = parse_arguments(DeclareMode, command), command.scope.project_id
        embedder = self._embedders.described(wanted.embedder)
        if embedder is None:
            message = f"{wanted.embedder[:80]!r} is neither a preset nor an embedder of the setting EMBEDDERS"
            raise Rejected("invalid_value", message, "arguments.embedder")
        before = self._declared(command, partition)
        after = declare_mode(before, wanted, embedder, project, offset)
        self._modes.put(partition, command.scope.boundary, after)
        mode = require_mode(after, wanted.name, project if wanted.for_project else None, "arguments.name")
        result = shown_mode(mode, after, project)
        # A project's mode takes the place of the user's mode of that name there, with the memories in it.
        if mode.embedded_since != offset:
            return CommandResult(result)
        return CommandResult(result, _of_mode("stale", mode, before, command, result))

    async def _rename_mode(self, command: Command, partition: int, _offset: int) -> CommandResult:
        wanted, before = parse_arguments(RenameMode, command), self._declared(command, partition)
        after, mode = rename_mode(before, wanted, command.scope.project_id)
        self._modes.put(partition, command.scope.boundary, after)
        result = shown_mode(mode, after, command.scope.project_id)
        old = mode.model_copy(update={"name": wanted.name})
        return CommandResult(result, _of_mode("move", old, before, command, result, to=mode.name))

    async def _delete_mode(self, command: Command, partition: int, _offset: int) -> CommandResult:
        wanted, before = parse_arguments(DeleteMode, command), self._declared(command, partition)
        after, mode = delete_mode(before, wanted, command.scope.project_id)
        self._modes.put(partition, command.scope.boundary, after)
        result: ResultBody = {"name": mode.name, "moved": 0, "forgotten": 0}
        action = "forget" if wanted.target_mode is None else "move"
        return CommandResult(result, _of_mode(action, mode, before, command, result, to=wanted.target_mode))

    async def _set_default_mode(self, command: Command, partition: int, _offset: int) -> CommandResult:
        wanted, project = parse_arguments(SetDefaultMode, command), command.scope.project_id
        after = set_default_mode(self._declared(command, partition), wanted, project)
        self._modes.put(partition, command.scope.boundary, after)
        return CommandResult(_defaults(after, project))

    async def _list_modes(self, command: Command, partition: int, _offset: int) -> CommandResult:
        declared, project = self._declared(command, partition), command.scope.project_id
        modes = [shown_mode(mode, declared, project) for mode in declared.visible((project,))]
        return CommandResult({"modes": modes, **_defaults(declared, project)})

    async def _set_memory_mode(self, command: Command, partition: int, offset: int) -> CommandResult:
        wanted, declared = parse_arguments(SetMemoryMode, command), self._declared(command, partition)
        require_mode(declared, wanted.mode, command.scope.project_id, "arguments.mode")
        memory = self._memories.get(partition, wanted.memory_id)
        if memory is None or memory.scope != command.scope.model_dump():
            raise Rejected("not_found", "this scope has no memory of that id", "arguments.memory_id")
        if corrects := memory.mode != wanted.mode and offset > declared.counted:
            counted = declared.model_copy(update={"corrections": declared.corrections + 1, "counted": offset})
            self._modes.put(partition, command.scope.boundary, counted)
        change = Change(scope=command.scope, action="move", memory_id=wanted.memory_id, to=wanted.mode)
        return CommandResult({}, change, corrects)

    async def _get_memory(self, command: Command, partition: int, _offset: int) -> CommandResult:
        memory = self._memories.get(partition, parse_arguments(GetMemory, command).memory_id)
        if memory is None or memory.scope != command.scope.model_dump():
            raise Rejected("not_found", "this scope has no memory of that id", "arguments.memory_id")
        return CommandResult(shown_memory(memory))

    async def _forget(self, command: Command, partition: int, offset: int) -> CommandResult:
        wanted, scope = parse_arguments(Forget, command), command.scope
        result: ResultBody = {"forgotten": 0}
        if wanted.user or wanted.project:
            for clear in self._before_forgetting:
                clear(command, partition, offset)
            whole: Literal["user", "project"] = "user" if wanted.user else "project"
            return CommandResult(result, Change(scope=scope, action="forget", whole=whole, result=result))
        if wanted.conversation_id is not None and wanted.turn_id is None:
            conversation = wanted.conversation_id
            return CommandResult(
                result, Change(scope=scope, action="forget", conversation_id=conversation, result=result)
            )
        said = derive_memory_id(scope.model_dump(), wanted.conversation_id or "", wanted.turn_id or "")
        one = wanted.memory_id or said
        return CommandResult(result, Change(scope=scope, action="forget", memory_id=one, result=result))

    async def _job(self, command: Command, partition: int, offset: int) -> CommandResult:
        wanted, declared = parse_arguments(RunJob, command), self._declared(command, partition)
        if wanted.mode is not None and all(mode.name != wanted.mode for mode in declared.visible(None)):
            raise unknown_mode_error(wanted.mode, "arguments.mode")
        job = Job(
            scope=command.scope,
            job_id=f"{command.command}-{partition}-{offset}",
            kind=command.command,
            mode=wanted.mode,
            started_at=self._clock.now(),
        )
        return CommandResult({}, job=job)

    async def _show_health(self, command: Command, partition: int, _offset: int) -> CommandResult:
        return CommandResult(await self._health(command, partition))

    def _declared(self, command: Command, partition: int) -> ModeDeclarations:
        return self._modes.get(partition, command.scope.boundary)


def _defaults(declared: ModeDeclarations, project: str) -> ResultBody:
    return {"user_default": declared.user_default, "project_default": declared.project_defaults.get(project)}


def _of_mode(
    action: Any, mode: Mode, declared: ModeDeclarations, command: Command, result: ResultBody, to: str | None = None
) -> Change:
    """The change of all memories in a mode: a user's mode does not reach into projects that have their own."""
    own = {one.project for one in declared.modes if one.name == mode.name and one.project is not None}
    return Change(
        scope=command.scope,
        action=action,
        mode=mode.name,
        project=mode.project,
        except_projects=() if mode.project else tuple(sorted(own)),
        to=to,
        result=result,
    )
