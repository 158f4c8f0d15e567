"""The table `interactions`: one row a partition, under the partition's number."""

from schemas.state.interaction import InteractionCounts
from streams.runtime.kafka_app import App
from streams.tables.json_table import JsonTable

MAX_PARSED_COUNTS = 64
"""Rows that are cached parsed, as every classified turn and every context reads them."""


class InteractionTable:
    """Counts of interaction modes by partition. Writes belong to the handling of an event of the partition."""

    def __init__(self, app: App) -> None:
        self._rows: JsonTable[int, InteractionCounts] = JsonTable(
            app, "interactions", InteractionCounts, key=str, max_parsed=MAX_PARSED_COUNTS
        )

    def get(self, partition: int) -> InteractionCounts:
        return self._rows.get(partition, partition)

    def put(self, partition: int, counts: InteractionCounts) -> None:
        self._rows.put(partition, partition, counts)
