"""Calls that write turns, and read, move, correct or forget single memories."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pydantic import BaseModel

from modestream_client import operations as rows
from modestream_client.answers import Json, Remembered, parse_as, remembered_of
from modestream_client.calls.session import CallOptions, Session, UserId
from modestream_client.contexts import ContextBasis
from modestream_client.hits import WholeMemory
from modestream_client.outbox import OutboxTransport
from modestream_client.records import TURNS_TOPIC, build_record
from modestream_client.results import Forgotten, Imported
from modestream_client.vocabulary import InteractionMode, Role

if TYPE_CHECKING:
    from modestream_client.imports import ExportFormat
    from modestream_client.imports.publishing import Outcome, Tally


class ImportOptions(TypedDict, total=False):
    """Keywords of `import_export`."""

    zone: str | None
    mode: str | None
    mode_for: Sequence[str]
    user_id: UserId | None
    project_id: str | None
    principal: str | None
    tally: "Tally | None"
    on_progress: "Callable[[Tally], None] | None"


class _Moved(BaseModel):
    moved: int


class _Changed(BaseModel):
    changed: int


class WritingCalls(Session):
    """Calls that write turns, and read and change single memories.

    Another user's id gets the same reply as an unknown id.
    """

    async def remember(
        self,
        content: str,
        *,
        role: Role = "user",
        conversation_id: str = "default",
        speaker: str | None = None,
        occurred_at: datetime | str | None = None,
        turn_id: str | None = None,
        mode: str | None = None,
        importance: float | None = None,
        resources: Sequence[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        searchable: bool | None = None,
        private: bool | None = None,
        user_id: UserId | None = None,
        project_id: str | None = None,
        wait: bool = True,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> Remembered:
        """Publish one turn and wait until the service has accepted it: then it can be found.

        >>> said = await memory.remember("The deploy target is fly.io now.", speaker="Ana", turn_id="t-17")
        >>> said.mode, said.version, said.duplicate
        ('general', 1, False)
        >>> (await memory.remember("The deploy target is fly.io now.", speaker="Ana", turn_id="t-17")).duplicate
        True

        Parameters
        ----------
        content
            The text, of 1 to 32,768 characters.
        role
            `user`, `assistant`, `system` or `tool`.
        conversation_id
            The conversation of the turn.
        speaker
            The speaker's name, if the role does not identify the speaker.
        occurred_at
            Time of the turn, with a zone; default: now.
        turn_id
            The caller's own id. The same id and content is a duplicate and changes nothing, so a retry after an error
            is safe; the same id with other content is a new version, which keeps its time unless `occurred_at` is
            given. By default it is derived from scope, conversation, role, content and time; the record has both.
        mode
            A declared mode; by default the service decides.
        importance
            0 to 1.
        resources
            Attachments: `{"uri": …, "media_type": …, "text": caption or transcript}`.
        metadata
            Anything else; stored with the memory.
        searchable, private
            False: no search and no context finds it. True: no language model of the service reads it. By default a new
            turn is searchable and not private, and another version keeps the former values.
        user_id, project_id
            The scope of the turn; default: the client's.
        wait
            False returns as soon as Kafka has acknowledged the record: it will be accepted or become a dead letter,
            and only `partition` and `offset` are known. After a timeout it may still be written. Over HTTP it makes no
            difference. With an outbox it returns as soon as the turn is there.
        """
        turn = build_record(
            "turn.v1",
            turn_id=turn_id,
            scope=self._scope(user_id, project_id),
            conversation_id=conversation_id,
            role=role,
            speaker=speaker,
            content=content,
            occurred_at=occurred_at,
            mode=mode,
            importance=importance,
            resources=resources,
            metadata=metadata or {},
            **{name: flag for name, flag in (("searchable", searchable), ("private", private)) if flag is not None},
        )
        if isinstance(self._transport, OutboxTransport):
            kept = await self._transport.remember(turn, principal=principal, timeout=timeout if wait else 0)
            return remembered_of(*kept)
        if not wait:
            written = await self._transport.write(TURNS_TOPIC, turn, principal=principal, timeout=timeout)
            return Remembered(*written)
        # No deadline: it would not prevent the turn from being stored, only its reply from being sent.
        reply, place = await self._transport.request(
            TURNS_TOPIC, turn, principal=principal, timeout=timeout, deadline=False
        )
        return remembered_of(reply, place)

    async def import_export(
        self,
        path: str | PathLike[str],
        format: "ExportFormat",  # noqa: A002 - its name in the contract
        **options: Unpack[ImportOptions],
    ) -> Imported:
        """Publish the messages of a chat export as turns, each once; return their outcome.

        The same export again, or a later one of the same chats, stores nothing twice. Needs the extra `imports` where
        the format is JSON. A turn that is not answered is sent again for 15 minutes; then the error is raised, and the
        call again continues. Raises ValueError for a file that is not of the format.

        Parameters
        ----------
        path
            The unchanged export, zips included.
        format
            `chatgpt`, `claude`, `claude-code`, `codex`, `slack`, `whatsapp`, `telegram`, `mbox`, `jsonl` or `mem0`.
        zone
            The time zone of times without one, such as `Europe/Berlin`; default: UTC.
        mode, mode_for
            The mode of all messages; of a part, such as `project:Foo=work` or `conversation:Old plans=journal`.
        tally
            The tally of an interrupted import: skips as many messages.
        on_progress
            Called with the tally whenever it has grown.
        """
        from modestream_client.imports import publishing, read_export, zone_of  # noqa: PLC0415 - needed here alone

        project_id, principal = options.get("project_id"), options.get("principal")
        scope = self._scope(options.get("user_id"), project_id)
        # Lines of `jsonl` keep their own project, unless one is named here.
        fixed = scope if project_id is not None else {name: scope[name] for name in (*self._boundary, *self._further)}
        modes = publishing.ModesFor(options.get("mode_for", ()), options.get("mode"))

        async def send(turn: Json, place: int | str) -> "tuple[Outcome, str | None]":
            record = {"schema": "turn.v1", **turn, "scope": {**scope, **(turn.get("scope") or {}), **fixed}}
            request = self._transport.request(
                TURNS_TOPIC, record, principal=principal, timeout=publishing.TURN_TIMEOUT_S, deadline=False
            )
            return await publishing.outcome_of(request, place)

        tally = options.get("tally") or publishing.Tally()
        with Path(path).open("rb") as source:  # noqa: ASYNC230 - opened here, read in a thread
            entries = map(modes.applied, read_export(source, format, zone_of(options.get("zone"))))
            await publishing.publish(publishing.read_beside(entries), send, tally, options.get("on_progress"))
        return Imported.model_validate(tally.result())

    async def get_memory(self, memory_id: str, **options: Unpack[CallOptions]) -> WholeMemory:
        """Return the whole record of a memory of this project, with evidence and versions.

        >>> said = await memory.remember("The kettle is blue.", speaker="Ana")
        >>> (await memory.get_memory(said.memory_id)).text
        'The kettle is blue.'
        """
        return await self._run(rows.GET_MEMORY, {"memory_id": memory_id}, **options)

    async def set_memory_mode(self, memory_id: str, mode: str, **options: Unpack[CallOptions]) -> WholeMemory:
        """Assign a memory of this project to another mode; return its record.

        No language model changes the mode again. Until the new vector exists, lexical search finds the memory.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> said = await memory.remember("I was afraid of the move.")
        >>> (await memory.set_memory_mode(said.memory_id, "journal")).mode
        'journal'
        """
        arguments = {"memory_id": memory_id, "mode": mode}
        return await self._run(rows.SET_MEMORY_MODE, arguments, **options)

    async def set_memory_modes(self, memory_ids: Sequence[str], mode: str, **options: Unpack[CallOptions]) -> int:
        """Assign up to 500 memories of this project to another mode; return how many there are.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> said = [await memory.remember(text) for text in ("I was afraid.", "I was glad.")]
        >>> await memory.set_memory_modes([turn.memory_id for turn in said], "journal")
        2
        """
        arguments = {"memory_ids": list(memory_ids), "mode": mode}
        return parse_as(_Moved, await self.command("set_memory_mode", arguments, **options)).moved

    async def set_memory_visibility(
        self,
        memory_id: str,
        *,
        searchable: bool | None = None,
        private: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> WholeMemory:
        """Set whether searches find a turn or a summary, and whether a language model of the service may read it.

        None leaves a flag unchanged. Items follow their turn. The mode may filter it as well.

        >>> said = await memory.remember("The safe code is 4711.")
        >>> (await memory.set_memory_visibility(said.memory_id, searchable=False)).searchable
        False
        """
        arguments = {"memory_id": memory_id, "searchable": searchable, "private": private}
        return await self._run(rows.SET_MEMORY_VISIBILITY, arguments, **options)

    async def set_memory_visibilities(
        self,
        memory_ids: Sequence[str],
        *,
        searchable: bool | None = None,
        private: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> int:
        """Do the same for up to 500 memories of this project; return how many there are.

        >>> said = [await memory.remember(text) for text in ("The safe code is 4711.", "The safe is green.")]
        >>> await memory.set_memory_visibilities([turn.memory_id for turn in said], private=True)
        2
        """
        arguments = {"memory_ids": list(memory_ids), "searchable": searchable, "private": private}
        return parse_as(_Changed, await self.command("set_memory_visibility", arguments, **options)).changed

    async def set_interaction_mode(
        self, memory_id: str, interaction_mode: InteractionMode, **options: Unpack[CallOptions]
    ) -> WholeMemory:
        """Correct the interaction mode of a turn; counted as a correction of the classifier.

        >>> said = await memory.remember("Why does the login fail?")
        >>> (await memory.set_interaction_mode(said.memory_id, "DEBUGGING")).interaction_mode
        'DEBUGGING'
        """
        arguments = {"memory_id": memory_id, "interaction_mode": interaction_mode}
        return await self._run(rows.SET_INTERACTION_MODE, arguments, **options)

    async def get_context(self, context_id: str, **options: Unpack[CallOptions]) -> ContextBasis:
        """Show the basis of a context or an answer: memories, and the turns that they come from.

        Where the deployment logs contexts; for as long as it keeps them.

        >>> made = await memory.assemble("where is the key?")
        >>> (await memory.get_context(made.context_id)).kind
        'assemble'
        """
        return await self._run(rows.GET_CONTEXT, {"context_id": context_id}, **options)

    async def rate(
        self,
        context_id: str,
        *,
        useful: Sequence[str] = (),
        not_useful: Sequence[str] = (),
        **options: Unpack[CallOptions],
    ) -> int:
        """Say which memories of a context were of use, and which were not; return their number.

        It is kept and counted, and changes no ranking.
        """
        arguments = {"context_id": context_id, "useful": useful, "not_useful": not_useful}
        return (await self._run(rows.RATE, arguments, **options)).rated

    async def forget(
        self,
        *,
        memory_id: str | None = None,
        turn_id: str | None = None,
        conversation_id: str | None = None,
        project: bool = False,
        user: bool = False,
        filters: Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> Forgotten:
        """Forget permanently, with all derived data; 0 memories the second time.

        Exactly one of: `memory_id`; `turn_id` with `conversation_id`; `conversation_id`; `project`, this project;
        `user`, everything of the user; `filters` as in `retrieve`, with `since` ≤ time < `until`. Turns that were
        written before are covered, replayed ones are not stored again. With `dry_run` nothing is changed: the result
        has `would_forget` and `examples`.

        >>> said = await memory.remember("The kettle is blue.")
        >>> (await memory.forget(memory_id=said.memory_id, dry_run=True)).would_forget
        1
        >>> (await memory.forget(memory_id=said.memory_id)).forgotten
        1
        >>> (await memory.forget(memory_id=said.memory_id)).forgotten
        0
        """
        named = {"memory_id": memory_id, "turn_id": turn_id, "conversation_id": conversation_id}
        by_filters = {"filters": filters, "since": since, "until": until}
        flags = {name: True for name, wanted in (("project", project), ("user", user), ("dry_run", dry_run)) if wanted}
        arguments = {name: value for name, value in {**named, **by_filters}.items() if value is not None}
        return await self._run(rows.FORGET, arguments | flags, **options)
