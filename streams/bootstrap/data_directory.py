"""What a data directory says: the scope model that it was created with, and the id of its worker.

Stored records name the fields of their scopes: with other fields no user would find them, or the wrong user would.
Kafka has the same for the whole deployment (`deployment_records`); this check needs no broker.
"""

import os
import re
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
import structlog
from modestream_client import MemoryClient, MemoryClientError, MemoryServiceError

from schemas.internal.service import scope_fields, scope_schema_hash
from schemas.scopes import Scope
from streams.adapters.durable_files import write_durably

log = structlog.get_logger()

SCOPE_FILE = "scope.json"
"""The file with the fields, in the data directory."""

MIGRATE = (
    "Set the former value; or migrate to a new TOPIC_PREFIX and DATA_DIR by `modestream migrate`, as"
    " docs/recovery.md says under 'Migrating'"
)
"""The operator's options for a refused setting."""


def check_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """End the process if a data directory was created with scopes of other fields, or another boundary."""
    stored, ours = _stored(directory), _Fields(scope_fields(scope), scope.boundary_fields)
    if stored is None:
        return
    for what, made, own in zip(("scopes of", "the boundary"), stored, ours, strict=True):
        if made != own:
            sys.exit(
                f"setting MODESTREAM_SCOPE_MODEL: {directory} was created with {what} {', '.join(made)}, not"
                f" {', '.join(own)}\n{MIGRATE}"
            )


def save_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """Check the fields as `check_scope_fields` does, and store them for later starts."""
    check_scope_fields(directory, scope)
    names = scope_fields(scope)
    content = {
        "scope_fields": names,
        "scope_schema_hash": scope_schema_hash(names),
        "boundary": [*scope.boundary_fields],
    }
    file = directory / SCOPE_FILE
    text = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    # Workers of one data directory start at the same time.
    if not file.exists() or file.read_bytes() != text.encode():
        write_durably(file, text, writer=f".{os.getpid()}")


class _Fields(NamedTuple):
    """The fields of scopes, and those of their boundary."""

    scope: tuple[str, ...]
    boundary: tuple[str, ...]


def _stored(directory: Path) -> _Fields | None:
    file = directory / SCOPE_FILE
    try:
        stored = orjson.loads(file.read_bytes())
        return _Fields(tuple(stored["scope_fields"]), tuple(stored["boundary"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as problem:
        # The record of the deployment in Kafka has the same: the worker compares it, and writes the file again.
        log.warning("a damaged file is made again", file=str(file), problem=repr(problem))
        return None


WORKER_ID = re.compile(r"[0-9a-f]{32}")
"""What `load_worker_id` writes."""


def load_worker_id(file: Path) -> str:
    """Return the worker id of this data directory, the same after every start; a damaged file gets a new one."""
    known = file.read_text(errors="replace").strip() if file.exists() else ""
    if not WORKER_ID.fullmatch(known):
        write_durably(file, known := uuid.uuid4().hex)
    return known


def worker_ids(data_dir: Path, worker_id: str | None, number: int) -> Sequence[str | None]:
    """Return the ids of so many workers of a data directory, the same after every start, whatever the number.

    The first has the id of the settings, or, as None, that of its file: it keeps the id of a single worker.
    """
    if number == 1:
        return (worker_id,)
    data_dir.mkdir(parents=True, exist_ok=True)
    first = worker_id or load_worker_id(data_dir / "worker.id")
    return (worker_id, *(f"{first}-{place}" for place in range(2, number + 1)))


PROBE_USER_ID = "modestream-probe"
"""A user without memories; the probe lists its modes."""

REFUSAL_CODES = ("invalid_value", "not_allowed")
"""Errors of a ready service for this user: its scope does not fit the scope model, or nothing is granted."""

ATTEMPT_TIMEOUT_S = 3.0
"""Timeout of one attempt: the first request after a start may be sent before partitions are assigned."""


def readiness_probe(topic_prefix: str, scope: type[Scope] = Scope) -> Callable[[str], Awaitable[bool]]:
    """Return a probe that sends a command over Kafka and is true if it is answered."""
    boundary = scope.boundary_fields
    user = dict.fromkeys(boundary, PROBE_USER_ID)

    async def probe(bootstrap: str) -> bool:
        try:
            async with MemoryClient(
                bootstrap, user_id=user, topic_prefix=topic_prefix, timeout=ATTEMPT_TIMEOUT_S, boundary=boundary
            ) as memory:
                return "modes" in await memory.command("list_modes")
        except MemoryServiceError as refused:
            return refused.code in REFUSAL_CODES
        except MemoryClientError:
            return False

    return probe
