"""Retry with exponential backoff while a dependency is unavailable; Kafka holds the backlog meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from schemas.failures import Unavailable
from streams.observability.metrics import Meters

Result = TypeVar("Result")

INITIAL_BACKOFF_S = 0.2
MAX_BACKOFF_S = 5.0
"""The first pause and the longest one: short, as a restarting broker or store is back in seconds."""

log = structlog.get_logger()


async def until_available(
    call: Callable[[], Awaitable[Result]], what: str, meters: Meters, *, at_most_s: float = float("inf")
) -> Result:
    """Retry a call while it raises `Unavailable`; raise that once the pauses exceed `at_most_s`."""
    pause, waited = INITIAL_BACKOFF_S, 0.0
    while True:
        try:
            return await call()
        except Unavailable as problem:
            if waited > at_most_s:
                raise
            waited += pause
            meters.waited_for(what)
            log.warning("unavailable, retrying", what=what, problem=str(problem), seconds=pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_BACKOFF_S)
