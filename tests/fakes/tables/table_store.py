"""A dict in place of the store of a Faust table."""

from collections.abc import Collection, Iterator

import pytest

from streams.runtime.awaited_table import AwaitableTable


class NoChangelogs:
    """Commits of tables without changelogs, which have nothing to do."""

    def write(self, *_row: object) -> None:
        """Do nothing."""

    async def commit(self, _partitions: Collection[int]) -> None:
        """Do nothing."""


class DictStore(dict[bytes, bytes]):
    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:  # type: ignore[override]
        return (key for key in sorted(super().keys()) if key.startswith(prefix))

    def put(self, key: bytes, value: bytes) -> None:
        self[key] = value

    def delete(self, key: bytes) -> None:
        self.pop(key, None)

    def rows(self, _partition: int) -> "DictStore":
        return self


def dict_store(table: AwaitableTable, monkeypatch: pytest.MonkeyPatch) -> DictStore:
    """Replace the store of a table by a dict, and return it; nothing is written to a changelog."""
    store, table_type = DictStore(), type(table)
    monkeypatch.setattr(table_type, "data", property(lambda _: store), raising=False)
    monkeypatch.setattr(table_type, "_commits", NoChangelogs())
    monkeypatch.setattr(table_type, "values", lambda _: store.values())
    monkeypatch.setattr(table_type, "items", lambda _: store.items())
    return store
