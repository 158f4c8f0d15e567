"""A part of a page as server-sent events: sent when it has changed, at most once a second.

Enters: what renders the part, and what tells of changes. Leaves: `data` events without a name, which htmx swaps in.
Guaranteed: a stream ends after `MAX_STREAM_S`, so that a revoked key is noticed when the browser connects again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from starlette.responses import StreamingResponse

MIN_INTERVAL_S = 1.0
"""Between two events of one stream."""

REFRESH_S = 5.0
"""After which it is rendered again without a change that is told: lag and models tell of none."""

MAX_STREAM_S = 900.0
"""Length of one stream."""


class Changes(Protocol):
    """Tells that numbers have changed."""

    @property
    def version(self) -> int:
        """Grows with every change."""

    async def changed_since(self, version: int) -> None:
        """Return once the version is another one."""


def live_answer(render: Callable[[], Awaitable[str]], changes: Changes) -> StreamingResponse:
    """Answer with the part whenever it has changed."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(render, changes), media_type="text/event-stream", headers=headers)


async def _events(render: Callable[[], Awaitable[str]], changes: Changes) -> AsyncIterator[str]:
    end, last = time.monotonic() + MAX_STREAM_S, ""
    while time.monotonic() < end:
        version = changes.version
        text = await render()
        # A comment where nothing has changed: it keeps proxies from closing the connection.
        yield ": alive\n\n" if text == last else as_event(text)
        last = text
        await asyncio.sleep(MIN_INTERVAL_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_S - MIN_INTERVAL_S):
                await changes.changed_since(version)


def as_event(text: str) -> str:
    r"""Return a text as one event.

    >>> as_event("a\nb")
    'data: a\ndata: b\n\n'
    """
    return "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
