"""Render and count memories, and pack them into a prompt within its token budget.

The whole prompt, counted as it is sent, never exceeds the budget.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from agents.ports.tokenizer import TokenCounter
from agents.rules.context.packing import ContextPacker, SizedMemory
from agents.rules.context.rendering import MEMORY_SEPARATOR, build_messages, excerpt_of, render_memory
from agents.rules.context.sticky import Invariant
from agents.rules.index.window import estimate_turns
from schemas.failures import Rejected
from schemas.messages.assemble import AssembleRequest, Message, Section
from schemas.state.memories import Memory

STICKY_ROOM_DIVISOR = 4
"""A sticky memory that takes more than this part of the budget is cut to the sentences that make it sticky."""


class PackedPrompt(NamedTuple):
    """The three messages and their total number of tokens."""

    messages: list[Message]
    tokens: int


class PromptPacker:
    """One context in progress. `record` reads a memory by its id; `content` has the packed memories."""

    def __init__(
        self, request: AssembleRequest, record: Callable[[str], Memory | None], tokens: TokenCounter, room: int
    ) -> None:
        self._request = request
        self._record = record
        self._tokens = tokens
        self._room = room
        self.content = ContextPacker(room)

    @classmethod
    async def begin(
        cls, request: AssembleRequest, record: Callable[[str], Memory | None], tokens: TokenCounter
    ) -> "PromptPacker":
        """Return an empty context. Raises Rejected if the system prompt exceeds the budget."""
        empty = sum(await tokens.count([message.content for message in build_messages(request.system_prompt, ())]))
        if empty > request.budget_tokens:
            message = f"{empty} tokens without any memory, but budget_tokens is {request.budget_tokens}; shorten it"
            raise Rejected("invalid_value", message, "system_prompt")
        return cls(request, record, tokens, request.budget_tokens - empty)

    async def keep_sticky(self, ordered: Sequence[tuple[Invariant, str]]) -> None:
        """Keep sticky memories, the most important first, as long as there is room at all."""
        worth = estimate_turns(self.content.left)
        for invariant, memory_id in ordered[:worth]:
            memory = self._record(memory_id)
            if memory is not None:
                section: Section = "task_state" if invariant.kind == "blocking_error" else "rules"
                self.content.offer(section, [await self._sized_sticky(memory, invariant)], self.content.left)
        self.content.drop(memory_id for _, memory_id in ordered[worth:])

    async def _sized_sticky(self, memory: Memory, invariant: Invariant) -> SizedMemory:
        [whole] = await self._sized([memory])
        if whole.tokens * STICKY_ROOM_DIVISOR <= self._room:
            return whole
        text = render_memory(memory, excerpt_of(memory, invariant.label))
        [count] = await self._tokens.count([text + MEMORY_SEPARATOR])
        return SizedMemory(memory, text, count) if count < whole.tokens else whole

    async def offer(self, section: Section, memory_ids: Iterable[str], room: int, *, contiguous: bool = False) -> None:
        """Offer memories to a section, the most important first; `contiguous`: stop at the first that does not fit."""
        unknown = self.content.not_kept(memory_ids)
        worth = estimate_turns(min(room, self.content.left))
        found = [memory for memory in map(self._record, unknown[:worth]) if memory is not None]
        self.content.drop(unknown[worth:])
        self.content.offer(section, await self._sized(found), room, contiguous=contiguous)

    async def prompt(self) -> PackedPrompt:
        """Return the prompt; drop memories while it is too long, as a text may count more than its parts."""
        while True:
            prompt = build_messages(self._request.system_prompt, self.content.lines())
            total = sum(await self._tokens.count([message.content for message in prompt]))
            if total <= self._request.budget_tokens or not self.content.drop_least_important():
                return PackedPrompt(prompt, total)

    async def _sized(self, memories: Sequence[Memory]) -> list[SizedMemory]:
        lines = [render_memory(memory) for memory in memories]
        counts = await self._tokens.count([text + MEMORY_SEPARATOR for text in lines])
        return [SizedMemory(*found) for found in zip(memories, lines, counts, strict=True)]
