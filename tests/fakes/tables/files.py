"""The table `files` over a dict."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, cast

from streams.tables.memory_tables import FileTable


class FakeRows:
    def __init__(self) -> None:
        self._rows: defaultdict[int, dict[str, bytes]] = defaultdict(dict)

    def read(self, partition: int, key: str) -> bytes | None:
        return self._rows[partition].get(key)

    def write(self, partition: int, key: str, value: bytes) -> None:
        self._rows[partition][key] = value

    def delete(self, partition: int, key: str) -> None:
        self._rows[partition].pop(key, None)

    def keys_under(self, partition: int, prefix: str) -> Iterator[str]:
        return iter([key for key in sorted(self._rows[partition]) if key.startswith(prefix)])


class FakeFiles(FileTable):
    def __init__(self) -> None:
        self._table = cast("Any", FakeRows())
        self.due = asyncio.Event()
