"""Memories in, a prompt within its token budget out: what is offered is rendered, counted and kept while there is room.

Guaranteed: the whole prompt, counted as it is sent, never has more tokens than were asked for.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from agents.ports.tokenizer import TokenCounter
from agents.rules.context.packing import ContextPacker, SizedMemory
from agents.rules.context.rendering import MEMORY_SEPARATOR, build_messages, excerpt_of, render_memory
from agents.rules.context.sticky import Invariant
from agents.rules.index.window import estimate_turns
from schemas.assemble import AssembleRequest, Message, Section
from schemas.failures import Rejected
from schemas.memories import Memory

STICKY_ROOM_DIVISOR = 4
"""A sticky memory that takes more than this part of the room is cut to the sentences for which it is sticky."""


class PackedPrompt(NamedTuple):
    """The three messages, and the tokens of them all."""

    messages: list[Message]
    tokens: int


class PromptPacker:
    """One context that is being packed. `record` reads a memory by its id; `filling` is what it holds so far."""

    def __init__(
        self, request: AssembleRequest, record: Callable[[str], Memory | None], tokens: TokenCounter, room: int
    ) -> None:
        self._request = request
        self._record = record
        self._tokens = tokens
        self._room = room
        self.filling = ContextPacker(room)

    @classmethod
    async def begin(
        cls, request: AssembleRequest, record: Callable[[str], Memory | None], tokens: TokenCounter
    ) -> "PromptPacker":
        """An empty context. Raises Rejected where the system prompt leaves no room for it."""
        empty = sum(await tokens.count([message.content for message in build_messages(request.system_prompt, ())]))
        if empty > request.budget_tokens:
            message = f"{empty} tokens without any memory, where {request.budget_tokens} are allowed in all"
            raise Rejected("invalid_value", message, "system_prompt")
        return cls(request, record, tokens, request.budget_tokens - empty)

    async def keep_sticky(self, ordered: Sequence[tuple[Invariant, str]]) -> None:
        """Keep what must not be dropped, the most important first, as far as there is room at all."""
        worth = estimate_turns(self.filling.left)
        for invariant, memory_id in ordered[:worth]:
            memory = self._record(memory_id)
            if memory is not None:
                section: Section = "task_state" if invariant.kind == "blocking_error" else "rules"
                self.filling.offer(section, [await self._sized_sticky(memory, invariant)], self.filling.left)
        self.filling.drop(memory_id for _, memory_id in ordered[worth:])

    async def _sized_sticky(self, memory: Memory, invariant: Invariant) -> SizedMemory:
        [whole] = await self._sized([memory])
        if whole.tokens * STICKY_ROOM_DIVISOR <= self._room:
            return whole
        text = render_memory(memory, excerpt_of(memory, invariant.label))
        [count] = await self._tokens.count([text + MEMORY_SEPARATOR])
        return SizedMemory(memory, text, count) if count < whole.tokens else whole

    async def offer(self, section: Section, memory_ids: Iterable[str], room: int, *, unbroken: bool = False) -> None:
        """Offer memories to a section, the most important first."""
        unknown = self.filling.not_kept(memory_ids)
        worth = estimate_turns(min(room, self.filling.left))
        found = [memory for memory in map(self._record, unknown[:worth]) if memory is not None]
        self.filling.drop(unknown[worth:])
        self.filling.offer(section, await self._sized(found), room, contiguous=unbroken)

    async def prompt(self) -> PackedPrompt:
        """The prompt, with what is too much given up: parts of a text may count less than the text."""
        while True:
            prompt = build_messages(self._request.system_prompt, self.filling.lines())
            total = sum(await self._tokens.count([message.content for message in prompt]))
            if total <= self._request.budget_tokens or not self.filling.drop_least_important():
                return PackedPrompt(prompt, total)

    async def _sized(self, memories: Sequence[Memory]) -> list[SizedMemory]:
        lines = [render_memory(memory) for memory in memories]
        counts = await self._tokens.count([text + MEMORY_SEPARATOR for text in lines])
        return [SizedMemory(*found) for found in zip(memories, lines, counts, strict=True)]
