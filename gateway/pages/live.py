"""Live parts of a page: server-sent events with their text."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from starlette.responses import StreamingResponse

from gateway.service.boundaries import Boundaries

MIN_INTERVAL_S = 1.0
"""Minimum distance between two events of one stream."""

REFRESH_S = 5.0
"""Interval of rendering without a known change: lag and models don't announce theirs."""

MAX_STREAM_S = 900.0
"""Length of one stream: a revoked key is noticed when the browser connects again."""

UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: nothing on the way keeps pieces back."""


def live_answer(render: Callable[[], Awaitable[str]], boundaries: Boundaries) -> StreamingResponse:
    """Return a stream of server-sent events: a part of a page, sent when its text has changed."""

    async def events() -> AsyncIterator[str]:
        end, last = time.monotonic() + MAX_STREAM_S, ""
        while time.monotonic() < end:
            version = boundaries.version
            text = await render()
            # A comment where nothing has changed: it keeps proxies from closing the connection.
            yield ": alive\n\n" if text == last else as_event(text)
            last = text
            await asyncio.sleep(MIN_INTERVAL_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_S - MIN_INTERVAL_S):
                    await boundaries.changed_since(version)

    return StreamingResponse(events(), media_type="text/event-stream", headers=UNBUFFERED)


def as_event(text: str) -> str:
    r"""Return a text as one event.

    >>> as_event("a\nb")
    'data: a\ndata: b\n\n'
    """
    return "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
