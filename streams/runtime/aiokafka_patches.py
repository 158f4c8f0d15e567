"""Patches of aiokafka for killed or disconnected brokers, for all connections of a worker: Faust makes its own."""

from functools import partial
from typing import Any

from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from modestream_client.kafka.own_clients import fetch_until_closed, write_if_open

_fetch = Fetcher._fetch_requests_routine  # noqa: SLF001 (the task has no other name)


def patch_aiokafka() -> None:
    """Patch aiokafka for all connections of this process, and for the consumers that it creates from now on."""
    AIOKafkaConnection.send = write_if_open(AIOKafkaConnection.send)
    AIOKafkaConnection._send_sasl_token = write_if_open(AIOKafkaConnection._send_sasl_token)  # noqa: SLF001
    Fetcher._fetch_requests_routine = _fetch_until_closed  # noqa: SLF001


async def _fetch_until_closed(fetcher: Any) -> None:
    await fetch_until_closed(fetcher, partial(_fetch, fetcher), _fetch(fetcher))
