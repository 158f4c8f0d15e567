"""What an operator's command needs to know of a deployment: its record in Kafka, a client of it, and its users.

`list_boundaries` returns every boundary that the worker has published and not withdrawn by a tombstone, in the order of
their keys.
"""

import hashlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from modestream_client import MemoryClient
from modestream_client.answers import Json
from modestream_client.operations import COMMANDS
from pydantic import ValidationError

from schemas.internal.service import SERVICE_KEY, ServiceRecord
from schemas.messages.boundaries import Boundary
from schemas.messages.records import Record
from schemas.state.policies import OPERATOR
from streams.adapters.kafka.deployment_log import read_values
from streams.adapters.kafka.logs import read_each
from streams.settings import Settings
from streams.topics import topics_with_prefix

CALL_TIMEOUT_S = 60.0
"""Limit of a call of the client: it outlasts the restart of a worker."""


class NoDeployment(Exception):
    """There is no deployment with this prefix on this broker."""


async def deployment_at(settings: Settings) -> Settings:
    """Return the settings with the number of partitions that the deployment was made with.

    Raises NoDeployment, with what to do; Unavailable while Kafka does not answer.
    """
    record = await read_service_record(settings)
    if record is None:
        message = (
            f"no deployment with the prefix {settings.topic_prefix!r} on {settings.broker}: set MODESTREAM_BROKER and"
            " MODESTREAM_TOPIC_PREFIX, and start a worker once"
        )
        raise NoDeployment(message)
    return settings.model_copy(update={"partitions": record.partitions})


async def read_service_record(settings: Settings) -> ServiceRecord | None:
    """Return the record of the deployment; None if there is none. Raises Unavailable."""
    values = (await read_values(settings)).get(SERVICE_KEY)
    try:
        return ServiceRecord.model_validate_json(values[-1]) if values else None
    except ValidationError as problem:
        topic = topics_with_prefix(settings.topic_prefix).service
        raise NoDeployment(f"{topic} has a record that this release can't read: start a later one") from problem


def client_of(
    settings: Settings,
    principal: str | None = None,
    timeout: float = CALL_TIMEOUT_S,
    scope: Mapping[str, str] | None = None,
) -> MemoryClient:
    """Return a client of this very deployment, not yet open; `scope` is that of calls which name no other.

    Without a `principal` it is the operator's.
    """
    return MemoryClient(
        ",".join(settings.bootstrap_servers),
        topic_prefix=settings.topic_prefix,
        timeout=timeout,
        principal=principal or OPERATOR,
        scope=scope,
        boundary=settings.scope_model.boundary_fields,
        security=settings.kafka_security,
    )


async def run_command(
    memory: MemoryClient,
    name: str,
    scope: Mapping[str, str],
    arguments: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
) -> Json:
    """Send a command for a full scope, and return its result. Raises MemoryClientError."""
    command = COMMANDS[name]
    reply, _ = await memory.request(command.topic, command.record_of(scope, arguments or {}), timeout=timeout)
    return reply.result


async def scope_of(memory: MemoryClient, settings: Settings, boundary: Boundary, project: str | None) -> dict[str, str]:
    """Return a full scope of a user: of this project, or of any for what covers all of them.

    Where the scope model has further required fields, those of a stored memory are taken.
    """
    scope = {**boundary.scope, "project_id": project or "default"}
    missing = [
        name for name, field in settings.scope_model.model_fields.items() if field.is_required() and name not in scope
    ]
    if not missing:
        return scope
    selector: Mapping[str, Any] = {**boundary.scope, "project_id": project or "*", **dict.fromkeys(missing, "*")}
    wanted = {"schema": "list.v1", "scope": selector, "what": "projects", "limit": 1}
    reply, _ = await memory.request("retrieve", wanted)
    items = reply.result["items"]
    return dict(items[0]["scope"]) if items else scope


class CurrentBoundaries:
    """The last value of each key."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Boundary] = {}

    def take(self, record: Record) -> None:
        """Take the next record of a partition. An unreadable one changes nothing."""
        key = record.key or b""
        if record.value is None:
            self.by_key.pop(key, None)
            return
        with suppress(ValidationError):
            self.by_key[key] = Boundary.model_validate_json(record.value)


async def list_boundaries(settings: Settings, users: Collection[str] | None = None) -> list[Boundary]:
    """Return all boundaries, or those of these users alone.

    Raises Unavailable while Kafka can't be read, ValueError for a user that the deployment does not have.
    """
    current = CurrentBoundaries()
    topic = topics_with_prefix(settings.topic_prefix).boundaries
    await read_each(settings, topic, range(settings.partitions), current.take)
    boundaries = [current.by_key[key] for key in sorted(current.by_key)]
    if users is None:
        return boundaries
    name = settings.scope_model.boundary_fields.name
    if unknown := set(users) - {name(boundary.scope) for boundary in boundaries}:
        raise ValueError(f"{topic} has no user {', '.join(sorted(unknown))}")
    return [boundary for boundary in boundaries if name(boundary.scope) in users]


@dataclass(frozen=True, slots=True)
class Selection:
    """`users` None: all of the deployment; `project` None: all of each user. `principal` names the caller."""

    users: frozenset[str] | None
    project: str | None = None
    at_once: int = 4
    principal: str | None = None


def named_scope(*parts: str | None) -> str:
    """Return a short name of a combination of options, the same each time, fit for a file name."""
    return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()[:12]
