"""Show files: `list_files`, `get_file_parts`, and `get_file`, in every project that the sender may read."""

from collections.abc import Iterable
from dataclasses import dataclass

from modestream_client.arguments import GetFile, GetFileParts, ListFiles
from modestream_client.results import FileList, FilePart, FileParts, ListedFile

from agents.ports.commands import CommandResult, parse_arguments
from agents.ports.indexes import LexicalIndex
from agents.ports.stores import Files, Memories
from agents.rules.memory.resources import file_name, find_resource, part_ids
from schemas.failures import Rejected
from schemas.messages.commands import Command
from schemas.moments import iso
from schemas.scopes import PROJECT_FIELD
from schemas.state.files import FileStatuses, upload_uri
from schemas.state.memories import Memory, Resource, turn_index_names


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShowFiles:
    """Commands in, files and their texts out. Writes nothing."""

    memories: Memories
    words: LexicalIndex
    files: Files

    async def list_files(self, command: Command, _offset: int) -> CommandResult:
        """Show the files of the newest turns that match, and count all by status."""
        wanted, boundary = parse_arguments(ListFiles, command), command.scope.boundary
        permitted = command.permitted_projects
        projects = permitted if wanted.all_projects else (command.scope.project_id,)
        counted = FileStatuses()
        matching: list[tuple[int, str]] = []
        statuses = self.files.turns(boundary)
        for occurred_ms, memory_id, project, conversation in self._turns(boundary, statuses):
            if not all(names is None or project in names for names in (projects, permitted)):
                continue
            if wanted.conversation_id not in (None, conversation):
                continue
            counted = counted.plus(statuses[memory_id])
            if wanted.status is None or getattr(statuses[memory_id], wanted.status):
                matching.append((occurred_ms, memory_id))
        matching.sort(reverse=True)
        shown = (self.memories.get(each) for _, each in matching[wanted.skip : wanted.skip + wanted.limit])
        files = [
            _listed(turn, resource)
            for turn in shown
            if turn is not None
            for resource in turn.resources
            if resource.status is not None and wanted.status in (None, resource.status)
        ]
        return CommandResult(FileList(files=files, total=len(matching), counts=counted.model_dump()).model_dump())

    async def get_file_parts(self, command: Command, _offset: int) -> CommandResult:
        """Show a part of a file's text. Raises Rejected, `not_found`."""
        wanted = parse_arguments(GetFileParts, command)
        turn, permitted = self.memories.get(wanted.memory_id), command.permitted_projects
        is_shown = turn is not None and turn.boundary == command.scope.boundary
        if turn is None or not is_shown or (permitted is not None and turn.scope[PROJECT_FIELD] not in permitted):
            raise Rejected("not_found", "this user has no memory of that id", "arguments.memory_id")
        read = (each for each in turn.resources if each.status is not None and wanted.uri in (None, each.uri))
        if (resource := next(read, None)) is None:
            raise Rejected("not_found", "this memory has no such file", "arguments.uri")
        parts = (self.memories.get(part_id) for part_id in part_ids(turn, resource))
        supported = [(part, part.item.supports[0]) for part in parts if part is not None and part.item is not None]
        selected = [pair for pair in supported if wanted.page in (None, pair[1].page)]
        before = sum(support.end <= wanted.at for _, support in selected) if wanted.at is not None else 0
        first = max(wanted.skip, min(before, len(selected) - 1))
        shown = [
            FilePart(
                memory_id=part.memory_id,
                mode=part.mode,
                text=part.text,
                start=support.start,
                end=support.end,
                page=support.page,
                start_s=support.start_s,
                end_s=support.end_s,
            )
            for part, support in selected[first : first + wanted.limit]
        ]
        result = FileParts(file=_listed(turn, resource), parts=shown, first=first, total=len(selected))
        return CommandResult(result.model_dump())

    async def get_file(self, command: Command, _offset: int) -> CommandResult:
        """Return the record of a file that belongs to a memory of the user in a project the sender may read."""
        sha256, permitted = parse_arguments(GetFile, command).sha256, command.permitted_projects
        for memory_id in self.files.holders(command.scope.boundary, sha256).memories:
            memory = self.memories.get(memory_id)
            resource = find_resource(memory, upload_uri(sha256))
            is_permitted = permitted is None or (memory is not None and memory.scope[PROJECT_FIELD] in permitted)
            if resource is not None and is_permitted:
                return CommandResult(resource.model_dump(mode="json"))
        raise Rejected("not_found", "no memory of this user has that file", "arguments.sha256")

    def _turns(self, boundary: str, memory_ids: Iterable[str]) -> Iterable[tuple[int, str, str | None, str | None]]:
        """Yield time in ms, id, project and conversation of these turns, by the columns: no record is read."""
        by_index = [self.words.memory_columns(name) for name in turn_index_names(boundary)]
        names = [columns.conversation_names() for columns in by_index]
        for memory_id in memory_ids:
            for columns, conversations in zip(by_index, names, strict=True):
                if (number := columns.number_of.get(memory_id)) is not None:
                    scope, conversation = conversations[int(columns.columns.conversations[number])]
                    occurred_ms = int(columns.columns.occurred_ms[number])
                    yield occurred_ms, memory_id, dict(scope).get(PROJECT_FIELD), conversation


def _listed(turn: Memory, resource: Resource) -> ListedFile:
    assert resource.status is not None
    names = [name for name in ListedFile.model_fields if name in Resource.model_fields and name != "name"]
    return ListedFile(
        memory_id=turn.memory_id,
        conversation_id=turn.conversation_id,
        scope=dict(turn.scope),
        mode=turn.mode,
        occurred_at=iso(turn.occurred_at),
        name=file_name(resource),
        **{name: getattr(resource, name) for name in names},
    )
