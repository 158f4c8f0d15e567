"""How far the turns of a partition reach in Kafka's log, as Faust's consumer and the broker know it."""

import faust
from aiokafka.errors import KafkaError
from faust.types import TP

from schemas.failures import Unavailable


class KafkaTurnsLog:
    """Implements `streams.flow.support.turns_log.TurnsLog` for the partitions of this worker."""

    def __init__(self, app: faust.App, topic: str) -> None:
        self._app = app
        self._topic = topic

    async def end(self, partition: int) -> int:
        """The offset after the last one that is written: asked of the broker, as the consumer may be behind."""
        place = self._place(partition)
        try:
            return (await self._app.consumer.highwaters(place))[place]
        except (KafkaError, KeyError) as problem:
            raise Unavailable(f"Kafka does not tell how far the turns reach: {problem!r}") from problem

    def is_assigned(self, partition: int) -> bool:
        """Whether the partition is this worker's."""
        return TP(self._topic, partition) in self._app.consumer.assignment()

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        """Whether every record before `end` was handed over, and none of them lies at `applied` or after it."""
        place, consumer = self._place(partition), self._app.consumer
        fetched = await consumer.position(place)
        last: int | None = consumer._read_offset.get(place)  # type: ignore[attr-defined]  # noqa: SLF001
        under_way = [
            message.offset
            for message in list(consumer._unacked_messages)  # type: ignore[attr-defined]  # noqa: SLF001
            if message.tp == place
        ]
        # Before anything was read, Faust's last offset is the one that is read next.
        return (fetched or 0) >= end and (last or 0) <= applied and max(under_way, default=-1) < applied

    def _place(self, partition: int) -> TP:
        """The partition, while it is here: whoever has it now is given the command again."""
        if not self.is_assigned(partition):
            raise Unavailable(f"partition {partition} is not here any more")
        return TP(self._topic, partition)
