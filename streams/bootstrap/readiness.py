"""Whether the service behind a broker answers requests: what `up` waits for before it says `ready`."""

from collections.abc import Awaitable, Callable

from streams.client import MemoryClient, MemoryClientError, MemoryServiceError

PROBE_USER_ID = "modestream-probe"
"""A user without memories, whose modes are asked for."""

REFUSAL_CODES = ("invalid_value", "not_allowed")
"""Answers of a service that lets such a user do nothing: his scope is none of its model's, or nothing is granted."""

ATTEMPT_TIMEOUT_S = 3.0
"""One attempt: the first request after a start may come before the worker has its partitions."""


def readiness_probe(topic_prefix: str) -> Callable[[str], Awaitable[bool]]:
    """A probe that asks a command over Kafka and says whether the reply came."""

    async def probe(bootstrap: str) -> bool:
        try:
            async with MemoryClient(
                bootstrap, user_id=PROBE_USER_ID, topic_prefix=topic_prefix, timeout=ATTEMPT_TIMEOUT_S
            ) as memory:
                return "modes" in await memory.command("list_modes")
        except MemoryServiceError as refused:
            return refused.code in REFUSAL_CODES
        except MemoryClientError:
            return False

    return probe
