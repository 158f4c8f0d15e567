"""Tables of JSON values that a person can read on the changelog.

`modes`, `jobs` (last backfill by boundary) and `issued` (last changes that commands of a boundary have requested) are
plain `JsonTable`s, `consolidations` (last runs by scope) is a `ScopeTable`, `interactions` has one row a partition,
and `intentions` the goals, constraints, decisions and errors of each scope. Values are frozen: two reads may return the
same object.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields, boundary_key
from pydantic import BaseModel

from agents.rules.categories.taxonomy import merge_deployment_categories
from schemas.messages.published import ReceiptRow
from schemas.scopes import PROJECT_FIELD
from schemas.state.categories import Taxonomy
from schemas.state.intention import Intention
from schemas.state.interaction import InteractionCounts
from schemas.state.memories import Claim
from schemas.state.modes import UsageHistory
from streams.runtime.awaited_table import create_table
from streams.runtime.kafka_app import App

Parsed = TypeVar("Parsed")

MAX_PARSED_BYTES = 4 * 1024 * 1024
"""Serialised bytes of all cached values of a table. Parsed, usual ones take 6 to 7 times as much (measured: modes of
1,191 bytes 6,988, memories of 902 bytes 6,488), so a full cache has some 30 MB."""


class ParsedValueCache(dict[bytes, Parsed]):
    """`cache[value]` parses what is not cached yet. Callers must not change the result.

    A dict subclass, so that a lookup is one call: a query makes a thousand.
    """

    def __init__(
        self, parse: Callable[[bytes], Parsed], max_values: int, max_value_bytes: int = MAX_PARSED_BYTES
    ) -> None:
        """Cache at most `max_values` values, each of at most `max_value_bytes`."""
        super().__init__()
        self._parse = parse
        self._max_values = max_values
        self._max_value_bytes = max_value_bytes
        self._bytes = 0

    def __missing__(self, value: bytes) -> Parsed:
        parsed = self._parse(value)
        self.add(value, parsed)
        return parsed

    def add(self, value: bytes, parsed: Parsed) -> None:
        """Cache a parsed value; a full cache is emptied first."""
        if value not in self and len(value) <= self._max_value_bytes:
            if len(self) >= self._max_values or self._bytes + len(value) > MAX_PARSED_BYTES:
                self.clear()
                self._bytes = 0
            self[value] = parsed
            self._bytes += len(value)


MAX_PARSED_COUNTS = 64
"""Rows that are cached parsed, as every classified turn and every context reads them."""


class InteractionTable:
    """Counts of interaction modes by partition. Writes belong to the handling of an event of the partition."""

    def __init__(self, app: App) -> None:
        self._rows: JsonTable[int, InteractionCounts] = JsonTable(
            app, "interactions", InteractionCounts, key=str, max_parsed=MAX_PARSED_COUNTS
        )

    def get(self, partition: int) -> InteractionCounts:
        return self._rows.get(partition, partition)

    def put(self, partition: int, counts: InteractionCounts) -> None:
        self._rows.put(partition, partition, counts)


MAX_PARSED_MODES = 4096
"""Mode declarations that are cached parsed, as every event reads them: a few megabytes."""

Key = TypeVar("Key")

Value = TypeVar("Value", bound=BaseModel)


class JsonTable(Generic[Key, Value]):
    """Values of one model by partition and key. Writes belong to the handling of an event of the partition."""

    def __init__(
        self,
        app: App,
        name: str,
        model: type[Value],
        key: Callable[[Key], str],
        *,
        max_parsed: int = 1,
        complete: Callable[[Value], Value] = lambda value: value,
    ) -> None:
        """Add the table `name`; `key` spells keys, and `max_parsed` values are cached parsed.

        `complete` adds what every value has and none stores; a missing row reads as the completed default of `model`.
        It is called from the first read on.
        """
        self.table = create_table(app, name)
        self._complete, self._model = complete, model
        self._parsed = ParsedValueCache(lambda value: complete(model.model_validate_json(value)), max_parsed)
        self._key = key

    def get(self, partition: int, key: Key) -> Value:
        value = self.table.read(partition, self._key(key))
        return self._parsed[value] if value else self._default

    @cached_property
    def _default(self) -> Value:
        return self._complete(self._model())

    def put(self, partition: int, key: Key, value: Value) -> None:
        self.table.write(partition, self._key(key), value.model_dump_json(by_alias=True).encode())

    def pending_writes(self) -> list[Awaitable[None]]:
        return self.table.pending_writes()


class ClaimTable(JsonTable[str, Claim]):
    """The table `claims`: which items state a value of the same claim, under the claim's digest."""

    def __init__(self, app: App) -> None:
        super().__init__(app, "claims", Claim, key=str)

    def put(self, partition: int, key: str, value: Claim) -> None:
        if value.held:
            super().put(partition, key, value)
        elif self.table.read(partition, key):
            self.table.write(partition, key, b"")


class UsageTable(JsonTable[str, UsageHistory]):
    """The table `usage`, by user. An empty history is no row, and what is 0 is not stored."""

    def __init__(self, app: App) -> None:
        super().__init__(app, "usage", UsageHistory, key=str)

    def put(self, partition: int, key: str, value: UsageHistory) -> None:
        if value.weeks:
            self.table.write(partition, key, value.model_dump_json(exclude_defaults=True).encode())
        elif self.table.read(partition, key) is not None:
            self.table.delete(partition, key)


class ReceiptTable(JsonTable[str, ReceiptRow]):
    """The table `receipts`: which memories were forgotten, until nothing of them is left, and receipts for a day more.

    Keys are `hidden/ID`, `erased/ID` and, of its pages, `ids/ID/NUMBER`.
    """

    def __init__(self, app: App) -> None:
        super().__init__(app, "receipts", ReceiptRow, key=str)

    def keys(self, partition: int, prefix: str) -> list[str]:
        return list(self.table.keys_under(partition, prefix))

    def delete(self, partition: int, key: str) -> None:
        self.table.delete(partition, key)


MAX_PARSED_TAXONOMIES = 1024
"""Taxonomies that are cached parsed, as every item reads one: some megabytes."""


def scope_key(scope: Mapping[str, str], boundary: BoundaryFields = USER_BOUNDARY) -> str:
    """Return the canonical string of a scope's values, such as `u1/default`: the boundary, the project, the others."""
    base = (*boundary, PROJECT_FIELD)
    further = [f"{name}={scope[name]}" for name in sorted(scope) if name not in base]
    return boundary_key([*(scope[name] for name in base), *further])


def scope_from_key(key: str, boundary: BoundaryFields = USER_BOUNDARY) -> dict[str, str]:
    base, values = (*boundary, PROJECT_FIELD), [unquote(value) for value in key.split("/")]
    further = (value.partition("=") for value in values[len(base) :])
    return dict(zip(base, values, strict=False)) | {name: value for name, _, value in further}


class ScopeTable(JsonTable[Mapping[str, str], Value]):
    def __init__(
        self, app: App, name: str, model: type[Value], boundary: BoundaryFields = USER_BOUNDARY, **how: Any
    ) -> None:
        """`boundary` are the fields of the deployment's boundary; `how` is that of `JsonTable`."""
        super().__init__(app, name, model, partial(scope_key, boundary=boundary), **how)
        self._boundary = boundary

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        return [scope_from_key(key, self._boundary) for key in self.table.keys_under(partition, f"{boundary}/")]


class CategoryTable(ScopeTable[Taxonomy]):
    """Taxonomies by scope. The deployment's categories are in every scope, also in scopes without a row."""

    def __init__(self, app: App, deployment: Mapping[str, str], boundary: BoundaryFields = USER_BOUNDARY) -> None:
        """`deployment`: the descriptions of the deployment's categories by name."""
        complete = partial(merge_deployment_categories, deployment=deployment)
        super().__init__(app, "categories", Taxonomy, boundary, max_parsed=MAX_PARSED_TAXONOMIES, complete=complete)

    def put(self, partition: int, key: Mapping[str, str], value: Taxonomy) -> None:
        if len(value) or value.deleted:
            super().put(partition, key, value)
        elif self.table.read(partition, self._key(key)) is not None:
            self.table.delete(partition, self._key(key))


MAX_PARSED_INTENTIONS = 128
"""Intentions that are cached parsed, of the scopes read or written last: a full one is 66 kB and 2 ms of parsing."""

MAX_INTENTION_BYTES = 8 * 1024 * 1024
"""Their serialised bytes together: `MAX_PARSED_INTENTIONS` full ones, and fewer larger ones."""


class IntentionTable(ScopeTable[Intention]):
    """Intentions by scope. Fields at their defaults are not stored."""

    def __init__(self, app: App, boundary: BoundaryFields = USER_BOUNDARY) -> None:
        super().__init__(app, "intentions", Intention, boundary)
        self._recent: dict[str, tuple[bytes, Intention]] = {}
        self._bytes = 0

    def get(self, partition: int, key: Mapping[str, str]) -> Intention:
        scope = self._key(key)
        value = self.table.read(partition, scope)
        if value is None:
            return self._default
        recent = self._recent.get(scope)
        # The store is read all the same: the partition may have been on another worker meanwhile.
        if recent and recent[0] == value:
            return recent[1]
        return self._remember(scope, value, Intention.model_validate_json(value))

    def put(self, partition: int, key: Mapping[str, str], value: Intention) -> None:
        scope, encoded = self._key(key), value.model_dump_json(exclude_defaults=True).encode()
        self.table.write(partition, scope, encoded)
        self._remember(scope, encoded, value)

    def _remember(self, scope: str, value: bytes, intention: Intention) -> Intention:
        self._drop(scope)
        while self._recent and (
            len(self._recent) >= MAX_PARSED_INTENTIONS or self._bytes + len(value) > MAX_INTENTION_BYTES
        ):
            self._drop(next(iter(self._recent)))
        self._recent[scope] = value, intention
        self._bytes += len(value)
        return intention

    def _drop(self, scope: str) -> None:
        value, _ = self._recent.pop(scope, (b"", None))
        self._bytes -= len(value)
