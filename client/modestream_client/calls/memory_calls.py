"""All calls of a client, whatever the transport."""

from modestream_client.calls.layers import LayerCalls
from modestream_client.calls.listing import ListCalls
from modestream_client.calls.memories import SingleMemoryCalls
from modestream_client.calls.modes import ModeCalls
from modestream_client.calls.reading import ReadCalls
from modestream_client.calls.runs import RunCalls
from modestream_client.calls.turns import TurnCalls
from modestream_client.calls.upkeep import UpkeepCalls


class MemoryCalls(TurnCalls, ReadCalls, ListCalls, SingleMemoryCalls, ModeCalls, LayerCalls, UpkeepCalls, RunCalls):
    """The surface that `MemoryClient` and `HttpMemoryClient` share; a program that takes either takes this type."""
