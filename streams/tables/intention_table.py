"""The table `intentions`: what somebody is after in each scope, as JSON under the scope's values.

The key is `user/project`, each percent-encoded for `%` and `/`; further fields of a deployment's scope model follow as
`name=value`, by name. Its changelog is for reading, too.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import faust

from schemas.intention import Intention
from schemas.scopes import BOUNDARY_FIELD, PROJECT_FIELD, boundary_key
from streams.runtime.awaited_table import AwaitableTable, drain_pending_writes, read_stored

BASE_SCOPE_FIELDS = (BOUNDARY_FIELD, PROJECT_FIELD)
"""The fields that every scope has, in the order of the key."""

EMPTY_INTENTION = Intention()
"""What a scope has that nothing is known of."""

MAX_PARSED_INTENTIONS = 128
"""Intentions that are kept parsed, of those scopes that were last heard of: a full one is 66 kB and 2 ms of reading."""


class IntentionTable:
    """Implements `agents.ports.intentions.StoredIntentions`. Writes belong to the handling of an event."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitableTable(app, name="intentions", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._parsed: dict[str, tuple[bytes, Intention]] = {}

    def get(self, partition: int, scope: Mapping[str, str]) -> Intention:
        """The intention of a scope; an empty one for a scope that has none."""
        key = scope_key(scope)
        value = read_stored(self.table, partition, key)
        if value is None:
            return EMPTY_INTENTION
        known = self._parsed.get(key)
        # The store is asked all the same: the partition may have been somewhere else meanwhile.
        return known[1] if known and known[0] == value else self._keep(key, value, Intention.model_validate_json(value))

    def put(self, _partition: int, scope: Mapping[str, str], intention: Intention) -> None:
        """Write an intention over the one before."""
        key, value = scope_key(scope), intention.model_dump_json(exclude_defaults=True).encode()
        self.table[key.encode()] = value
        self._keep(key, value, intention)

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        """The scopes of a boundary that have an intention: their keys stand beside each other in the store."""
        first, store = f"{boundary}/".encode(), _store(self.table, partition)
        found = []
        for key in store.keys(from_key=first):
            if not key.startswith(first):
                break
            found.append(scope_from_key(key.decode()))
        return found

    def pending_writes(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return drain_pending_writes(self.table)

    def _keep(self, key: str, value: bytes, intention: Intention) -> Intention:
        self._parsed.pop(key, None)
        if len(self._parsed) >= MAX_PARSED_INTENTIONS:
            del self._parsed[next(iter(self._parsed))]
        self._parsed[key] = value, intention
        return intention


def scope_key(scope: Mapping[str, str]) -> str:
    """The canonical string of a scope's values, such as `u1/default`."""
    further = [f"{name}={scope[name]}" for name in sorted(scope) if name not in BASE_SCOPE_FIELDS]
    return boundary_key([*(scope[name] for name in BASE_SCOPE_FIELDS), *further])


def scope_from_key(key: str) -> dict[str, str]:
    """The scope with this canonical string."""
    values = [unquote(value) for value in key.split("/")]
    further = (value.partition("=") for value in values[len(BASE_SCOPE_FIELDS) :])
    return dict(zip(BASE_SCOPE_FIELDS, values, strict=False)) | {name: value for name, _, value in further}


def _store(table: AwaitableTable, partition: int) -> Any:
    stores: Any = table.data
    return stores._db_for_partition(partition)  # noqa: SLF001
