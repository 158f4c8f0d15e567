"""The Python client: `MemoryClient`, its results and its errors. Knows schemas and topics, nothing of the worker."""

from streams.client.answers import Answer, Notice, Remembered, Reply
from streams.client.contexts import Context
from streams.client.failures import (
    MemoryClientError,
    MemoryClosed,
    MemoryServiceError,
    MemoryTimeout,
    MemoryUnreachable,
)
from streams.client.memory_client import MemoryClient
from streams.client.modes import DeclaredModes, ShownMode
from streams.client.requests import Written
from streams.client.session import OWN_WRITES

__all__ = [
    "OWN_WRITES",
    "Answer",
    "Context",
    "DeclaredModes",
    "MemoryClient",
    "MemoryClientError",
    "MemoryClosed",
    "MemoryServiceError",
    "MemoryTimeout",
    "MemoryUnreachable",
    "Notice",
    "Remembered",
    "Reply",
    "ShownMode",
    "Written",
]
