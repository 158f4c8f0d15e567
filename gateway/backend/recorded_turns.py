"""The log of turns over Kafka, read at the times of records: former texts of edited turns are there alone."""

import logging
from collections.abc import Sequence

from aiokafka.errors import KafkaError
from modestream_client.kafka.log_reader import open_log_reader

from gateway.backend.followers import Cluster
from gateway.service.calls import unavailable
from schemas.messages.records import Record

log = logging.getLogger(__name__)

TOPIC = "turns"

MAX_RECORDS = 200
"""Maximum records read for one timestamp: producers' clocks differ, so others may precede the wanted one."""

FETCH_BYTES = 1024 * 1024
"""Bytes of one fetch; a larger record comes alone."""

READ_MS = 1000
"""Time limit of one read; no record arrives at the end of the log."""


class KafkaRecordedTurns:
    """Implements `gateway.service.memories.RecordedTurns`. It connects for each call: few pages show versions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def since(self, partition: int, moments_ms: Sequence[int]) -> Sequence[Sequence[Record]]:
        source = (self._cluster.topic_prefix + TOPIC, partition)
        found = []
        try:
            async with open_log_reader(self._cluster.connection, max_partition_fetch_bytes=FETCH_BYTES) as reader:
                for moment_ms in moments_ms:
                    first = (await reader.first_since([source], moment_ms))[source]
                    records = [] if first is None else (await reader.read(source, first, MAX_RECORDS, READ_MS))[0]
                    found.append(records)
        except (KafkaError, OSError) as error:
            log.warning("turns: %s", error)
            raise unavailable() from None
        return found
