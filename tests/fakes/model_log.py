"""The records of models in memory."""

from collections.abc import Callable

from schemas.internal.model_record import ModelRecord


class FakeModelLog:
    """Implements `streams.adapters.embedding.catalog.recorded_models.ModelLog`.

    `before_write` is called before each write, to let another worker write first.
    """

    def __init__(self) -> None:
        self.written: list[ModelRecord] = []
        self.before_write: Callable[[], None] = lambda: None

    async def records(self) -> list[ModelRecord]:
        """Return all records."""
        return [*self.written]

    async def write(self, record: ModelRecord) -> None:
        """Append a record."""
        self.before_write()
        self.written.append(record)
