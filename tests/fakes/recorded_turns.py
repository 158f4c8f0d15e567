"""The log of turns as a gateway reads it: records that a test puts there, by their times."""

from collections.abc import Sequence

from gateway.service.calls import unavailable
from schemas.messages.records import Record


class FakeRecordedTurns:
    def __init__(self, *records: Record) -> None:
        self.records = records
        self.is_away = False

    async def since(self, partition: int, moments_ms: Sequence[int]) -> Sequence[Sequence[Record]]:
        if self.is_away:
            raise unavailable()
        here = [record for record in self.records if record.partition == partition]
        return [[record for record in here if record.timestamp_ms >= moment] for moment in moments_ms]
