"""End a worker that can't continue: at once, so that nothing unfinished is acknowledged or written."""

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()

DEFECT_CODE = 70
"""Exit code of a defect, `EX_SOFTWARE`: the supervisor restarts the worker."""


def end_process() -> None:
    """Exit at once, without a cleanup; unacknowledged events are delivered again. The caller has logged the reason."""
    log.error("ended", part="worker", code=DEFECT_CODE, reason="see the lines before")
    os._exit(DEFECT_CODE)


def end_refused() -> None:
    """Exit at once with the code of refused settings: the supervisor does not restart the worker.

    The caller has logged the reason.
    """
    log.error("ended", part="worker", code=os.EX_CONFIG, reason="see the lines before")
    os._exit(os.EX_CONFIG)


async def until_cancelled(run: Coroutine[Any, Any, None]) -> None:
    """Run a background task. If it ends by itself, that is a defect: end the process, to be restarted."""
    try:
        await run
    except asyncio.CancelledError:
        raise
    except BaseException:
        log.exception("background task failed")
    end_process()
