"""The topic `service` in memory."""

from collections.abc import Callable, Mapping

from pydantic import BaseModel


class FakeDeploymentLog:
    """Implements `streams.deployment_log.DeploymentLog`.

    `before_write` is called before each write, to let another worker write first.
    """

    def __init__(self, key: bytes = b"service", *records: BaseModel) -> None:
        """`records` of `key` are there."""
        self.topic = "memory.service"
        self._key = key
        self._values: dict[bytes, list[bytes]] = {}
        self.before_write: Callable[[], None] = lambda: None
        for record in records:
            self.put(key, record)

    @property
    def written(self) -> list[bytes]:
        return self._values.setdefault(self._key, [])

    def put(self, key: bytes, record: BaseModel) -> None:
        """Append a record, as another worker."""
        self._values.setdefault(key, []).append(record.model_dump_json(by_alias=True).encode())

    async def values(self) -> Mapping[bytes, list[bytes]]:
        return {key: [*values] for key, values in self._values.items() if values}

    async def write(self, key: bytes, record: BaseModel) -> None:
        self.before_write()
        self.put(key, record)
