"""The Python client: remember turns, ask for memories or a whole prompt, give commands, over Kafka.

    async with MemoryClient("127.0.0.1:9092", user_id="u1") as memory:
        await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        answer = await memory.retrieve("where do we deploy?")
        print(answer.hits[0].text)

Calls enter; records leave on the request topics, and typed results come back from the shared reply topic. Every call
ends: with its result, or with one of the errors of `streams.client.failures`. A question sees what this client wrote
before it (read your own writes). A client belongs to one event loop, is meant to be kept open, and serves any number
of concurrent calls and users.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from schemas.assemble import DEFAULT_BUDGET_TOKENS
from schemas.interaction import InteractionMode
from schemas.memories import MemoryType, Role
from streams.client.answers import Answer, Json, Notice, Remembered, answer_of, remembered_of
from streams.client.contexts import Context, context_of
from streams.client.failures import (
    MemoryClientError,
    MemoryClosed,
    MemoryServiceError,
    MemoryTimeout,
    MemoryUnreachable,
)
from streams.client.merge import merge_answers
from streams.client.modes import DeclaredModes, ModeCommands, ShownMode
from streams.client.records import build_record
from streams.client.requests import TURNS_TOPIC, Written
from streams.client.session import OWN_WRITES, ReadAfter, ScopeSelector

__all__ = [
    "OWN_WRITES",
    "Answer",
    "Context",
    "DeclaredModes",
    "MemoryClient",
    "MemoryClientError",
    "MemoryClosed",
    "MemoryServiceError",
    "MemoryTimeout",
    "MemoryUnreachable",
    "Notice",
    "Remembered",
    "ShownMode",
    "Written",
]


class MemoryClient(ModeCommands):
    """A connection to the memory service, used as `async with MemoryClient(…) as memory`.

    Parameters
    ----------
    bootstrap
        Kafka's address, such as `127.0.0.1:9092`; several are separated by commas.
    user_id
        Whose memories calls are about that do not say so themselves.
    project_id
        The project of calls that do not say so themselves.
    topic_prefix
        What the service's topic names begin with.
    timeout
        Seconds that a call may take, opening and closing included.
    principal
        Who asks, for a service that has an authorization file.
    scope
        Further fields of the service's scope model, of every call.

    Every method takes `timeout`, in seconds, for that call alone, and raises a `MemoryClientError`:
    `MemoryServiceError` for the service's own errors, `MemoryTimeout`, `MemoryUnreachable`, `MemoryClosed`.
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
        user_id: str | None = None,
        project_id: str | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Remembered:
        """Publish one turn, and wait until the service has accepted it.

        Parameters
        ----------
        content
            The text, of 1 to 32,768 characters.
        role
            `user`, `assistant`, `system` or `tool`.
        conversation_id
            The thread that the turn belongs to.
        speaker
            Who said it, where the role does not tell.
        occurred_at
            When it was said, with a zone; now, where absent.
        turn_id
            The caller's own id. The same id and content again is a duplicate and changes nothing, so sending again
            after an error is safe; the same id with other content is a new version. Where absent, the service derives
            it from scope, conversation, role, content and time.
        mode
            A declared mode; where absent, the service decides.
        importance
            0 to 1.
        resources
            What came with the turn: `{"uri": …, "media_type": …, "text": caption or transcript}`.
        metadata
            Anything else; it is kept with the memory.
        user_id, project_id
            Whose turn it is, where that is not the client's own.
        wait
            False returns as soon as Kafka has acknowledged the record: it will be accepted, or become a dead letter,
            and only `partition` and `offset` are known. A timeout means that it may still be written.
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
        )
        if not wait:
            return Remembered(*await self._requests.write(TURNS_TOPIC, turn, timeout=timeout))
        # No deadline: it would not keep the turn from being stored, only its reply from being sent.
        reply, written = await self.request(TURNS_TOPIC, turn, timeout=timeout, deadline=False)
        return remembered_of(reply, *written)

    async def retrieve(
        self,
        query: str,
        *,
        users: str | Sequence[str] | None = None,
        projects: str | Sequence[str] | None = None,
        scope: ScopeSelector | None = None,
        mode: str | Sequence[str] | None = None,
        conversation_id: str | None = None,
        top_k: int = 10,
        types: Sequence[MemoryType] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        depth: Literal["items", "auto"] = "items",
        read_after: ReadAfter = OWN_WRITES,
        explain: bool = False,
        include_superseded: bool = False,
        partial: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """Ask for memories; hits come best first, each with its scope and evidence.

        Parameters
        ----------
        query
            The question, or words to look for.
        users
            One user or several. Each of several is asked by a request of its own, all at once, and their hits are
            merged by rank to `top_k`.
        projects
            One project, several, or `"*"` for all.
        scope
            The same of further fields of the service's scope model.
        mode
            One mode, several, or `"*"`; where absent, the mode that the scope is in.
        conversation_id
            Only picks the mode; it filters nothing.
        top_k
            1 to 100.
        types
            Memory types, such as `["episodic"]`; where absent, all.
        since, until
            `since` ≤ time < `until`, with a zone.
        depth
            `items`, or `auto`: from intention and categories down to items, only as far as needed.
        read_after
            `OWN_WRITES`: the answer includes what this client wrote for the user before. An offset on the turns
            topic, in the partition of one user: that turn and all before it. None: whatever is there. Where the
            service can't catch up in time, the answer has the warning `not_caught_up`.
        explain
            Each hit tells its `scores`.
        include_superseded
            Also memories that a later one has replaced.
        partial
            False: the first user whose request fails fails the call. True: that user's failure is a warning, and the
            call fails only where every user's did.
        """
        asked = self._users(users)
        if isinstance(read_after, int) and len(asked) > 1:
            raise ValueError("an offset is in one user's partition: give it with one user")
        question = build_record(
            "retrieve.v1",
            query=query,
            mode=mode,
            conversation_id=conversation_id,
            top_k=top_k,
            types=types,
            since=since,
            until=until,
            depth=depth,
            explain=explain,
            include_superseded=include_superseded,
        )
        requests = [
            build_record(
                **question, scope=self._selector(user, projects, scope), read_after=self._after(user, read_after)
            )
            for user in asked
        ]
        replies = await asyncio.gather(*(self._ask(one, timeout) for one in requests), return_exceptions=True)
        return merge_answers(dict(zip(asked, replies, strict=True)), top_k, partial=partial)

    async def assemble(
        self,
        query: str,
        *,
        conversation_id: str | None = None,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        interaction_mode: InteractionMode | None = None,
        system_prompt: str | None = None,
        pins: Sequence[str] = (),
        mode: str | Sequence[str] | None = None,
        read_after: ReadAfter = OWN_WRITES,
        user_id: str | None = None,
        projects: str | Sequence[str] | None = None,
        scope: ScopeSelector | None = None,
        timeout: float | None = None,
    ) -> Context:
        """Ask for a prompt of three messages that has what matters for a query and fits a number of tokens.

        Parameters
        ----------
        query
            What the prompt is for. It is not stored.
        conversation_id
            The thread whose last turns come along; where absent, none do.
        budget_tokens
            All that the messages may take together, at least 300.
        interaction_mode
            What the query is for, where that is known; else it is read from the query and the last turns.
        system_prompt
            The system message, word for word; where absent, a short one of the service's.
        pins
            Memory ids that must be there. Those of other scopes are ignored with the warning `unknown_pin`.
        mode, projects, scope, read_after
            As in `retrieve`.
        """
        [user] = self._users(user_id)
        request = build_record(
            "assemble.v1",
            scope=self._selector(user, projects, scope),
            query=query,
            conversation_id=conversation_id,
            mode=mode,
            budget_tokens=budget_tokens,
            interaction_mode=interaction_mode,
            system_prompt=system_prompt,
            pins=pins,
            read_after=self._after(user, read_after),
        )
        reply, _ = await self.request("retrieve", request, timeout=timeout)
        return context_of(reply)

    async def _ask(self, question: Json, timeout: float | None) -> Answer:
        reply, _ = await self.request("retrieve", question, timeout=timeout)
        return answer_of(reply)
