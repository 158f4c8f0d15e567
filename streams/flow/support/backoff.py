"""Waiting in place for what is unavailable: Kafka holds the backlog meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from schemas.failures import Unavailable
from streams.observability.metrics import Meters

Result = TypeVar("Result")

INITIAL_BACKOFF_S = 0.2
MAX_BACKOFF_S = 5.0
"""The first pause, and the longest after doubling: short, as a broker or a store that restarts is back in seconds."""

log = structlog.get_logger()


async def until_available(
    call: Callable[[], Awaitable[Result]], what: str, meters: Meters, *, at_most_s: float = float("inf")
) -> Result:
    """Repeat a call until it is not `Unavailable` any more; raises that when `at_most_s` have gone by."""
    pause, waited = INITIAL_BACKOFF_S, 0.0
    while True:
        try:
            return await call()
        except Unavailable as problem:
            if waited > at_most_s:
                raise
            waited += pause
            meters.waited_for(what)
            log.warning("waiting", what=what, problem=str(problem), seconds=pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_BACKOFF_S)
