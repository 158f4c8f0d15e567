"""How this worker stands with Kafka: lag by topic, which partitions are here, whether tables are being recovered."""

from typing import Any

import faust
from faust.types import TP

from streams.topics import Topics


class WorkerStatus:
    """Read from the Faust app while it runs."""

    def __init__(self, app: faust.App, topics: Topics) -> None:
        self._app = app
        asked = (topics.retrieve, topics.commands, topics.consolidate)
        events = (topics.changes, topics.remembered, topics.understood, topics.embedded, topics.jobs, topics.learned)
        self._read = (topics.turns, *asked, *events)

    def partitions(self) -> set[int]:
        """The partitions that are assigned to this worker."""
        if not self._app.started or self._app.consumer is None:
            return set()
        return {place.partition for place in self._app.consumer.assignment() if place.topic == self._read[0]}

    def lag(self) -> dict[str, int]:
        """Records that are written and not settled, by topic, over the partitions that are here."""
        if not self._app.started:
            return {}
        consumer = self._app.consumer
        lag = dict.fromkeys(self._read, 0)
        for place in consumer.assignment():
            if place.topic in lag:
                # Faust keeps what is committed to itself; a request to the broker for each scrape would be dear.
                committed: dict[TP, int | None] = consumer._committed_offset  # type: ignore[attr-defined]  # noqa: SLF001
                lag[place.topic] += max(0, (consumer.highwater(place) or 0) - (committed.get(place) or 0))
        return lag

    def recovering(self) -> bool:
        """Whether tables are being recovered, or partitions are still awaited."""
        return bool(self._app.in_recovery or self._app.rebalancing or not self.partitions())

    def __call__(self) -> dict[str, Any]:
        """All of it, for `health`."""
        return {"lag": self.lag(), "partitions": sorted(self.partitions()), "recovering": self.recovering()}
