"""A dict in place of the RocksDB store of a Faust table."""

from collections.abc import Iterator

import faust
import pytest

from streams.runtime.awaited_table import AwaitableTable


class DictStore(dict[bytes, bytes]):
    """The store of every partition of one table."""

    def keys(self, from_key: bytes = b"") -> Iterator[bytes]:  # type: ignore[override]
        """Yield the keys from one on, in RocksDB's order."""
        return (key for key in sorted(super().keys()) if key >= from_key)

    def _db_for_partition(self, _partition: int) -> "DictStore":
        return self


def dict_store(table: AwaitableTable, monkeypatch: pytest.MonkeyPatch) -> DictStore:
    """Replace the RocksDB store of a table by a dict, and return it."""
    store, table_type = DictStore(), type(table)
    monkeypatch.setattr(table_type, "data", property(lambda _: store), raising=False)
    monkeypatch.setattr(faust.Table, "__setitem__", lambda _, key, value: store.__setitem__(key, value))
    monkeypatch.setattr(table_type, "__delitem__", lambda _, key: store.__delitem__(key))
    monkeypatch.setattr(table_type, "values", lambda _: store.values())
    monkeypatch.setattr(table_type, "items", lambda _: store.items())
    return store
