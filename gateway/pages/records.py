"""Records of several memories at once, each by its scope and id. Guaranteed: few are asked for at a time."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.service import MemoryService

AT_ONCE = 8
"""Records that are asked for at the same time."""


async def get_all(
    service: MemoryService, call: Call, places: Sequence[tuple[Mapping[str, str], str]]
) -> list[dict[str, Any] | None]:
    """Return the records in order; None for one that is not there any more. Raises Refused for any other failure."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def get(scope: Mapping[str, str], memory_id: str) -> dict[str, Any] | None:
        async with slots:
            return await get_or_none(service, call, scope, memory_id)

    return await asyncio.gather(*(get(scope, memory_id) for scope, memory_id in places))


async def get_or_none(
    service: MemoryService, call: Call, scope: Mapping[str, str], memory_id: str
) -> dict[str, Any] | None:
    """Return a record of a scope without its user; None where there is none."""
    try:
        return await service.memories.get(call, dict(scope), memory_id)
    except Refused as refused:
        if refused.code in ("not_found", "not_allowed"):
            return None
        raise
