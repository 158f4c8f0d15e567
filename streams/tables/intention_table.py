"""The table `intentions`: goals, constraints, decisions and errors of each scope, as JSON that a person can read."""

from collections.abc import Mapping

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields

from schemas.state.intention import Intention
from streams.runtime.kafka_app import App
from streams.tables.json_table import ScopeTable

MAX_PARSED_INTENTIONS = 128
"""Intentions that are cached parsed, of the scopes read or written last: a full one is 66 kB and 2 ms of parsing."""

MAX_PARSED_BYTES = 8 * 1024 * 1024
"""Their serialised bytes together: `MAX_PARSED_INTENTIONS` full ones, and fewer larger ones."""


class IntentionTable(ScopeTable[Intention]):
    """Intentions by scope. Fields at their defaults are not stored."""

    def __init__(self, app: App, boundary: BoundaryFields = USER_BOUNDARY) -> None:
        super().__init__(app, "intentions", Intention, boundary)
        self._recent: dict[str, tuple[bytes, Intention]] = {}
        self._bytes = 0

    def get(self, partition: int, key: Mapping[str, str]) -> Intention:
        scope = self._key(key)
        value = self.table.read(partition, scope)
        if value is None:
            return self._default
        recent = self._recent.get(scope)
        # The store is read all the same: the partition may have been on another worker meanwhile.
        if recent and recent[0] == value:
            return recent[1]
        return self._remember(scope, value, Intention.model_validate_json(value))

    def put(self, partition: int, key: Mapping[str, str], value: Intention) -> None:
        scope, encoded = self._key(key), value.model_dump_json(exclude_defaults=True).encode()
        self.table.write(partition, scope, encoded)
        self._remember(scope, encoded, value)

    def _remember(self, scope: str, value: bytes, intention: Intention) -> Intention:
        self._drop(scope)
        while self._recent and (
            len(self._recent) >= MAX_PARSED_INTENTIONS or self._bytes + len(value) > MAX_PARSED_BYTES
        ):
            self._drop(next(iter(self._recent)))
        self._recent[scope] = value, intention
        self._bytes += len(value)
        return intention

    def _drop(self, scope: str) -> None:
        value, _ = self._recent.pop(scope, (b"", None))
        self._bytes -= len(value)
