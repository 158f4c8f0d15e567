"""Assigns the deployment's partitions, and no others.

Faust assigns topics with different numbers of partitions apart from each other. When an operator adds partitions to an
input topic, a worker would get turns of a user whose tables another worker has. Here every topic counts as having the
deployment's number; `MoveAddedPartitions` reads the others.
"""

from collections import defaultdict
from collections.abc import Iterable, MutableMapping
from typing import Any

import structlog
from faust.assignor import PartitionAssignor

log = structlog.get_logger()


class FixedPartitionAssignor(PartitionAssignor):
    """Faust's assignor for the partitions below `topic_partitions`."""

    def _get_copartitioned_groups(  # type: ignore[override]  # a class method in Faust, which calls it by the instance
        self, topics: set[str], cluster: Any, subscriptions: Any
    ) -> MutableMapping[int, Iterable[set[str]]]:
        limit = self.app.conf.topic_partitions
        by_partitions: defaultdict[int, set[str]] = defaultdict(set)
        for topic in topics:
            if found := len(cluster.partitions_for_topic(topic) or ()):
                by_partitions[min(found, limit)].add(topic)
            else:
                log.warning("topic is missing, it is not assigned", topic=topic)
        return {count: self._group_co_subscribed(group, subscriptions) for count, group in by_partitions.items()}
