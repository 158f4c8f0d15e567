"""The table `intentions`: what somebody is after in each scope, as JSON under the scope's values.

The key is `user/project`, each percent-encoded for `%` and `/`. Its changelog is for reading, too.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import faust

from schemas.intention import Intention
from schemas.scopes import Scope, boundary_key
from streams.tables import AwaitedTable, stored, unwritten

NOTHING = Intention()
"""What a scope has that nothing is known of."""

PARSED = 1024
"""Intentions that are kept parsed: some ten megabytes. One that is full takes a millisecond to read."""


class IntentionTable:
    """Implements `agents.intention_port.StoredIntentions`. Writes belong to the handling of an event."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="intentions", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._parsed: dict[bytes, Intention] = {}

    def get(self, partition: int, scope: Mapping[str, str]) -> Intention:
        """The intention of a scope; an empty one for a scope that has none."""
        value = stored(self.table, partition, scope_key(scope))
        return NOTHING if value is None else self._read(value)

    def put(self, _partition: int, scope: Mapping[str, str], intention: Intention) -> None:
        """Write an intention over the one before."""
        self.table[scope_key(scope).encode()] = intention.model_dump_json(exclude_defaults=True).encode()

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        """The scopes of a boundary that have an intention: their keys stand beside each other in the store."""
        first, store = f"{boundary}/".encode(), _store(self.table, partition)
        found = []
        for key in store.keys(from_key=first):
            if not key.startswith(first):
                break
            found.append(scope_of(key.decode()))
        return found

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)

    def _read(self, value: bytes) -> Intention:
        if value not in self._parsed:
            if len(self._parsed) >= PARSED:
                self._parsed.clear()
            self._parsed[value] = Intention.model_validate_json(value)
        return self._parsed[value]


def scope_key(scope: Mapping[str, str]) -> str:
    """The canonical string of a scope's values, such as `u1/default`."""
    return boundary_key(Scope.model_validate(dict(scope)).model_dump().values())


def scope_of(key: str) -> dict[str, str]:
    """The scope with this canonical string."""
    return dict(zip(Scope.model_fields, map(unquote, key.split("/")), strict=True))


def _store(table: AwaitedTable, partition: int) -> Any:
    stores: Any = table.data
    return stores._db_for_partition(partition)  # noqa: SLF001
