"""A deployment as operator commands need it: its record in Kafka, a client, its users, and work on many of them.

`list_boundaries` returns every boundary that the worker has published and not withdrawn by a tombstone, in the order of
their keys. Progress is written to standard error, so that standard output has only the result: a bar on a terminal,
else a plain line every few seconds.
"""

import argparse
import asyncio
import hashlib
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from modestream_client import MemoryClient
from modestream_client.answers import Json
from modestream_client.operations import COMMANDS
from pydantic import ValidationError
from tqdm import tqdm

from schemas.internal.service import SERVICE_KEY, ServiceRecord
from schemas.messages.published import Boundary
from schemas.messages.records import Record
from schemas.state.policies import OPERATOR
from streams.adapters.kafka.deployment_log import read_values
from streams.adapters.kafka.logs import read_each
from streams.settings import Settings
from streams.topics import topics_with_prefix

CALL_TIMEOUT_S = 60.0
"""Timeout of a client call: longer than the restart of a worker."""

EMBEDDED_TIMEOUT_S, HEALTH_INTERVAL_S = 900.0, 0.25
"""Maximum wait for the vectors of one boundary, as a model may be missing; interval between checks of `health`."""


class NoDeployment(Exception):
    """There is no deployment with this prefix on this broker."""


def add_principal(parser: argparse.ArgumentParser) -> None:
    """Add the option for the sender of a command's requests."""
    parser.add_argument("--principal", help="the caller, where the deployment has a file of grants")


async def deployment_at(settings: Settings) -> Settings:
    """Return the settings with the deployment's number of partitions.

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
    """Return the record of the deployment; None if there is no record. Raises Unavailable."""
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
    """Return a client of this deployment, not yet open; `scope` is the default of its calls.

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


async def until_embedded(health: Callable[[], Awaitable[Json]]) -> bool:
    """Wait until no vector of a boundary is due, by its `health`; False after `EMBEDDED_TIMEOUT_S`."""
    until = time.monotonic() + EMBEDDED_TIMEOUT_S
    while time.monotonic() < until:
        modes = (await health())["modes"].values()
        if not sum(mode["pending"] + mode["stale"] for mode in modes):
            return True
        await asyncio.sleep(HEALTH_INTERVAL_S)
    return False


async def scope_of(memory: MemoryClient, settings: Settings, boundary: Boundary, project: str | None) -> dict[str, str]:
    """Return a full scope of a user: of this project, or of any project for calls that cover all of them.

    Further required fields of the scope model are taken from a stored memory.
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


LINE_INTERVAL_S = 5.0
"""Interval between plain lines: a log of an hour has about 700."""


class Progress:
    """Progress bar of a total, which may grow. Used as a context manager."""

    def __init__(self, title: str, total: int, unit: str) -> None:
        self._title, self._unit = title, unit
        self._done, self._total = 0, total
        self._note = ""
        self._told_at = time.monotonic()
        self._bar = tqdm(total=total, desc=title, unit=f" {unit}", dynamic_ncols=True) if sys.stderr.isatty() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            self._tell()

    def advance(self, by: int = 1) -> None:
        self._done += by
        if self._bar is not None:
            self._bar.update(by)
        if self._bar is None and time.monotonic() - self._told_at >= LINE_INTERVAL_S:
            self._tell()

    def reach(self, done: int, total: int | None = None) -> None:
        """Replace both counts, or the first."""
        self._total = self._total if total is None else total
        if self._bar is not None:
            self._bar.total = self._total
        self.advance(done - self._done)

    def say(self, note: str) -> None:
        """Show a note after the count, such as the reason of a wait."""
        if note == self._note:
            return
        self._note = note
        if self._bar is not None:
            self._bar.set_postfix_str(note)
        else:
            self._tell()

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        note = f" ({self._note})" if self._note else ""
        sys.stderr.write(f"{self._title}: {self._done} of {self._total} {self._unit}{note}\n")


Unit = TypeVar("Unit")


async def at_most(number: int, units: Iterable[Unit], work: Callable[[Unit], Awaitable[None]]) -> None:
    """Call `work` for each, at most `number` at the same time. The first error ends all, and is raised."""
    waiting = iter(units)

    async def go_on() -> None:
        for unit in waiting:
            await work(unit)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                group.create_task(go_on())
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
