"""Readiness probe: `up` reports `ready` when the service behind the broker answers a request."""

from collections.abc import Awaitable, Callable

from modestream_client import MemoryClient, MemoryClientError, MemoryServiceError

from schemas.scopes import Scope

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
