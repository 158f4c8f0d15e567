"""`python -m bench.harness.gateway_flood_loads NAME URL KEY`: floods of the gateway's socket until it is killed.

All come from one address, some with the key of one user, as fast as the gateway takes them.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

FLOODER = "alice"
"""The user of the key that floods."""

FLOODER_ADDRESS = "127.0.0.3"

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """The gateway, and the key of the user that floods."""

    host: str
    port: int
    key: str

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection from the flooder's address."""
        return await asyncio.open_connection(self.host, self.port, local_addr=(FLOODER_ADDRESS, 0))

    def head(self, method: str, path: str, *fields: str, with_key: bool = True) -> bytes:
        """Return a request line and header fields, without the empty line."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}", *fields]
        lines += [f"X-API-Key: {self.key}"] if with_key else []
        return "".join(f"{line}\r\n" for line in lines).encode()


GatewayFlood = Callable[[Target], Coroutine[Any, Any, None]]
"""Sends without an end."""


async def _again(send: Callable[[], Awaitable[None]], at_once: int) -> None:
    """Send so often at once, again and again, whatever the gateway does with it."""

    async def repeat() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await send()
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(repeat())


def _endless(begin: bytes, more: bytes) -> GatewayFlood:
    """A head without an end: `more` again and again, on one connection at a time."""

    async def flood(target: Target) -> None:
        async def send() -> None:
            _, writer = await target.connect()
            try:
                writer.write(begin)
                while not writer.transport.is_closing():
                    writer.write(more)
                    await writer.drain()
            finally:
                writer.transport.abort()

        await _again(send, 1)

    return flood


def _held(count: int, sent: Callable[[Target], bytes]) -> GatewayFlood:
    """So many connections that send something and then nothing, opened again as soon as they end."""

    async def flood(target: Target) -> None:
        async def send() -> None:
            reader, writer = await target.connect()
            try:
                writer.write(sent(target))
                while await reader.read(MIB):
                    pass
            finally:
                writer.transport.abort()

        await _again(send, count)

    return flood


def _asked(at_once: int, request: Callable[[Target], bytes]) -> GatewayFlood:
    """Whole requests on connections of their own, each after the answer to the one before."""

    async def flood(target: Target) -> None:
        async def send() -> None:
            reader, writer = await target.connect()
            try:
                writer.write(request(target))
                await reader.readuntil(b"\r\n\r\n")
            finally:
                writer.transport.abort()

        await _again(send, at_once)

    return flood


def _unfinished(path: str, sent: int, *, with_key: bool) -> Callable[[Target], bytes]:
    """A body of which all that is announced comes but the last byte."""

    def request(target: Target) -> bytes:
        return target.head("POST", path, f"Content-Length: {sent + 1}", with_key=with_key) + b"\r\n" + b" " * sent

    return request


def _search(body: bytes) -> Callable[[Target], bytes]:
    def request(target: Target) -> bytes:
        head = target.head("POST", f"/v1/users/{FLOODER}/memories/search", f"Content-Length: {len(body)}")
        return head + b"\r\n" + body

    return request


def _missing_memory(target: Target) -> bytes:
    return target.head("GET", f"/v1/users/{FLOODER}/memories/missing", "Prefer: wait=60") + b"\r\n"


def _live(target: Target) -> bytes:
    return target.head("GET", "/live", with_key=False)


LIVE = b"GET /live HTTP/1.1\r\nHost: localhost\r\n"
TURNS = f"/v1/users/{FLOODER}/turns"
FIELDS = b'{"query":"q",' + b",".join(b'"x%d":0' % number for number in range(1_100_000)) + b"}"
LISTS = b'{"query":"q","filters":{"metadata":{"a":[' + b",".join([b"[]"] * 95_000) + b"]}}}"

GATEWAY_FLOODS: dict[str, GatewayFlood] = {
    "header fields": _endless(LIVE, b"X-Many: field\r\n" * 1_000),
    "header value": _endless(LIVE + b"X-Long: ", b"v" * 65_536),
    "url": _endless(b"GET /live?", b"u" * 65_536),
    "idle connections": _held(1_100, _live),
    "half bodies": _held(262, _unfinished(TURNS, 1_000, with_key=True)),
    "large half bodies": _held(80, _unfinished(TURNS, 15 * MIB, with_key=True)),
    "sign-in bodies": _held(80, _unfinished("/admin/sign-in", 15 * MIB, with_key=False)),
    "unknown fields": _asked(1, _search(FIELDS)),
    "small values": _asked(1, _search(LISTS)),
    "missing memories": _asked(20, _missing_memory),
}
"""The floods of a hostile caller, by name."""


def main() -> None:
    """Flood."""
    name, url, key = sys.argv[1:]
    host, _, port = url.removeprefix("http://").rpartition(":")
    asyncio.run(GATEWAY_FLOODS[name](Target(host, int(port), key)))


if __name__ == "__main__":
    main()
