"""The client's errors. Callers catch `MemoryClientError` or a subclass.

MemoryClientError
├── MemoryServiceError   the service answered with an error: `code`, `message`, `field`
├── MemoryTimeout        no answer in time (also a `TimeoutError`); the message says what to check
├── MemoryUnreachable    Kafka can't be reached, or refused the record
├── MemoryClosed         the client is not open, or was closed while the call waited
└── MemoryOutboxFull     the outbox has no room for a turn, which is stored nowhere
"""


class MemoryClientError(Exception):
    """A call of the client failed."""


class MemoryServiceError(MemoryClientError):
    """The service refused or failed the request; `code` is an error code of `docs/contract.md`."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(f"{code}: {message}" + (f" (field {field})" if field else ""))
        self.code = code
        self.message = message
        self.field = field


class MemoryTimeout(MemoryClientError, TimeoutError):
    """No answer in time. The request may still take effect; a retry is safe.

    `is_written`: the service has the request, as far as is known; without it the way to the service is at fault.
    """

    def __init__(self, message: str, *, is_written: bool = True) -> None:
        super().__init__(message)
        self.is_written = is_written


class MemoryUnreachable(MemoryClientError):
    """Kafka can't be reached, lacks a topic, or refused the record; `__cause__` is the original error."""


class MemoryClosed(MemoryClientError):
    """The client is not open: calls belong inside its `async with` block."""


class MemoryOutboxFull(MemoryClientError):
    """The outbox has no room: the turn is stored nowhere."""
