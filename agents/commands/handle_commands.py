"""Handle commands about modes, memories and jobs: the only writer of the table `modes`.

Changes of memories leave as a `Change`, and the command is answered when that has been applied: after `ok` every later
request sees its effect. A redelivered command gives the same result.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Literal

from modestream_client.arguments import (
    DeclareMode,
    DeleteMode,
    Forget,
    GetMemory,
    RenameMode,
    RunEvaluation,
    RunJob,
    RunRefresh,
    SetDefaultMode,
    SetInteractionMode,
    SetMemoryMode,
    SetMemoryVisibility,
)

from agents.ports.clock import Clock
from agents.ports.commands import BeforeForgetting, CommandResult, ResultBody, parse_arguments
from agents.ports.models import Embedders
from agents.ports.stores import Memories, ModeWriter
from agents.rules.memory.visibility import build_memory_view, build_mode_view
from agents.rules.modes.declaring import (
    declare_mode,
    delete_mode,
    drop_former,
    rename_mode,
    require_mode,
    set_default_mode,
    unknown_mode_error,
)
from schemas.failures import Rejected
from schemas.internal.changes import Change, Job
from schemas.messages.commands import Command
from schemas.moments import iso
from schemas.state.memories import Memory, derive_memory_id
from schemas.state.modes import Mode, ModeDeclarations

HealthCheck = Callable[[Command], Awaitable[ResultBody]]


STILL_SERVES = (
    "the mode's memories are still found by the vectors of its former embedder: they can be dropped when all are"
    " embedded (health: stale and pending are 0)"
)
"""The reason for which the vectors of a former embedder are not dropped."""


class HandleCommands:
    """Commands in; results, declared modes and changes out."""

    def __init__(
        self,
        partition: int,
        memories: Memories,
        modes: ModeWriter,
        embedders: Embedders,
        health: HealthCheck,
        clock: Clock,
        former_serves: Callable[[str, Mode], bool] = lambda _boundary, _mode: False,
    ) -> None:
        """`partition` is part of job ids; `former_serves` says whether a boundary's mode has not all vectors yet."""
        self._former_serves = former_serves
        self._partition = partition
        self._memories = memories
        self._modes = modes
        self._embedders = embedders
        self._health = health
        self._clock = clock

    async def declare_mode(self, command: Command, offset: int) -> CommandResult:
        """Declare or update a mode; another embedder or visibility leaves a change of its memories.

        Raises Rejected, `conflict`, if the vectors of the former embedder are to go while they serve.
        """
        wanted, project = parse_arguments(DeclareMode, command), command.scope.project_id
        embedder = self._embedders.described(wanted.embedder)
        if embedder is None:
            message = (
                f"{wanted.embedder[:80]!r} is neither a preset nor an embedder of the setting EMBEDDERS, nor, where"
            )
            message += " EMBEDDERS_ALLOWED is any, a text model of fastembed"
            raise Rejected("invalid_value", message, "arguments.embedder")
        if embedder.refused:
            raise Rejected("too_large", embedder.refused, "arguments.embedder")
        if not wanted.for_project:
            command.require_all_projects()
        before, target = self._declared(command), project if wanted.for_project else None
        existing = before.find(wanted.name, target)
        former_serves = existing is not None and self._former_serves(command.scope.boundary, existing)
        created_at = iso(command.sent_at or self._clock.now())
        after = declare_mode(
            before, wanted, embedder, project, offset, created_at=created_at, former_serves=former_serves
        )
        mode = require_mode(after, wanted.name, target, "arguments.name")
        is_release = not wanted.keep_former and mode.embedded_since != offset
        if is_release:
            if former_serves:
                raise Rejected("conflict", STILL_SERVES, "arguments.keep_former")
            after = drop_former(after, mode)
            mode = require_mode(after, wanted.name, target, "arguments.name")
        self._modes.put(command.scope.boundary, after)
        # A model of a few minutes' download is there sooner than with the first turn.
        self._embedders.prepare(wanted.embedder)
        result = self._view(mode, after, project)
        if is_release:
            return CommandResult(result, _change_mode("release", mode, after, command, result))
        # A project's mode replaces the user's mode of that name there, for existing memories, too.
        if offset not in (mode.embedded_since, mode.filtered_since):
            return CommandResult(result)
        action = "stale" if mode.embedded_since == offset else "filter"
        return CommandResult(result, _change_mode(action, mode, before, command, result))

    async def rename_mode(self, command: Command, _offset: int) -> CommandResult:
        """Rename a mode; leaves a change that moves its memories."""
        wanted, before = parse_arguments(RenameMode, command), self._declared(command)
        after, mode = rename_mode(before, wanted, command.scope.project_id)
        _require_grant_of(mode, command)
        self._modes.put(command.scope.boundary, after)
        result = self._view(mode, after, command.scope.project_id)
        old = mode.model_copy(update={"name": wanted.name})
        return CommandResult(result, _change_mode("move", old, before, command, result, to=mode.name))

    async def delete_mode(self, command: Command, _offset: int) -> CommandResult:
        """Delete a mode; leaves a change that moves or forgets its memories."""
        wanted, before = parse_arguments(DeleteMode, command), self._declared(command)
        after, mode = delete_mode(before, wanted, command.scope.project_id)
        _require_grant_of(mode, command)
        self._modes.put(command.scope.boundary, after)
        result: ResultBody = {"name": mode.name, "moved": 0, "forgotten": 0}
        action = "forget" if wanted.target_mode is None else "move"
        return CommandResult(result, _change_mode(action, mode, before, command, result, to=wanted.target_mode))

    async def set_default_mode(self, command: Command, _offset: int) -> CommandResult:
        wanted, project = parse_arguments(SetDefaultMode, command), command.scope.project_id
        if not wanted.for_project:
            command.require_all_projects()
        after = set_default_mode(self._declared(command), wanted, project)
        self._modes.put(command.scope.boundary, after)
        return CommandResult(_defaults(after, project))

    async def list_modes(self, command: Command, _offset: int) -> CommandResult:
        """List the modes of a scope, its defaults, and the embedders that modes may name."""
        declared, project = self._declared(command), command.scope.project_id
        modes = [self._view(mode, declared, project) for mode in declared.visible((project,))]
        embedders = [
            embedder.model_dump(exclude={"query_prefix", "passage_prefix", "refused"})
            for embedder in self._embedders.available()
            if not embedder.refused
        ]
        return CommandResult({"modes": modes, **_defaults(declared, project), "embedders": embedders})

    def _view(self, mode: Mode, declared: ModeDeclarations, project: str) -> ResultBody:
        """Return the mode as its commands show it: its declaration, and whether its embedder works now."""
        standing = self._embedders.standing(mode.embedder)
        return {**build_mode_view(mode, declared, project), "embedder_status": standing.model_dump(exclude_none=True)}

    async def set_memory_mode(self, command: Command, offset: int) -> CommandResult:
        """Move one memory or several to another mode; each that was in another one counts as a correction, once."""
        wanted, declared = parse_arguments(SetMemoryMode, command), self._declared(command)
        require_mode(declared, wanted.mode, command.scope.project_id, "arguments.mode")
        memories = self._named_memories(command, wanted)
        corrections = self._count_corrections(
            command, Counter(memory.mode for memory in memories if memory.mode != wanted.mode), offset
        )
        if wanted.memory_id is not None:
            change = Change(scope=command.scope, action="move", memory_id=wanted.memory_id, to=wanted.mode)
            return CommandResult({}, change, corrections)
        ids, result = tuple(memory.memory_id for memory in memories), {"moved": 0}
        change = Change(scope=command.scope, action="move", memory_ids=ids, to=wanted.mode, result=result)
        return CommandResult(result, change, corrections)

    async def set_memory_visibility(self, command: Command, _offset: int) -> CommandResult:
        """Set the filters of one memory or several; leaves a change."""
        wanted = parse_arguments(SetMemoryVisibility, command)
        memories = self._named_memories(command, wanted)
        return CommandResult(*request_visibility(command, wanted, memories))

    async def set_interaction_mode(self, command: Command, _offset: int) -> CommandResult:
        """Correct the interaction mode of a memory; leaves a change."""
        return CommandResult({}, request_correction(command, self._memories, self._clock.now()))

    async def get_memory(self, command: Command, _offset: int) -> CommandResult:
        """Return the whole record of a memory: of the scope, or of any that the sender may read."""
        wanted, scope = parse_arguments(GetMemory, command), command.scope
        memory, permitted = self._memories.get(wanted.memory_id), command.permitted_projects
        is_shown = memory is not None and memory.scope == scope.model_dump()
        if memory is not None and wanted.any_project:
            is_permitted = permitted is None or memory.scope["project_id"] in permitted
            is_shown = memory.boundary == scope.boundary and is_permitted
        if memory is None or not is_shown:
            raise _no_memory("memory_id")
        return CommandResult(build_memory_view(memory))

    async def forget(self, command: Command, offset: int, before: Sequence[BeforeForgetting] = ()) -> CommandResult:
        """Leave a change that forgets; `before` clears the derived data of a whole project or user.

        The modes and defaults of a user go at once. What is declared for a project is the user's, and stays with it.
        """
        wanted, scope = parse_arguments(Forget, command), command.scope
        whole: Literal["user", "project"] | None = "user" if wanted.user else "project" if wanted.project else None
        if wanted.user:
            command.require_all_projects()
        if wanted.user and not wanted.dry_run:
            # Written also where nothing was declared: earlier turns may still arrive.
            self._modes.put(scope.boundary, ModeDeclarations(forgotten_turns=command.turns_before))
        for clear in before if whole and not wanted.dry_run else ():
            clear(command, offset)
        result: ResultBody = {} if wanted.dry_run else {"forgotten": 0}
        forget = Change(scope=scope, action="preview" if wanted.dry_run else "forget", result=result)
        if wanted.turn_id is not None:
            memory_id = derive_memory_id(scope.model_dump(), wanted.conversation_id or "", wanted.turn_id)
            return CommandResult(result, forget.model_copy(update={"memory_id": memory_id}))
        names = ("memory_id", "conversation_id", "filters", "since", "until")
        selected = {name: getattr(wanted, name) for name in names} | {"whole": whole}
        return CommandResult(result, forget.model_copy(update=selected))

    async def start_job(self, command: Command, offset: int) -> CommandResult:
        """Start a job, over the scope alone or over all projects."""
        models: dict[str, type[RunJob]] = {"refresh": RunRefresh, "evaluate": RunEvaluation}
        arguments = models.get(command.command, RunJob)
        wanted, declared = parse_arguments(arguments, command), self._declared(command)
        if wanted.all_projects:
            command.require_all_projects()
        projects = None if wanted.all_projects else (command.scope.project_id,)
        if wanted.mode is not None and all(mode.name != wanted.mode for mode in declared.visible(projects)):
            raise unknown_mode_error(wanted.mode, "arguments.mode")
        fields = wanted.model_dump(include=set(Job.model_fields))
        if isinstance(wanted, RunEvaluation):
            fields["evaluation"] = wanted
        job = Job(
            scope=command.scope,
            job_id=f"{command.command}-{self._partition}-{offset}",
            kind=command.command,
            started_at=self._clock.now(),
            **fields,
        )
        return CommandResult({}, job=job)

    async def health(self, command: Command, _offset: int) -> CommandResult:
        return CommandResult(await self._health(command))

    def _declared(self, command: Command) -> ModeDeclarations:
        return self._modes.get(command.scope.boundary)

    def _named_memories(self, command: Command, wanted: SetMemoryMode | SetMemoryVisibility) -> list[Memory]:
        """Return the named memories of the scope, each once. Raises Rejected, `not_found`, if there is none."""
        if (wanted.memory_id is None) is (wanted.memory_ids is None):
            raise Rejected("invalid_value", "give either memory_id or memory_ids", "arguments.memory_id")
        named = (wanted.memory_id,) if wanted.memory_ids is None else dict.fromkeys(wanted.memory_ids)
        scope = command.scope.model_dump()
        named_memories = (self._memories.get(memory_id) for memory_id in named if memory_id is not None)
        # One of another scope is as good as none.
        memories = [memory for memory in named_memories if memory is not None and memory.scope == scope]
        if not memories:
            raise _no_memory("memory_id" if wanted.memory_ids is None else "memory_ids")
        return memories

    def _count_corrections(self, command: Command, moved: Counter[str], offset: int) -> Counter[str]:
        """Count these corrections, by mode, unless the command was counted before; return those that are new."""
        declared = self._declared(command)
        if not moved or offset <= declared.counted:
            return Counter()
        corrections = declared.corrections + moved.total()
        counted = declared.model_copy(update={"corrections": corrections, "counted": offset})
        self._modes.put(command.scope.boundary, counted)
        return moved


def _require_grant_of(mode: Mode, command: Command) -> None:
    """Raise Rejected, `not_allowed`, if the mode is one of all projects and the sender is permitted only in some."""
    if mode.project is None:
        command.require_all_projects()


def _no_memory(argument: str) -> Rejected:
    """Return the error for an id that is unknown or of another scope; it does not reveal which."""
    return Rejected("not_found", "this scope has no memory of that id", f"arguments.{argument}")


def _defaults(declared: ModeDeclarations, project: str) -> ResultBody:
    return {"user_default": declared.user_default, "project_default": declared.project_defaults.get(project)}


def _change_mode(
    action: Any, mode: Mode, declared: ModeDeclarations, command: Command, result: ResultBody, to: str | None = None
) -> Change:
    """Return the change of all memories in a mode; a user's mode excludes projects with their own mode of that name."""
    others = [each.project for each in declared.modes if each.name == mode.name]
    return Change(
        scope=command.scope,
        action=action,
        mode=mode.name,
        project=mode.project,
        except_projects=() if mode.project else tuple(sorted(set(filter(None, others)))),
        to=to,
        result=result,
    )


def request_correction(command: Command, memories: Memories, at: datetime) -> Change:
    """Return the change; it counts in the week of `at`.

    Raises Rejected: `invalid_value` for an unknown interaction mode and for an item, which has none; `not_found` for a
    memory that the scope does not have.
    """
    wanted = parse_arguments(SetInteractionMode, command)
    memory = memories.get(wanted.memory_id)
    if memory is None or memory.scope != command.scope.model_dump():
        raise Rejected("not_found", "this scope has no memory of that id", "arguments.memory_id")
    if memory.origin == "extracted":
        message = "an item has no interaction mode of its own: correct the turn that states it"
        raise Rejected("invalid_value", message, "arguments.memory_id")
    return Change(
        scope=command.scope,
        action="correct",
        memory_id=wanted.memory_id,
        interaction_mode=wanted.interaction_mode,
        at=at,
    )


def request_visibility(
    command: Command, wanted: SetMemoryVisibility, memories: Sequence[Memory]
) -> tuple[dict[str, Any], Change]:
    """Return the result and the change of these memories, which the command names.

    Raises Rejected, `invalid_value`, without a flag, and for an item, which has the visibility of its turns.
    """
    argument = "memory_id" if wanted.memory_ids is None else "memory_ids"
    if wanted.searchable is None and wanted.private is None:
        raise Rejected("invalid_value", "give searchable, private, or both", "arguments.searchable")
    if item := next((memory for memory in memories if memory.origin == "extracted"), None):
        message = (
            f"{item.memory_id} is an item and has the visibility of its turns: set that of the turns in its evidence"
        )
        raise Rejected("invalid_value", message, f"arguments.{argument}")
    result: dict[str, Any] | None = None if wanted.memory_ids is None else {"changed": 0}
    change = Change(
        scope=command.scope,
        action="filter",
        memory_id=wanted.memory_id,
        memory_ids=() if wanted.memory_ids is None else tuple(memory.memory_id for memory in memories),
        searchable=wanted.searchable,
        private=wanted.private,
        result=result,
    )
    return result or {}, change
