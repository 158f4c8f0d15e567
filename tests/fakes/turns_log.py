"""The log of turns of one partition, for tests without Kafka."""

from dataclasses import dataclass

from tests.builders.turns import record

HERE = record().partition


@dataclass
class FakeTurnsLog:
    """A log that ends at `ends` and is delivered up to `given`. It counts how often the delivery is looked up."""

    ends: int
    given: int
    asked: int = 0

    async def end(self, partition: int) -> int:
        return self.ends + 0 * partition

    async def end_with_transactions(self, partition: int) -> int:
        """Return the end of any partition: there are no transactions."""
        return await self.end(partition)

    def is_assigned(self, partition: int) -> bool:
        return partition == HERE

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        self.asked += 1
        return self.is_assigned(partition) and end <= self.ends and self.given <= applied
