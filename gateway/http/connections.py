"""Bounds on connections, which the HTTP library leaves open.

Enters: bytes of a socket. Guaranteed: a request line with its header fields has bounded bytes, fields and time; a
caller that stops reading holds no answer for longer than a minute; connections are bounded, by address and in total,
and a new one replaces one that waits for its caller; spaces around the value of a header field are not part of it (RFC
9110, 5.5).
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.http.limits import Limits, busy
from gateway.http.problems import problem
from gateway.service.calls import Refused
from gateway.service.meters import Meters

STALLED_S = 30.0
"""Seconds in which a caller must take a byte of its answer. A stream sends something every 15 s."""

LINGER_S = 1.0
"""Seconds in which a refused caller's bytes are dropped: if closed at once, it would not get its answer."""

PIECE_BYTES = 64 * 1024
"""Bytes given to the parser at once: it scans an unfinished field again after each piece."""


class Connections:
    """The connections of this process: their number, origins, and which of them wait for their callers."""

    def __init__(
        self, limits: Limits | None = None, meters: Meters | None = None, trusted_proxies: Sequence[str] = ()
    ) -> None:
        """`trusted_proxies` are addresses and networks; their connections serve many callers, bounded only in total."""
        self.limits = limits or Limits()
        self.meters = meters or Meters()
        self.trusted_proxies = trusted_proxies
        self._trusted = [ip_network(network) for network in trusted_proxies]
        self._count = 0
        self._by_address: Counter[str] = Counter()
        self._waiting: dict[Connection, None] = {}
        """Connections that wait for bytes of their callers, the longest waiting first."""
        self._waiting_of: dict[str, dict[Connection, None]] = {}

    def admit(self, connection: "Connection") -> bool:
        """Count a new connection; at the limit, end a waiting one to make room. False if none waits."""
        address = connection.address
        is_full = self._by_address[address] >= self.limits.connections_per_address
        if is_full and not any(ip_address(address) in network for network in self._trusted):
            waiting = self._waiting_of.get(address, {})
        elif self._count >= self.limits.connections:
            waiting = self._waiting
        else:
            waiting = None
        self._count += 1
        self._by_address[address] += 1
        if waiting is None:
            return True
        # Those that have not taken their answer yet come last.
        longest = next((other for other in waiting if not other.is_owed), next(iter(waiting), None))
        if longest is None:
            return False
        self.meters.limited.labels("connections_closed").inc()
        longest.give_way()
        return True

    def wait(self, connection: "Connection") -> None:
        """Note that a connection waits for its caller from now on."""
        self.work(connection)
        self._waiting[connection] = None
        self._waiting_of.setdefault(connection.address, {})[connection] = None

    def work(self, connection: "Connection") -> None:
        """Note that a request of a connection is being handled, or that it has ended."""
        self._waiting.pop(connection, None)
        if (of_address := self._waiting_of.get(connection.address)) is not None:
            of_address.pop(connection, None)
            if not of_address:
                del self._waiting_of[connection.address]

    def drop(self, connection: "Connection") -> None:
        self.work(connection)
        self._count -= 1
        self._by_address[connection.address] -= 1
        if not self._by_address[connection.address]:
            del self._by_address[connection.address]


class Connection(HttpToolsProtocol):
    """The library's protocol, with ends for callers that send without end, slowly, or freeze."""

    stalled_s = STALLED_S
    _stall_timer: asyncio.TimerHandle | None = None
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *, connections: Connections, **how: Any) -> None:
        super().__init__(**how)
        self.address = ""
        self._connections = connections
        self._limits = connections.limits
        self._part: Literal["between", "head", "body"] = "between"
        self._head_bytes = self._fields = self._silent_bytes = 0
        self._has_progress = False
        self._is_counted = False
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for a request; a connection beyond the bounds ends."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self.address = self.client[0] if self.client else ""
        self._is_counted = True
        if self._connections.admit(self):
            self._connections.wait(self)
            self._begin_deadline()
        else:
            self._refuse(busy(self._connections.meters, "connections"), 503)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):
            if self._is_refused or self.transport.is_closing():
                return
            piece = data if len(data) <= PIECE_BYTES else data[start : start + PIECE_BYTES]
            self._has_progress = False
            super().data_received(piece)
            self._silent_bytes = 0 if self._has_progress else self._silent_bytes + len(piece)
            if self._silent_bytes > self._limits.header_bytes and not self._is_refused:
                # Of one field, or of invalid input.
                self._refuse_head()
        if not self._is_refused and not self.transport.is_closing():
            self._update_deadline()

    def on_message_begin(self) -> None:
        self._part, self._head_bytes, self._fields, self._has_progress = "head", 0, 0, True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the request line. Raises _HeadTooLarge."""
        self._count_head(len(url), 0)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header field, or one after a body. Raises _HeadTooLarge."""
        self._count_head(len(name) + len(value), 1)
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        self._part = "body"
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body; a caller that sends is the last to be closed."""
        self._has_progress = True
        self._connections.wait(self)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._part = "between"
        if not self.cycle.response_complete:
            self._connections.work(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End an answer; without a next request, wait for one, or for the rest of the body."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._connections.wait(self)
            self._update_deadline()

    def send_400_response(self, msg: str) -> None:
        if self._head_bytes > self._limits.header_bytes or self._fields > self._limits.header_fields:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    @property
    def is_owed(self) -> bool:
        """True if its caller has not read all of a response."""
        return self.transport.get_write_buffer_size() > 0

    def give_way(self) -> None:
        """End at once, for another connection."""
        self._drop_once()
        self.transport.abort()

    def pause_writing(self) -> None:
        """Watch whether the caller reads the buffer; nothing more is written meanwhile."""
        super().pause_writing()
        self._start_stall_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._stop_stall_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; unsent data is dropped."""
        self._stop_stall_timer()
        self._end_deadline()
        self._drop_once()
        super().connection_lost(exc)

    def _count_head(self, size: int, fields: int) -> None:
        self._has_progress = True
        self._head_bytes += size
        self._fields += fields
        if self._head_bytes > self._limits.header_bytes or self._fields > self._limits.header_fields:
            raise _HeadTooLarge

    def _update_deadline(self) -> None:
        """Limit the time of waiting for bytes: of a head, of the rest of an answered body, of a request."""
        is_answered = self.cycle is None or self.cycle.response_complete
        # A head behind a request that is being answered waits for the end of its answer.
        if is_answered and self._part != "between":
            if self._deadline is None:
                self._begin_deadline()
            return
        self._end_deadline()
        if is_answered and self.timeout_keep_alive_task is None:
            # The library stops its own timer at every byte, and does not restart it after bytes of no request.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _begin_deadline(self) -> None:
        self._deadline = self.loop.call_later(self._limits.header_seconds, self._end_late)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_late(self) -> None:
        self._deadline = None
        self._connections.meters.limited.labels("header_seconds").inc()
        if self._part == "head":
            self._refuse(Refused("timeout", "the header fields of this request did not come in time"), 408)
        else:
            self.transport.close()

    def _refuse_head(self) -> None:
        self._connections.meters.limited.labels("header_bytes").inc()
        most = f"{self._limits.header_bytes} bytes and {self._limits.header_fields} header fields"
        self._refuse(Refused("too_large", f"a request line and its header fields have at most {most}"), 431)

    def _refuse(self, refused: Refused, status: int) -> None:
        """Answer with a problem and end; just end while another answer is being sent."""
        self._is_refused = True
        self._end_deadline()
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()
            return
        answer = problem(refused, secrets.token_hex(8), status)
        head = [STATUS_LINE[status], *(b"%s: %s\r\n" % field for field in answer.raw_headers)]
        self.transport.write(b"".join([*head, b"connection: close\r\n\r\n", bytes(answer.body)]))
        self.transport.write_eof()
        self._deadline = self.loop.call_later(LINGER_S, self.transport.close)

    def _drop_once(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._connections.drop(self)

    def _start_stall_timer(self, waiting_bytes: int) -> None:
        self._stall_timer = self.loop.call_later(self.stalled_s, self._abort_if_stalled, waiting_bytes)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _abort_if_stalled(self, waiting_bytes: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < waiting_bytes:
            self._start_stall_timer(left)
        else:
            # Closing would wait until the caller has read the rest.
            self.transport.abort()


class _HeadTooLarge(Exception):
    """Ends the parser; the library then calls `send_400_response`."""
