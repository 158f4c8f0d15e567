"""Reading goes on after an error that aiokafka does not expect.

aiokafka reads in a task of its own. An error that it does not expect ends that task, and is only logged: each later
poll of its consumer returns nothing, and as no end of a partition is learned either, nothing seems to be left to read.
Here the task begins again where its consumer is: nothing is skipped, and nothing is read twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.errors import KafkaError

READ_BACKOFF_S = 0.2
"""The pause after an error of a consumer, so that an outage is no busy loop."""

log = logging.getLogger(__name__)


async def fetch_until_closed(fetcher: Any, fetch: Callable[[], Awaitable[None]], first: Awaitable[None]) -> None:
    """Wait for the `first` run of a fetcher's task; run `fetch` after each one that an error has ended."""
    run = first
    while True:
        try:
            await run
        except KafkaError as problem:
            log.warning("reading from Kafka ended by %r, it begins again", problem.__cause__ or problem)
            # The others are cancelled by the new run; one that ended by the error would end that, too.
            fetcher._pending_tasks = {task for task in fetcher._pending_tasks if not task.done()}  # noqa: SLF001
            await asyncio.sleep(READ_BACKOFF_S)
            run = fetch()
        else:
            return
