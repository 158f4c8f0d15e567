"""The Python client of modestream: `MemoryClient` over Kafka, its results and its errors.

Names are imported at their first use: a program that needs only the models of the wire loads no Kafka client.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modestream_client.answers import Answer, Notice, Remembered, Reply
    from modestream_client.contexts import Context
    from modestream_client.failures import (
        MemoryClientError,
        MemoryClosed,
        MemoryServiceError,
        MemoryTimeout,
        MemoryUnreachable,
    )
    from modestream_client.memory_client import MemoryClient
    from modestream_client.modes import DeclaredModes, ShownMode
    from modestream_client.offsets import Written
    from modestream_client.session import OWN_WRITES

_MODULES = {
    "answers": ("Answer", "Notice", "Remembered", "Reply"),
    "contexts": ("Context",),
    "failures": ("MemoryClientError", "MemoryClosed", "MemoryServiceError", "MemoryTimeout", "MemoryUnreachable"),
    "memory_client": ("MemoryClient",),
    "modes": ("DeclaredModes", "ShownMode"),
    "offsets": ("Written",),
    "session": ("OWN_WRITES",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str) -> object:
    """Import the module of a public name."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
