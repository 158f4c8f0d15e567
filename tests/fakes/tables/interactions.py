"""The table `interactions` over a dict."""

from schemas.state.interaction import InteractionCounts


class FakeInteractions:
    """Implements `streams.flow.stores.InteractionStore` in memory, as JSON; `writes` counts the writes."""

    def __init__(self) -> None:
        self.writes = 0
        self.stored: dict[int, str] = {}

    def get(self, partition: int) -> InteractionCounts:
        return InteractionCounts.model_validate_json(self.stored.get(partition, "{}"))

    def put(self, partition: int, counts: InteractionCounts) -> None:
        self.writes += 1
        self.stored[partition] = counts.model_dump_json()
