"""A connection with a default scope: the base of every call of the client."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from modestream_client.answers import Json, Reply
from modestream_client.offsets import Written
from modestream_client.records import build_record
from modestream_client.requests import RecordHeadersOf, RequestReplyClient

DEFAULT_TIMEOUT_S = 10.0
"""A query takes milliseconds; ten seconds outlast a worker's restart without hiding an outage for long."""

OWN_WRITES: Literal["own_writes"] = "own_writes"
"""As `read_after`: every turn that this client has written for the user."""

ScopeSelector = Mapping[str, str | Sequence[str]]
"""Scope fields, each with one value, several, or `"*"` for any."""

ReadAfter = int | str | None
"""`OWN_WRITES`; `"<partition>:<offset>"`, as results of writes have it; an offset of the user's partition; no wait."""


class Session:
    """A connection; see `MemoryClient` for its parameters and the errors of every call."""

    def __init__(
        self,
        bootstrap: str,
        *,
        user_id: str | None = None,
        project_id: str = "default",
        topic_prefix: str = "memory.",
        timeout: float = DEFAULT_TIMEOUT_S,
        principal: str | None = None,
        scope: Mapping[str, str] | None = None,
        record_headers: RecordHeadersOf | None = None,
    ) -> None:
        self._requests = RequestReplyClient(bootstrap, topic_prefix, timeout, principal, record_headers)
        self._user_id = user_id
        self._project_id = project_id
        self._further = dict(scope or {})

    async def __aenter__(self) -> Self:
        """Connect. Raises `MemoryUnreachable` if there is no broker or the service's topics are missing."""
        await self._requests.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Fail pending requests with `MemoryClosed`, flush written records, and disconnect."""
        await self._requests.close()

    async def command(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Send a command of `docs/contract.md`, such as `health` or `rename_mode`, and return its result.

        Every later request sees its effect. Commands are idempotent; a long one needs a longer `timeout`.
        """
        scope = self._scope(user_id, project_id)
        record = build_record("command.v1", command=name, scope=scope, arguments=arguments or {})
        reply, _ = await self.request("commands", record, principal=principal, timeout=timeout)
        return reply.result

    async def request(
        self,
        topic: str,
        value: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,
    ) -> tuple[Reply, Written]:
        """Send any record with a `scope` and wait for its reply.

        `topic` has no prefix, such as `consolidate`. With `deadline` the service drops the request after the timeout;
        a turn is stored all the same, without a reply.
        """
        return await self._requests.request(topic, value, principal=principal, timeout=timeout, deadline=deadline)

    async def _after(self, user_id: str, read_after: ReadAfter) -> int | None:
        if read_after == OWN_WRITES:
            return self._requests.last_turn(user_id)
        return await self._requests.offset_in(user_id, read_after) if isinstance(read_after, str) else read_after

    def _scope(self, user_id: str | None, project_id: str | None) -> Json:
        return {**self._further, "user_id": self._users(user_id)[0], "project_id": project_id or self._project_id}

    def _selector(self, user: str, projects: str | Sequence[str] | None, further: ScopeSelector | None) -> Json:
        selected = self._project_id if projects is None else projects
        return {**self._further, **(further or {}), "user_id": user, "project_id": selected}

    def _users(self, users: str | Sequence[str] | None) -> list[str]:
        named = self._user_id if users is None else users
        unique = [named] if isinstance(named, str) else list(dict.fromkeys(named or ()))
        if not unique:
            raise ValueError("no user: pass one to this call, or `user_id` to MemoryClient")
        return unique
