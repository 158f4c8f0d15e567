"""The service object: every transport calls it, so that none forgets a check."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from gateway.service.boundaries import Boundaries
from gateway.service.calls import Backend
from gateway.service.dead_letters import DeadLetterList, DeadLetters, NoDeadLetters
from gateway.service.events import EventStreams, Feed, Receipts, already_begun
from gateway.service.files import Files, FileStore, PageDrawer
from gateway.service.imports import Imports
from gateway.service.memories import Memories, RecordedTurns
from gateway.service.operations import Operations
from gateway.service.requests import CheckedRequests
from gateway.service.runs import Runs
from gateway.service.turns import Export, Turns
from gateway.service.users import Users
from schemas.scope_models import some_scope
from schemas.scopes import Scope
from schemas.state.files import DEFAULT_MAX_FILE_BYTES


class MemoryService:
    """Every call of the gateway, by topic. Each takes a `Call`, returns JSON, and raises only Refused."""

    def __init__(
        self,
        backend: Backend,
        scope: type[Scope] = Scope,
        boundaries: Boundaries | None = None,
        feed: Feed | None = None,
        begin_events: Callable[[], Awaitable[None]] = already_begun,
        runs: Runs | None = None,
        receipts: Receipts | None = None,
        dead_letters: DeadLetters | None = None,
        exports: Path | None = None,
        files: FileStore | None = None,
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        drawer: PageDrawer | None = None,
        recorded_turns: RecordedTurns | None = None,
    ) -> None:
        """`scope` is the deployment's scope model; the others are filled by followers, and empty without them.

        `exports` is the folder of running imports, None for a temporary one; `files` has the bytes of files, each of
        `max_file_bytes` at most; `drawer` draws their pages. `recorded_turns` has former texts of edited turns.
        """
        self.boundary_fields = scope.boundary_fields
        requests = CheckedRequests(backend, self.boundary_fields, some_scope(scope))
        self.turns = Turns(requests)
        self.operations = Operations(requests)
        self.memories = Memories(requests, self.turns, scope, recorded_turns)
        others = self.boundary_fields.others(scope.model_fields)
        self.users = Users(boundaries or Boundaries(fields=self.boundary_fields), self.operations, others)
        self.export = Export(self.operations)
        self.imports = Imports(self.turns, self.operations, scope, exports)
        self.files = Files(requests, self.turns, self.memories, self.operations, scope, files, max_file_bytes, drawer)
        self.runs = runs or Runs(already_begun, self.boundary_fields)
        self.receipts = receipts or Receipts()
        self.events = EventStreams(requests, feed or Feed(), begin_events)
        self.dead_letters = dead_letters or DeadLetters(DeadLetterList(), NoDeadLetters())
