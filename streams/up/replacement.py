"""A replacement of a child: loads its program before the child ends, and starts when it has ended.

Loading takes most of a worker's start. The replacement's standard input is a socket: it sends a byte when it has
loaded, and gets a byte when it may start. Guaranteed: it ends when its supervisor does, before it has started.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from streams.up.child import Child
from streams.up.layout import Layout

REPLACEMENT_VARIABLE = "STREAMS_UP_STANDBY"
"""Environment variable of a replacement. The name stays: an older supervisor starts newer workers."""

LOADED, BEGIN = b"l", b"b"

LOAD_TIMEOUT_S = 60.0
"""Time limit of loading; after that the child is started normally once the former one has ended."""


def wait_for_begin() -> None:
    """In a replacement, report that all is loaded, and wait for the start. In any other process, return at once."""
    if os.environ.pop(REPLACEMENT_VARIABLE, None) is None:
        return
    with socket.socket(fileno=os.dup(0)) as supervisor:
        supervisor.sendall(LOADED)
        if supervisor.recv(1) != BEGIN:
            sys.exit(0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)


class Replacement:
    """The supervisor's handle of a replacement."""

    def __init__(self, child: Child, connection: socket.socket) -> None:
        self._child = child
        self._connection = connection

    @classmethod
    async def start(cls, layout: Layout, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Start the replacement of a child of this name. Raises OSError."""
        own, its = socket.socketpair()
        own.setblocking(False)  # noqa: FBT003 - the standard library takes no keyword
        with its:
            child = await Child.start(
                layout,
                name,
                command,
                {**environment, REPLACEMENT_VARIABLE: "1"},
                stdin=its.fileno(),
                is_replacement=True,
            )
        return cls(child, own)

    async def is_loaded(self) -> bool:
        """Wait until it is loaded; False if it ends before, or takes too long."""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                return await asyncio.get_running_loop().sock_recv(self._connection, 1) == LOADED
        return False

    def begin(self) -> Child:
        """Let it start in place of the former child, which has ended."""
        self._child.succeed()
        with suppress(OSError):
            self._connection.send(BEGIN)
        self._connection.close()
        return self._child

    async def end(self) -> None:
        """End it before it has started."""
        self._connection.close()
        self._child.kill()
        await self._child.wait()
