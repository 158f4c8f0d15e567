"""The Python client of modestream: `MemoryClient` over Kafka, `HttpMemoryClient` over the gateway, results and errors.

Names are imported at their first use: a program that needs only the models of the wire, or HTTP, loads no Kafka client.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modestream_client.answers import Answer, Answered, Context, Notice, Page, Remembered, Reply, Uploaded
    from modestream_client.calls import MemoryCalls
    from modestream_client.failures import (
        MemoryClientError,
        MemoryClosed,
        MemoryOutboxFull,
        MemoryServiceError,
        MemoryTimeout,
        MemoryUnreachable,
    )
    from modestream_client.hits import ListedConversation, ListedMemory, ListedProject, WholeMemory
    from modestream_client.http.client import HttpMemoryClient, SyncHttpMemoryClient
    from modestream_client.kafka.client import MemoryClient, SyncMemoryClient
    from modestream_client.kafka.security import KafkaSecurity
    from modestream_client.records import Written
    from modestream_client.results import DeclaredModes, MemoryMap, ShownMode
    from modestream_client.runs import Run, RunList
    from modestream_client.transport import OWN_WRITES, Transport

_MODULES = {
    "answers": ("Answer", "Answered", "Context", "Notice", "Page", "Remembered", "Reply", "Uploaded"),
    "calls": ("MemoryCalls",),
    "failures": (
        "MemoryClientError",
        "MemoryClosed",
        "MemoryOutboxFull",
        "MemoryServiceError",
        "MemoryTimeout",
        "MemoryUnreachable",
    ),
    "hits": ("ListedConversation", "ListedMemory", "ListedProject", "WholeMemory"),
    "http.client": ("HttpMemoryClient", "SyncHttpMemoryClient"),
    "kafka.security": ("KafkaSecurity",),
    "kafka.client": ("MemoryClient", "SyncMemoryClient"),
    "records": ("Written",),
    "results": ("DeclaredModes", "MemoryMap", "ShownMode"),
    "runs": ("Run", "RunList"),
    "transport": ("OWN_WRITES", "Transport"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "OWN_WRITES",
    "Answer",
    "Answered",
    "Context",
    "DeclaredModes",
    "HttpMemoryClient",
    "KafkaSecurity",
    "ListedConversation",
    "ListedMemory",
    "ListedProject",
    "MemoryCalls",
    "MemoryClient",
    "MemoryClientError",
    "MemoryClosed",
    "MemoryMap",
    "MemoryOutboxFull",
    "MemoryServiceError",
    "MemoryTimeout",
    "MemoryUnreachable",
    "Notice",
    "Page",
    "Remembered",
    "Reply",
    "Run",
    "RunList",
    "ShownMode",
    "SyncHttpMemoryClient",
    "SyncMemoryClient",
    "Transport",
    "Uploaded",
    "WholeMemory",
    "Written",
]


def __getattr__(name: str) -> object:
    """Import the module of a public name."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_MODULE_OF[name]}")
    except ModuleNotFoundError as missing:
        if missing.name != "httpx":
            raise
        message = f"{name} needs httpx: pip install 'modestream-client[http]'"
        raise ModuleNotFoundError(message, name="httpx") from missing
    return getattr(module, name)
