"""Tables of JSON values that a person can read on the changelog.

`modes`, `jobs` (last backfill by boundary) and `issued` (last changes that commands of a boundary have requested) are
plain `JsonTable`s, `consolidations` (last runs by scope) is a `ScopeTable`. Values are frozen: two reads may return the
same object.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields, boundary_key
from pydantic import BaseModel

from agents.rules.categories.taxonomy import merge_deployment_categories
from schemas.messages.receipts import ReceiptRow
from schemas.scopes import PROJECT_FIELD
from schemas.state.categories import Taxonomy
from schemas.state.memories import Claim
from streams.runtime.awaited_table import create_table
from streams.runtime.kafka_app import App
from streams.tables.parsed_values import ParsedValueCache

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
    """Return the scope with this canonical string."""
    base, values = (*boundary, PROJECT_FIELD), [unquote(value) for value in key.split("/")]
    further = (value.partition("=") for value in values[len(base) :])
    return dict(zip(base, values, strict=False)) | {name: value for name, _, value in further}


class ScopeTable(JsonTable[Mapping[str, str], Value]):
    """Values by scope."""

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
