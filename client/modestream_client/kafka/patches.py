"""What aiokafka lacks where a broker is killed or cut off: for every process that reads or writes with it for long."""

from modestream_client.kafka.closed_connections import patch_closed_connections
from modestream_client.kafka.ended_fetches import patch_ended_fetches


def patch_aiokafka() -> None:
    """Patch aiokafka for all connections of this process, and for the consumers that it creates from now on."""
    patch_closed_connections()
    patch_ended_fetches()
