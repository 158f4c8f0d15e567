"""The topic `service` in memory."""

from collections.abc import Callable

from schemas.internal.successor import Successor


class FakeServiceLog:
    """Implements `streams.bootstrap.service_guard.ServiceLog`.

    `written` is the log. `before_write` is called before each write, to let another worker write first.
    """

    def __init__(self) -> None:
        self.topic = "memory.service"
        self.written: list[bytes] = []
        self.replaced_by: Successor | None = None
        self.before_write: Callable[[], None] = lambda: None

    async def values(self) -> list[bytes]:
        """Return all values."""
        return [*self.written]

    async def write(self, value: bytes) -> None:
        """Append a value."""
        self.before_write()
        self.written.append(value)

    async def successor(self) -> Successor | None:
        """Return the given successor."""
        return self.replaced_by
