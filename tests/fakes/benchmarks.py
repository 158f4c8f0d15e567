"""Stand-ins of two benchmarks: the parts of their packages that a provider imports, with their published signatures."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import requests

T = TypeVar("T")
Json = dict[str, Any]


@dataclass
class Document:
    """Of `memory_bench.models`."""

    id: str
    content: str
    user_id: str | None = None
    messages: list[Json] | None = None
    timestamp: str | None = None
    context: str | None = None


class MemoryProvider(ABC):
    """Of `memory_bench.memory.base`."""

    name: str
    description: str
    kind: str
    concurrency: int = 4

    def initialize(self) -> None:  # noqa: B027 - of the interface
        pass

    def cleanup(self) -> None:  # noqa: B027 - of the interface
        pass

    def prepare(self, store_dir: Path, unit_ids: set[str] | None = None, reset: bool = True) -> None:  # noqa: B027
        pass

    @abstractmethod
    def ingest(self, documents: list[Document]) -> None: ...

    @abstractmethod
    def retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Document], Json | None]: ...


class BaseApiClient:
    """Of `client_factory.base_client`, without its limits and repetitions."""

    def __init__(
        self, base_url: str, headers: dict[str, str], qps: float | None = None, timeout: int | None = None
    ) -> None:
        self._base_url = base_url
        self._session = requests.Session()
        self._session.headers.update(headers)
        self._session.trust_env = False

    def _post(self, path: str, **kwargs: Any) -> requests.Response:
        return self._session.post(self._base_url + path, timeout=60, **kwargs)

    def _get(self, path: str, **kwargs: Any) -> requests.Response:
        return self._session.get(self._base_url + path, timeout=60, **kwargs)

    def _delete(self, path: str, **kwargs: Any) -> requests.Response:
        return self._session.delete(self._base_url + path, timeout=60, **kwargs)

    def _retry(self, fn: Callable[[], T], max_retries: int | None = None) -> T:
        return fn()


def env_str(name: str, default: str | None = None, *, strip: bool = True) -> str | None:
    return os.getenv(name, default)


def iter_batches(items: list[T], batch_size: int = 20, max_chars: int = 0) -> Iterator[list[T]]:
    yield from (items[start : start + batch_size] for start in range(0, len(items), batch_size))


PACKAGES: dict[str, dict[str, Any]] = {
    "memory_bench": {},
    "memory_bench.models": {"Document": Document},
    "memory_bench.memory": {},
    "memory_bench.memory.base": {"MemoryProvider": MemoryProvider},
    "client_factory": {},
    "client_factory.base_client": {"BaseApiClient": BaseApiClient, "env_str": env_str, "iter_batches": iter_batches},
}


def install() -> None:
    """Let this process import the stand-ins by the names of the packages."""
    for name, members in PACKAGES.items():
        module = ModuleType(name)
        vars(module).update(members)
        sys.modules.setdefault(name, module)
