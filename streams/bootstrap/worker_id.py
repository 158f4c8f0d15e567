"""The worker of a data directory: its id, the same after every start, and a probe that it serves."""

import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from modestream_client import MemoryClient, MemoryClientError, MemoryServiceError

from schemas.scopes import Scope
from streams.adapters.durable_files import write_durably

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
