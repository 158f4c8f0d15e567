"""A connection with a default scope: the base of every call."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from modestream_client.answers import Json, Reply, parse_as
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.operations import Operation, ResultT, command_topic
from modestream_client.records import Written, build_record
from modestream_client.transport import Transport

DEFAULT_TIMEOUT_S = 10.0
"""A query takes milliseconds; ten seconds outlast a worker's restart without hiding an outage for long."""

ScopeSelector = Mapping[str, str | Sequence[str]]
"""Scope fields, each with one value, several, or `"*"` for any."""


UserId = str | Mapping[str, str]
"""A user: the user id; where the service declares other boundary fields, their values, or its name, as `acme/u1`."""


class CallOptions(TypedDict, total=False):
    """Keywords of every command: user and project, the caller, and a limit in seconds. Absent or None: the client's."""

    user_id: UserId | None
    project_id: str | None
    principal: str | None
    timeout: float | None


class Session:
    """A transport and a default scope. `MemoryClient` describes the parameters, and the errors of every call."""

    def __init__(
        self,
        transport: Transport,
        *,
        user_id: UserId | None = None,
        project_id: str = "default",
        scope: Mapping[str, str] | None = None,
        boundary: Sequence[str] = USER_BOUNDARY,
    ) -> None:
        self._transport = transport
        self._boundary = BoundaryFields(boundary)
        self._project_id = project_id
        own = {field: value for field, value in (scope or {}).items() if field in self._boundary}
        self._user = own or None if user_id is None else user_id
        self._further = self._boundary.others(scope or {})

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
        """Send a command of `docs/contract.md` and return its result as JSON; most have their own method.

        Every later request sees its effect. Commands are idempotent; a long one needs a longer `timeout`.

        >>> sorted(await memory.command("list_modes"))
        ['embedders', 'modes', 'project_default', 'user_default']
        """
        scope = self._scope(options.get("user_id"), options.get("project_id"))
        record = build_record("command.v1", command=name, scope=scope, arguments=arguments or {})
        reply = await self._ask(command_topic(name), record, options.get("principal"), options.get("timeout"))
        return reply.result

    async def _run(
        self, command: Operation[ResultT], arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ResultT:
        """Send a command of the table, and parse its result."""
        return parse_as(command.result, await self.command(command.name, arguments, **options))

    async def request(
        self,
        topic: str,
        value: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,
    ) -> tuple[Reply, Written | None]:
        """Send any record with a `scope`; return its reply and the record's position in Kafka, if known.

        `topic` has no prefix, such as `consolidate`. With `deadline` the service drops the request after the timeout; a
        turn is still stored, without a reply.
        """
        return await self._transport.request(topic, value, principal=principal, timeout=timeout, deadline=deadline)

    async def _ask(self, topic: str, record: Json, principal: str | None, timeout: float | None) -> Reply:
        reply, _ = await self._transport.request(topic, record, principal=principal, timeout=timeout, deadline=True)
        return reply

    def _scope(self, user_id: UserId | None, project_id: str | None) -> Json:
        boundary = self._boundary.values(self._users(user_id)[0])
        return {**self._further, **boundary, "project_id": project_id or self._project_id}

    def _selector(self, user: str, projects: str | Sequence[str] | None, further: ScopeSelector | None) -> Json:
        selected = self._project_id if projects is None else projects
        return {**self._further, **(further or {}), **self._boundary.values(user), "project_id": selected}

    def _users(self, users: UserId | Sequence[UserId] | None) -> list[str]:
        """Return the names of the users, each once. Raises ValueError without users, and for an invalid one."""
        named = self._user if users is None else users
        names: dict[str, None] = {}
        for user in [named] if isinstance(named, str | Mapping) else named or ():
            if isinstance(user, str):
                self._boundary.key_of(user)
            elif {*user} != {*self._boundary}:
                fields = ", ".join(self._boundary)
                raise ValueError(f"a user has the fields {fields}, as the service declares, not {user}")
            names[user if isinstance(user, str) else self._boundary.name(user)] = None
        if not names:
            raise ValueError("no user: pass one to this call, or `user_id` to the client")
        return list(names)
