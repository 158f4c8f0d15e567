"""A JSON table over a dict."""

from ast import literal_eval
from collections.abc import Awaitable, Mapping, Sequence
from typing import Generic, TypeVar

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic import BaseModel

from schemas.messages.published import ReceiptRow
from streams.runtime.awaited_table import limit_row

Value = TypeVar("Value", bound=BaseModel)


class FakeJsonTable(Generic[Value]):
    """`streams.tables.json_table.JsonTable` in memory; keys are compared by their representation."""

    def __init__(self, model: type[Value]) -> None:
        self._model = model
        self._kept: dict[tuple[int, str], str] = {}

    def get(self, partition: int, key: object) -> Value:
        value = self._kept.get((partition, _shown(key)))
        return self._model() if value is None else self._model.model_validate_json(value)

    def put(self, partition: int, key: object, value: Value) -> None:
        encoded = value.model_dump_json(by_alias=True)
        limit_row(self._model.__name__, encoded.encode())
        self._kept[partition, _shown(key)] = encoded

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return nothing: a dict is written at once."""
        return []


class FakeReceipts(FakeJsonTable[ReceiptRow]):
    """`streams.tables.json_table.ReceiptTable` in memory."""

    def __init__(self) -> None:
        super().__init__(ReceiptRow)

    def keys(self, partition: int, prefix: str) -> list[str]:
        here = sorted(literal_eval(shown) for where, shown in self._kept if where == partition)
        return [key for key in here if key.startswith(prefix)]

    def delete(self, partition: int, key: str) -> None:
        self._kept.pop((partition, _shown(key)), None)


class FakeScopeTable(FakeJsonTable[Value]):
    """`streams.tables.json_table.ScopeTable` in memory."""

    def __init__(self, model: type[Value], boundary_fields: BoundaryFields = USER_BOUNDARY) -> None:
        super().__init__(model)
        self._boundary_fields = boundary_fields

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        here = [dict(literal_eval(shown)) for where, shown in self._kept if where == partition]
        return [scope for scope in here if self._boundary_fields.key(scope) == boundary]


def _shown(key: object) -> str:
    return repr(sorted(key.items())) if isinstance(key, Mapping) else repr(key)
