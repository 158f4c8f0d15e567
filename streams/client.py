"""The Python client: remember turns, ask for memories and give commands, over Kafka.

    async with MemoryClient("127.0.0.1:9092", user_id="u1") as memory:
        await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        answer = await memory.retrieve("where do we deploy?")
        print(answer.hits[0].text)

Calls enter; records leave on the request topics, and typed results come back from the shared reply topic. Every call
ends: with its result, or with one of the errors of `streams.asking.failures`. A question sees what this client wrote
before it (read your own writes). A client belongs to one event loop, is meant to be kept open, and serves any number
of concurrent calls and users.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self

from schemas.memories import MemoryType, Role
from streams.asking.answers import Answer, Json, Notice, Remembered, Reply, answer_of, remembered_of
from streams.asking.failures import (
    MemoryClientError,
    MemoryClosed,
    MemoryServiceError,
    MemoryTimeout,
    MemoryUnreachable,
)
from streams.asking.merge import one_answer
from streams.asking.records import record
from streams.asking.requests import TURNS, Requests, Written

__all__ = [
    "OWN_WRITES",
    "Answer",
    "MemoryClient",
    "MemoryClientError",
    "MemoryClosed",
    "MemoryServiceError",
    "MemoryTimeout",
    "MemoryUnreachable",
    "Notice",
    "Remembered",
    "Written",
]

DEFAULT_TIMEOUT_S = 10.0
"""A question takes milliseconds; ten seconds outlast a worker's restart without hiding an outage for long."""

OWN_WRITES: Literal["own_writes"] = "own_writes"
"""As `read_after`: everything that this client has written for that user."""

ReadAfter = int | Literal["own_writes"] | None


class MemoryClient:
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

    Every method takes `timeout`, in seconds, for that call alone, and raises a `MemoryClientError`:
    `MemoryServiceError` for the service's own errors, `MemoryTimeout`, `MemoryUnreachable`, `MemoryClosed`.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        user_id: str | None = None,
        project_id: str = "default",
        topic_prefix: str = "memory.",
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._requests = Requests(bootstrap, topic_prefix, timeout)
        self._user_id = user_id
        self._project_id = project_id

    async def __aenter__(self) -> Self:
        """Connect. Raises `MemoryUnreachable` where there is no broker, or none with the service's topics."""
        await self._requests.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Fail what still waits with `MemoryClosed`, let Kafka acknowledge what was handed over, and disconnect."""
        await self._requests.close()

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
        turn = record(
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
            return Remembered(*await self._requests.write(TURNS, turn, timeout=timeout))
        # No deadline: it would not keep the turn from being stored, only its reply from being sent.
        reply, written = await self.request(TURNS, turn, timeout=timeout, deadline=False)
        return remembered_of(reply, *written)

    async def retrieve(
        self,
        query: str,
        *,
        users: str | Sequence[str] | None = None,
        projects: str | Sequence[str] | None = None,
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
        question = record(
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
        selected = self._project_id if projects is None else projects
        requests = [
            record(
                **question, scope={"user_id": user, "project_id": selected}, read_after=self._after(user, read_after)
            )
            for user in asked
        ]
        replies = await asyncio.gather(*(self._ask(one, timeout) for one in requests), return_exceptions=True)
        return one_answer(dict(zip(asked, replies, strict=True)), top_k, partial=partial)

    async def command(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Give a command of CONTRACT §6, such as `health` or `forget`, and return its result.

        Every later request sees its effect. Commands are idempotent; a long one wants a longer `timeout`.
        """
        scope = self._scope(user_id, project_id)
        order = record("command.v1", command=name, scope=scope, arguments=arguments or {})
        reply, _ = await self.request("commands", order, timeout=timeout)
        return reply.result

    async def request(
        self, topic: str, value: Json, *, timeout: float | None = None, deadline: bool = True
    ) -> tuple[Reply, Written]:
        """Send any record of the contract that has a `scope`, and wait for its reply.

        `topic` comes without the prefix, such as `consolidate`. With `deadline` the service drops the request once
        the timeout has passed; a turn is stored all the same, without a reply.
        """
        return await self._requests.ask(topic, value, timeout=timeout, deadline=deadline)

    async def _ask(self, question: Json, timeout: float | None) -> Answer:
        reply, _ = await self.request("retrieve", question, timeout=timeout)
        return answer_of(reply)

    def _after(self, user_id: str, read_after: ReadAfter) -> int | None:
        return self._requests.last_turn(user_id) if read_after == OWN_WRITES else read_after

    def _scope(self, user_id: str | None, project_id: str | None) -> Json:
        return {"user_id": self._users(user_id)[0], "project_id": project_id or self._project_id}

    def _users(self, users: str | Sequence[str] | None) -> list[str]:
        named = self._user_id if users is None else users
        asked = [named] if isinstance(named, str) else list(dict.fromkeys(named or ()))
        if not asked:
            raise ValueError("whose memories? Give a user here or `user_id` to MemoryClient")
        return asked
