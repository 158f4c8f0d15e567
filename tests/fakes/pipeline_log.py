"""The topic `pipelines` in memory, shared by the workers of a test."""

from schemas.state.pipelines import Revision
from streams.flow.pipelines.comparing import PipelineHistory


class FakePipelineLog:
    """Keeps the records in their order. `before_write` are written first, as by another editor."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.before_write: list[Revision] = []
        self._readers: list[PipelineHistory] = []

    async def write(self, revision: Revision) -> None:
        first, self.before_write = self.before_write, []
        for each in (*first, revision):
            value = each.model_dump_json(by_alias=True).encode()
            self.records.append(value)
            for reader in self._readers:
                await reader.take(value)

    async def history(self) -> PipelineHistory:
        reader = PipelineHistory(self.write)
        for value in self.records:
            await reader.take(value)
        self._readers.append(reader)
        return reader
