"""One connection of a caller: what the HTTP library leaves open, closed.

Enters: bytes of a socket. Guaranteed: a caller that stops reading holds no answer for longer than a minute, whatever
the answer is; spaces around the value of a header field are no part of it (RFC 9110, 5.5).
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

STALLED_S = 30.0
"""Seconds in which a caller with an answer under way must take a byte. A stream sends something every 15 s."""


class Connection(HttpToolsProtocol):
    """The library's protocol, with an end for callers that stand still."""

    stalled_s = STALLED_S
    _look: asyncio.TimerHandle | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header field."""
        super().on_header(name, value.strip(b" \t"))

    def pause_writing(self) -> None:
        """Begin to look whether the caller takes what is buffered; nothing more is written meanwhile."""
        super().pause_writing()
        self._look_later(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Go on: the caller has taken most of it."""
        self._look_no_more()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; whatever waits to be sent is dropped."""
        self._look_no_more()
        super().connection_lost(exc)

    def _look_later(self, waiting_bytes: int) -> None:
        self._look = self.loop.call_later(self.stalled_s, self._abort_if_stalled, waiting_bytes)

    def _look_no_more(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _abort_if_stalled(self, waiting_bytes: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < waiting_bytes:
            self._look_later(left)
        else:
            # Closing would wait until the caller has taken the rest.
            self.transport.abort()
