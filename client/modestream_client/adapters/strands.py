"""Strands' memory store: memories before a model's call and by a tool, messages stored after each invocation.

    manager = MemoryManager(stores=[ModestreamStore(memory, conversation_id="c1", user_id="u1")])
    agent = Agent(model=model, memory_manager=manager)

`agent(…)` starts an event loop for each call: pass a client without `await` there, such as `SyncHttpMemoryClient`.
Needs the extra `strands`.
"""

import uuid
from typing import Unpack

from strands.memory.extraction.triggers import InvocationTrigger
from strands.memory.extraction.types import ExtractionConfig
from strands.memory.types import AddMessagesContext, MemoryEntry, MemoryStore, SearchOptions
from strands.types.content import Message

from modestream_client.adapters.agent_memory import AgentMemory, AgentOptions, AnyMemory, turn_id_of

MAX_FOUND = 10
"""Memories found for a question that asks for no number."""


class ModestreamStore(MemoryStore):
    """The memories of one user, and the turns of one conversation."""

    def __init__(
        self, memory: AnyMemory, *, conversation_id: str, run_id: str | None = None, **options: Unpack[AgentOptions]
    ) -> None:
        """`run_id`: messages of a run with the same id are stored once; default: each agent is another run."""
        self.name = "modestream"
        self.description = "What was said in earlier conversations."
        self.max_search_results = MAX_FOUND
        self.writable = True
        self.extraction = ExtractionConfig(trigger=InvocationTrigger())
        self._memory = AgentMemory(memory, **options)
        self._conversation_id = conversation_id
        self._run_id = run_id or uuid.uuid4().hex

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return memories about a query, best first, each with its day and speaker."""
        found = await self._memory.search(query, (options or {}).get("max_search_results", MAX_FOUND))
        return [
            MemoryEntry(
                content=f"{hit.occurred_at[:10]} {hit.speaker or hit.role}: {hit.text}",
                metadata={"memory_id": hit.memory_id, "score": hit.score},
            )
            for hit in found
        ]

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> None:
        """Store the texts of messages as turns, in order."""
        numbers = (context and context.sequence_numbers) or range(len(messages))
        for number, message in zip(numbers, messages, strict=True):
            await self._memory.store(
                "\n".join(block["text"] for block in message["content"] if "text" in block),
                role=message["role"],
                conversation_id=self._conversation_id,
                turn_id=turn_id_of(self._conversation_id, self._run_id, number),
            )
