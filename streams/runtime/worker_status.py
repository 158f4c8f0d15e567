"""The state of this worker in Kafka: lag by topic, assigned partitions, table recovery, and further details."""

from collections.abc import Callable, Collection
from typing import Any

import faust
from faust.exceptions import ConsumerNotStarted
from faust.types import TP

from streams.topics import Topics


class WorkerStatus:
    """Reads the Faust app while it runs."""

    def __init__(self, app: faust.App, topics: Topics) -> None:
        self.details: dict[str, Callable[[], Collection[object]]] = {}
        """Further details by name, shown while not empty."""
        self._app = app
        self._turns, self._consumed = topics.turns, topics.consumed()
        # Topics in which a single job, consolidation or batch of the indexer may take minutes.
        self._prompt = frozenset({topics.turns, topics.retrieve, topics.commands, topics.changes})

    def partitions(self) -> set[int]:
        return {tp.partition for tp in self._assigned() if tp.topic == self._turns}

    def lag(self) -> dict[str, int]:
        """Count the records after the committed offsets, by topic, over the assigned partitions."""
        if not self._app.started:
            return {}
        lag = dict.fromkeys(self._consumed, 0)
        for tp in self._assigned():
            if tp.topic in lag:
                lag[tp.topic] += self._app.consumer.lag(tp)  # type: ignore[attr-defined]
        return lag

    def positions(self) -> dict[tuple[str, int], int]:
        """Return the committed offset of each assigned partition with lag, of the topics whose events take seconds."""
        if not self._app.started:
            return {}
        consumer: Any = self._app.consumer
        waiting = (tp for tp in self._assigned() if tp.topic in self._prompt and consumer.lag(tp))
        return {(tp.topic, tp.partition): consumer.committed_offset(tp) for tp in waiting}

    def _assigned(self) -> set[TP]:
        if not self._app.started or self._app.consumer is None:
            return set()
        try:
            return set(self._app.consumer.assignment())
        except ConsumerNotStarted:
            return set()

    def recovering(self) -> bool:
        """True while tables are recovered or no partitions are assigned."""
        return bool(self._app.in_recovery or self._app.rebalancing or not self.partitions())

    def __call__(self) -> dict[str, Any]:
        """Return the whole status, for `health`."""
        state = {"lag": self.lag(), "partitions": sorted(self.partitions()), "recovering": self.recovering()}
        return state | {name: found for name, read in self.details.items() if (found := read())}
