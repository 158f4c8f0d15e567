"""A table of values as JSON that a person can read on its changelog, under strings made of keys.

`modes`, `jobs` (when each boundary's modes were last gone through), `issued` (the last changes that its commands have
asked for) and `consolidations` (the last runs of each scope) are such tables, and no more. Values are frozen: what is
read twice may be the same object.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import faust
from pydantic import BaseModel

from streams.runtime.awaited_table import AwaitableTable, drain_pending_writes, read_stored
from streams.tables.parsed_values import ParsedValueCache

Key = TypeVar("Key")
Value = TypeVar("Value", bound=BaseModel)


class JsonTable(Generic[Key, Value]):
    """Values of one model by partition and key. Writes belong to the handling of an event of the partition."""

    def __init__(
        self, app: faust.App, name: str, model: type[Value], key: Callable[[Key], str], *, parsed: int = 1
    ) -> None:
        """Take the table's name, the model whose defaults stand for what is not there, and how keys are written.

        So many values are kept `parsed`.
        """
        self.table = AwaitableTable(app, name=name, key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._nothing = model()
        self._parsed = ParsedValueCache(model.model_validate_json, parsed)
        self._key = key

    def get(self, partition: int, key: Key) -> Value:
        """What is kept, or what the model is by default."""
        value = read_stored(self.table, partition, self._key(key))
        return self._nothing if value is None else self._parsed[value]

    def put(self, _partition: int, key: Key, value: Value) -> None:
        """Write a value over the one before."""
        self.table[self._key(key).encode()] = value.model_dump_json(by_alias=True).encode()

    def pending_writes(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return drain_pending_writes(self.table)
