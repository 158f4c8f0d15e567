"""A wire that answers from memory: turns are stored by user and id, questions get what a test prepared."""

from collections.abc import Callable
from typing import Unpack

from modestream_client.answers import Reply
from modestream_client.records import Written

from gateway.service.calls import Json, Sending

TURN_FIELDS = {"mode": "general", "mode_source": "fallback", "version": 1}


class FakeWire:
    """Implements `gateway.service.calls.Backend`; every user is in partition 1."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.sent: list[tuple[str, Json, str | None]] = []
        self.stored: dict[tuple[str, str], str] = {}
        self.results: dict[str, Callable[[Json], Json] | Json] = {}
        self.failure: Exception | None = None

    @property
    def records(self) -> list[Json]:
        return [record for _, record, _ in self.sent]

    async def request(self, topic: str, value: Json, **sending: Unpack[Sending]) -> tuple[Reply, Written]:
        """Answer a record, or raise the prepared failure."""
        assert sending["timeout"] > 0
        written = await self.write(topic, value, principal=sending["principal"], timeout=sending["timeout"])
        if topic == "turns":
            return Reply(self._store(value, written)), written
        prepared = self.results.get(value.get("command") or value["schema"], {})
        return Reply(prepared(value) if callable(prepared) else prepared), written

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        if self.failure is not None:
            raise self.failure
        self.sent.append((topic, value, principal))
        return Written(1, len(self.sent) - 1)

    async def partition_of(self, user_id: str) -> int:
        return 1

    def _store(self, turn: Json, written: Written) -> Json:
        turn_id = turn.get("turn_id") or f"derived-{written.offset}"
        key = (turn["scope"]["user_id"], turn_id)
        duplicate = self.stored.get(key) == turn["content"]
        self.stored[key] = turn["content"]
        return {"memory_id": f"m-{turn_id}", "turn_id": turn_id, "duplicate": duplicate, **TURN_FIELDS}
