"""Retry with exponential backoff while a dependency is unavailable; Kafka holds the backlog meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from schemas.failures import Unavailable
from streams.observability.metrics import Meters

Result = TypeVar("Result")

INITIAL_BACKOFF_S = 0.2
MAX_BACKOFF_S = 5.0
"""The first pause and the longest one: short, as a restarting broker or store is back in seconds."""

log = structlog.get_logger()


async def until_available(
    call: Callable[[], Awaitable[Result]], what: str, meters: Meters, *, at_most_s: float | None = None
) -> Result:
    """Retry a call while it raises `Unavailable`, at once and then with pauses.

    Raises it when the pauses exceed `at_most_s`; None retries for ever.
    """

    async def attempt() -> Result:
        # A coroutine function: tenacity does not await what a lambda returns.
        return await call()

    try:
        # Nearly every call succeeds, and entering tenacity takes 30 us.
        result = await call()
    except Unavailable:

        def note_wait(state: RetryCallState) -> None:
            meters.waited_for(what)
            problem = state.outcome and state.outcome.exception()
            log.warning("unavailable, retrying", what=what, problem=str(problem), seconds=state.upcoming_sleep)

        result = await AsyncRetrying(
            retry=retry_if_exception_type(Unavailable),
            wait=wait_exponential(multiplier=INITIAL_BACKOFF_S, max=MAX_BACKOFF_S),
            stop=lambda state: at_most_s is not None and state.idle_for > at_most_s,
            sleep=asyncio.sleep,
            before_sleep=note_wait,
            reraise=True,
        )(attempt)
    meters.answered(what)
    return result
