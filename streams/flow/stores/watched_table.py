"""A table that tells of its writes."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from streams.flow.stores.tables import Table

Key = TypeVar("Key")
Value = TypeVar("Value")


class WatchedTable(Generic[Key, Value]):
    """Implements `Table` over another one; `on_put` is called with partition and key after each write."""

    def __init__(self, table: Table[Key, Value], on_put: Callable[[int, Key], None]) -> None:
        self._table = table
        self._on_put = on_put

    def get(self, partition: int, key: Key) -> Value:
        """Return the value."""
        return self._table.get(partition, key)

    def put(self, partition: int, key: Key, value: Value) -> None:
        """Write a value, and tell of it."""
        self._table.put(partition, key, value)
        self._on_put(partition, key)

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return the changelog writes since the last call."""
        return self._table.pending_writes()
