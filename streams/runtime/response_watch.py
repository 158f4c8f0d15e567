"""Detect a consumer that is no longer answered, partition by partition.

Enters: after each poll, the last response for each fetched partition. Leaves: true once one of them has had no other
response for a minute. A consumer that fetches nothing learns of no end either, so it has no lag.
"""

import time
from collections.abc import Mapping

from aiokafka import TopicPartition

SILENCE_S = 60.0
"""The broker answers each fetch within 1.5 s, and aiokafka repeats a request after 40 s."""


class ResponseWatch:
    """The last responses to one consumer."""

    def __init__(self) -> None:
        self.is_silent = False
        """True if a partition had no response for `SILENCE_S` seconds at the last check."""
        self._last: dict[TopicPartition, tuple[int | None, float]] = {}
        """The last response, and when it was first seen, on a steady clock."""

    def note(self, responses: Mapping[TopicPartition, int | None]) -> None:
        """Remember each fetched partition's last response; drop the others."""
        now, before = time.monotonic(), self._last
        self._last = {
            partition: seen if (seen := before.get(partition)) and seen[0] == response else (response, now)
            for partition, response in responses.items()
        }
        self.is_silent = any(now - since > SILENCE_S for _, since in self._last.values())
