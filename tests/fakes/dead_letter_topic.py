"""The topic of dead letters in memory: what a test puts there is listed, and what is published is kept."""

from collections.abc import AsyncGenerator, Sequence

from modestream_client.boundary import USER_BOUNDARY

from gateway.service.dead_letters import DeadLetterList, DeadLetters, LetterPosition, read_letter
from gateway.service.dismissals import Dismissals
from schemas.messages.records import Headers, Outgoing, Record

FIRST_MS = 1_700_000_000_000


class FakeDeadLetterTopic:
    """Implements `gateway.service.dead_letters.DeadLetterTopic`, in partition 0."""

    topic_prefix = "memory."
    boundary_fields = USER_BOUNDARY

    def __init__(self, limit: int = 10_000, dismissals: Dismissals | None = None) -> None:
        self.list = DeadLetterList(limit, dismissals)
        self.letters = DeadLetters(self.list, self)
        self.log: list[Record] = []
        self.published: list[Outgoing] = []

    def put(
        self,
        key: bytes | None,
        value: bytes | None,
        code: str = "unknown_mode",
        topic: str = "memory.turns",
        headers: Headers = (),
    ) -> str:
        """Add a letter; return its id."""
        offset = len(self.log)
        named = {"topic": topic, "partition": "3", "offset": str(100 + offset), "code": code, "reason": f"why {code}"}
        ours = tuple((f"dead_letter_{name}", text.encode()) for name, text in named.items())
        time = ("dead_letter_time", b"2026-03-01T09:30:00Z")
        record = Record("dead-letters", 0, offset, FIRST_MS + offset, key, value, (*headers, *ours, time))
        self.log.append(record)
        self.list.take(read_letter(record, self.topic_prefix))
        return f"0-{offset}"

    async def begin(self) -> None:
        """Everything is in the list."""

    async def read(self, places: Sequence[LetterPosition]) -> AsyncGenerator[Record]:
        for place in places:
            if place.offset < len(self.log):
                yield self.log[place.offset]

    async def publish(self, records: Sequence[Outgoing]) -> None:
        self.published.extend(records)
