"""Topics are assigned together, whatever partitions an operator has added to one of them."""

from types import SimpleNamespace
from typing import Any

import faust

from streams.runtime.kafka_app import create_kafka_app
from streams.settings import Settings


def groups(partitions: dict[str, int]) -> dict[int, list[set[str]]]:
    """Return the topics that are assigned together, by their number of partitions, for one worker of a deployment."""
    app: faust.App = create_kafka_app(Settings(_env_file=None, partitions=4), "worker")
    cluster: Any = SimpleNamespace(partitions_for_topic=lambda topic: set(range(partitions[topic])))
    assignor: Any = app.assignor
    grouped = assignor._get_copartitioned_groups(set(partitions), cluster, {"worker": list(partitions)})
    return {count: list(found) for count, found in grouped.items()}


def test_topic_with_added_partitions_stays_with_its_tables() -> None:
    assert groups({"turns": 6, "changelog": 4}) == {4: [{"turns", "changelog"}]}


def test_missing_topic_is_not_assigned() -> None:
    assert groups({"turns": 4, "changelog": 0}) == {4: [{"turns"}]}
