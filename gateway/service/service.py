"""The service object: what every door calls, so that no door forgets a check."""

from collections.abc import Awaitable, Callable

from gateway.service.boundaries import Boundaries
from gateway.service.dead_letter_list import DeadLetterList
from gateway.service.dead_letters import DeadLetters, NoDeadLetters
from gateway.service.event_streams import EventStreams, already_begun
from gateway.service.export import Export
from gateway.service.feed import Feed
from gateway.service.memories import Memories
from gateway.service.operations import Operations
from gateway.service.requests import CheckedRequests
from gateway.service.runs import Runs
from gateway.service.selections import Selections
from gateway.service.turns import Turns
from gateway.service.users import Users
from gateway.service.wire import Wire
from schemas.scope_models import some_scope
from schemas.scopes import Scope


class MemoryService:
    """Every call of the gateway, by topic. Each takes a `Call`, returns JSON, and raises Refused and nothing else."""

    def __init__(
        self,
        wire: Wire,
        scope: type[Scope] = Scope,
        boundaries: Boundaries | None = None,
        feed: Feed | None = None,
        begin_events: Callable[[], Awaitable[None]] = already_begun,
        runs: Runs | None = None,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        """`scope` is the deployment's scope model; the others are filled by followers, and empty without them."""
        self.boundary_fields = scope.boundary_fields
        requests = CheckedRequests(wire, self.boundary_fields, some_scope(scope))
        self.turns = Turns(requests)
        self.operations = Operations(requests)
        self.memories = Memories(requests, self.turns, scope)
        self.selections = Selections(requests)
        others = self.boundary_fields.others(scope.model_fields)
        self.users = Users(boundaries or Boundaries(fields=self.boundary_fields), self.operations, others)
        self.export = Export(self.operations)
        self.runs = runs or Runs(already_begun, self.boundary_fields)
        self.events = EventStreams(requests, feed or Feed(), begin_events)
        self.dead_letters = dead_letters or DeadLetters(DeadLetterList(), NoDeadLetters())
