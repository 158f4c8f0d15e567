"""The service object: what every door calls, so that no door forgets a check."""

from gateway.service.modes import Modes
from gateway.service.reads import Reads
from gateway.service.requests import CheckedRequests
from gateway.service.turns import Turns
from gateway.service.wire import Wire


class MemoryService:
    """Every call of the gateway, by topic. Each takes a `Call`, returns JSON, and raises Refused and nothing else."""

    def __init__(self, wire: Wire) -> None:
        requests = CheckedRequests(wire)
        self.turns = Turns(requests)
        self.reads = Reads(requests)
        self.modes = Modes(requests)
