"""Values in a dict: what a table of JSON is in a worker."""

from collections.abc import Awaitable, Mapping
from typing import Generic, TypeVar

from pydantic import BaseModel

Value = TypeVar("Value", bound=BaseModel)


class FakeJsonTable(Generic[Value]):
    """`streams.tables.json_table.JsonTable` in memory; keys are compared by their representation."""

    def __init__(self, model: type[Value]) -> None:
        self._model = model
        self._kept: dict[tuple[int, str], str] = {}

    def get(self, partition: int, key: object) -> Value:
        """What is kept, or what the model is by default."""
        value = self._kept.get((partition, _shown(key)))
        return self._model() if value is None else self._model.model_validate_json(value)

    def put(self, partition: int, key: object, value: Value) -> None:
        """Write a value over the one before."""
        self._kept[partition, _shown(key)] = value.model_dump_json(by_alias=True)

    def pending_writes(self) -> list[Awaitable[None]]:
        """Nothing: a dict is written at once."""
        return []


def _shown(key: object) -> str:
    return repr(sorted(key.items())) if isinstance(key, Mapping) else repr(key)
