"""The thinker on its topic: what turns are for, at once, and who is to be asked of a language model."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.understand import Understand
from schemas.events import Forgotten, Remembered, Understood
from schemas.failures import ModelMissing, Unavailable
from schemas.memories import Memory
from schemas.records import Outgoing, Record
from streams.flow.awaiting import all_of, nothing
from streams.flow.patience import until_available
from streams.flow.steps import Internal, event_out
from streams.flow.surroundings import Surroundings

PAUSE_S = 0.05
"""Between two runs of events that leave together."""

AskModel = Callable[[int, Memory], None]
"""Has a language model asked of a memory of a partition, when there is one."""


@dataclass(frozen=True, slots=True)
class Read:
    """A memory that was read, and what the keeper is to be told of it."""

    memory: Memory
    partition: int
    event: Understood | None


class UnderstandRemembered(Internal):
    """Memories into what they are for. A model is asked beside the events: none of them waits for it."""

    window = 512
    pause_s = PAUSE_S

    def __init__(self, understand: Understand, ask_model: AskModel, around: Surroundings) -> None:
        super().__init__({"remembered.v1": Remembered, "forgotten.v1": Forgotten}, around)
        self._understand = understand
        self._ask_model = ask_model

    async def begin(self, record: Record) -> Awaitable[Read | None]:
        """Start to read one memory."""
        event = await self.read(record)
        return self._read(event.memory, record.partition) if isinstance(event, Remembered) else nothing()

    async def settle(self, finished: Sequence[Read | None]) -> None:
        """Tell the keeper; then, as the record says what is pending, have a model asked."""
        read = [one for one in finished if one is not None]
        sent = [await self._around.publisher.send(out) for one in read for out in self._told(one)]
        await all_of(sent)
        for one in read:
            if one.memory.reading.status == "pending":
                self._ask_model(one.partition, one.memory)

    async def _read(self, memory: Memory, partition: int) -> Read:
        async def by_rules() -> Understood | None:
            try:
                return await self._understand.by_rules(memory)
            except ModelMissing as missing:
                raise Unavailable(str(missing)) from missing

        return Read(memory, partition, await until_available(by_rules, "embedder", self._around.meters))

    def _told(self, one: Read) -> list[Outgoing]:
        if one.event is None:
            return []
        return [event_out(self._around.topics.understood, one.memory.boundary, one.event)]
