"""The service object: what every door calls, so that no door forgets a check."""

from schemas.scopes import BOUNDARY_FIELD, Scope

from gateway.service.layers import Layers
from gateway.service.memories import Memories
from gateway.service.modes import Modes
from gateway.service.reads import Reads
from gateway.service.requests import CheckedRequests
from gateway.service.turns import Turns
from gateway.service.wire import Wire


class MemoryService:
    """Every call of the gateway, by topic. Each takes a `Call`, returns JSON, and raises Refused and nothing else."""

    def __init__(self, wire: Wire, scope: type[Scope] = Scope) -> None:
        """`scope` is the scope model of the deployment."""
        requests = CheckedRequests(wire)
        scope_fields = frozenset(scope.model_fields) - {BOUNDARY_FIELD}
        self.turns = Turns(requests)
        self.reads = Reads(requests)
        self.memories = Memories(requests, self.turns, scope_fields)
        self.modes = Modes(requests)
        self.layers = Layers(requests)
