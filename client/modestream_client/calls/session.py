"""A connection with a default scope: the base of every call."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from modestream_client.answers import Json, Reply
from modestream_client.offsets import Written
from modestream_client.records import build_record
from modestream_client.transport import Transport

DEFAULT_TIMEOUT_S = 10.0
"""A query takes milliseconds; ten seconds outlast a worker's restart without hiding an outage for long."""

ScopeSelector = Mapping[str, str | Sequence[str]]
"""Scope fields, each with one value, several, or `"*"` for any."""


class CallOptions(TypedDict, total=False):
    """Keywords of every command: user and project, the caller, and a limit in seconds. Absent or None: the client's."""

    user_id: str | None
    project_id: str | None
    principal: str | None
    timeout: float | None


class Session:
    """A transport and a default scope. `MemoryClient` describes the parameters, and the errors of every call."""

    def __init__(
        self,
        transport: Transport,
        *,
        user_id: str | None = None,
        project_id: str = "default",
        scope: Mapping[str, str] | None = None,
    ) -> None:
        self._transport = transport
        self._user_id = user_id
        self._project_id = project_id
        self._further = dict(scope or {})

    async def __aenter__(self) -> Self:
        """Connect. Raises `MemoryUnreachable` if the service's broker, its topics or its gateway are not there."""
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Fail pending requests with `MemoryClosed`, flush written records, and disconnect."""
        await self._transport.close()

    async def command(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Json:
        """Send a command of `docs/contract.md` and return its result as JSON; most have a method of their own.

        Every later request sees its effect. Commands are idempotent; a long one needs a longer `timeout`.

        >>> sorted(await memory.command("list_modes"))
        ['embedders', 'modes', 'project_default', 'user_default']
        """
        scope = self._scope(options.get("user_id"), options.get("project_id"))
        record = build_record("command.v1", command=name, scope=scope, arguments=arguments or {})
        reply = await self._ask("commands", record, options.get("principal"), options.get("timeout"))
        return reply.result

    async def request(
        self,
        topic: str,
        value: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,
    ) -> tuple[Reply, Written | None]:
        """Send any record with a `scope` and wait for its reply; return that and the record's place, if it is known.

        `topic` has no prefix, such as `consolidate`. With `deadline` the service drops the request after the timeout;
        a turn is stored all the same, without a reply.
        """
        return await self._transport.request(topic, value, principal=principal, timeout=timeout, deadline=deadline)

    async def _ask(self, topic: str, record: Json, principal: str | None, timeout: float | None) -> Reply:
        reply, _ = await self._transport.request(topic, record, principal=principal, timeout=timeout, deadline=True)
        return reply

    def _scope(self, user_id: str | None, project_id: str | None) -> Json:
        return {**self._further, "user_id": self._users(user_id)[0], "project_id": project_id or self._project_id}

    def _selector(self, user: str, projects: str | Sequence[str] | None, further: ScopeSelector | None) -> Json:
        selected = self._project_id if projects is None else projects
        return {**self._further, **(further or {}), "user_id": user, "project_id": selected}

    def _users(self, users: str | Sequence[str] | None) -> list[str]:
        named = self._user_id if users is None else users
        unique = [named] if isinstance(named, str) else list(dict.fromkeys(named or ()))
        if not unique:
            raise ValueError("no user: pass one to this call, or `user_id` to the client")
        return unique
