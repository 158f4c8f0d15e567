"""Render and count memories, and pack them into a prompt within its token budget.

The whole prompt, counted as it is sent, never exceeds the budget without its reserve. A text that takes more than a
quarter of the room is cut to an excerpt.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from modestream_client.assembled import Message, Section

from agents.ports.tokenizer import TokenCounter
from agents.rules.context.entries import Entry, excerpt_of, passages_about
from agents.rules.context.formats import FORMATS
from agents.rules.context.packing import SLICE_CHARS, ContextPacker, SizedEntry
from agents.rules.context.prompt import build_messages
from agents.rules.context.sticky import Invariant
from agents.rules.context.sticky_share import SizedSticky, split_sticky
from agents.rules.index.window import MIN_ENTRY_TOKENS, estimate_turns
from agents.rules.text.embedding_text import lexical_text
from schemas.failures import Rejected
from schemas.messages.assemble import MIN_BUDGET_TOKENS, AssembleRequest
from schemas.state.memories import Memory

EXCERPT_ROOM_DIVISOR = 4
"""An entry that takes more than this part of the room is cut to an excerpt."""


class PackedPrompt(NamedTuple):
    """The messages, the memories in them, and the total number of tokens."""

    messages: list[Message]
    references: list[str]
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptSource:
    """A request, and what its entries need: `record` reads a memory by its id, `coverage` rates a passage, 0..1."""

    request: AssembleRequest
    record: Callable[[str], Memory | None]
    coverage: Callable[[str], float]
    now: datetime


class PromptPacker:
    """One context in progress; `content` has the packed memories, `sticky` those that precede all others."""

    def __init__(self, source: PromptSource, tokens: TokenCounter, max_budget_tokens: int) -> None:
        """Raises Rejected `invalid_value` if the budget is above its maximum, or all of it is reserved."""
        self._request = source.request
        self._source = source
        self._tokens = tokens
        self._format = FORMATS[source.request.format]
        self._own = Entry.of_request(source.request.remember, source.now)
        self._budget = _budget_of(source.request, max_budget_tokens)
        self._room = 0
        self._entries: dict[str, SizedEntry] = {}
        self.sticky: list[tuple[Invariant, str]] = []
        self.content = ContextPacker(0)

    @classmethod
    async def begin(cls, source: PromptSource, tokens: TokenCounter, max_budget_tokens: int) -> "PromptPacker":
        """Return an empty context. Raises Rejected if the request's own texts exceed the budget."""
        packer = cls(source, tokens, max_budget_tokens)
        empty = (await packer._counted([])).tokens
        if empty > packer._budget:
            message = f"{empty} tokens without any memory, but there is room for {packer._budget}; shorten it"
            raise Rejected("invalid_value", message, _longest_field(source.request))
        packer._room = packer._budget - empty
        packer.content = ContextPacker(packer._room)
        return packer

    @property
    def budget(self) -> int:
        """The tokens that the prompt may take: the request's budget without its reserve."""
        return self._budget

    async def keep_sticky(
        self, ordered: Sequence[tuple[Invariant, str]], related: Collection[str], pins: Collection[str]
    ) -> list[str]:
        """Keep sticky memories, the most important first, as long as there is room at all.

        `related` are the ids of the evidence; this and pins are shown whole. Returns the ids that are candidates like
        any other instead.
        """
        worth, whole = self._worth(self.content.left), frozenset((*related, *pins))
        sized = await self._sized_sticky(ordered[:worth], whole)
        known = [one for one in ordered[:worth] if one[1] in sized] + list(ordered[worth:])
        least = MIN_ENTRY_TOKENS[self._request.format]
        tokens = {memory_id: sized[memory_id].tokens if memory_id in sized else least for _, memory_id in known}
        split = split_sticky([SizedSticky(*one, tokens[one[1]]) for one in known], self._budget, related)
        for one in split.kept:
            section: Section = "task_state" if one.invariant.kind == "blocking_error" else "rules"
            self.content.offer(section, [sized[one.memory_id]] if one.memory_id in sized else (), self.content.left)
        self.content.drop(memory_id for _, memory_id in ordered[worth:])
        self.sticky = [(one.invariant, one.memory_id) for one in split.kept]
        return [one.memory_id for one in split.demoted]

    async def _sized_sticky(
        self, sticky: Iterable[tuple[Invariant, str]], whole: Collection[str]
    ) -> dict[str, SizedEntry]:
        """Return the existing ones by id: whole those of `whole`, of others the sentences that make them sticky."""
        labels = {memory_id: invariant.label for invariant, memory_id in sticky}
        found = [memory for memory in map(self._source.record, labels) if memory is not None]

        def excerpt(one: SizedEntry) -> str | None:
            memory_id = one.memory.memory_id
            keeps = memory_id in whole and not self._is_large(one)
            return None if keeps else excerpt_of(one.memory, labels[memory_id])

        return {one.memory.memory_id: one for one in await self._sized(found, excerpt)}

    async def offer(self, section: Section, memory_ids: Iterable[str], room: int, *, contiguous: bool = False) -> None:
        """Offer memories to a section, the most important first; `contiguous`: stop at the first that does not fit."""
        unknown = self.content.not_kept(memory_ids)
        worth = self._worth(min(room, self.content.left))
        self.content.drop(unknown[worth:])
        entries = await self._entries_of(unknown[:worth])
        for _ in self.content.offering(section, entries, room, contiguous=contiguous):
            await asyncio.sleep(0)

    async def _entries_of(self, memory_ids: Sequence[str]) -> list[SizedEntry]:
        """Return the entries of existing memories; each is read and counted once for a context."""
        unread = [memory_id for memory_id in memory_ids if memory_id not in self._entries]
        found = [memory for memory in map(self._source.record, unread) if memory is not None]
        self._entries.update((one.memory.memory_id, one) for one in await self._sized(found, self._passages))
        return [self._entries[memory_id] for memory_id in memory_ids if memory_id in self._entries]

    async def prompt(self) -> PackedPrompt:
        """Return the prompt; drop memories while it is too long, as a text may count more than its parts."""
        while True:
            prompt = await self._counted(self.content.entries())
            if prompt.tokens <= self._budget or not self.content.drop_least_important():
                return prompt

    async def _counted(self, entries: Sequence[Entry]) -> PackedPrompt:
        entries = sorted([*entries, *self._own], key=lambda entry: entry.occurred_at)
        body = self._format.body(entries)
        messages = build_messages(self._request, body)
        total = sum(await self._tokens.count([message.content for message in messages]))
        return PackedPrompt(messages, [entry.memory_id for entry in entries if entry.memory_id], total)

    def _passages(self, one: SizedEntry) -> str | None:
        """Return the passages about the query, of a text that takes too much room."""
        return passages_about(lexical_text(one.memory), self._source.coverage) if self._is_large(one) else None

    async def _sized(self, memories: Iterable[Memory], excerpt: Callable[[SizedEntry], str | None]) -> list[SizedEntry]:
        """Return the entries of memories, whole or as the excerpt where that is shorter; None is no excerpt.

        Long texts are read in slices, with other events in between; one slice at a time is in memory whole.
        """
        sized: list[SizedEntry] = []
        for part in _slices(memories):
            sized += await self._sized_slice(part, excerpt)
            await asyncio.sleep(0)
        return sized

    async def _sized_slice(
        self, memories: Sequence[Memory], excerpt: Callable[[SizedEntry], str | None]
    ) -> list[SizedEntry]:
        whole = await self._size([(memory, Entry.of(memory)) for memory in memories])
        excerpts = {place: text for place, one in enumerate(whole) if (text := excerpt(one)) is not None}
        cut = await self._size(
            [(whole[place].memory, Entry.of(whole[place].memory, excerpts[place])) for place in excerpts]
        )
        for place, shorter in zip(excerpts, cut, strict=True):
            whole[place] = min(shorter, whole[place], key=lambda one: one.tokens)
        return whole

    async def _size(self, entries: Sequence[tuple[Memory, Entry]]) -> list[SizedEntry]:
        lines = [self._format.line(entry) for _, entry in entries]
        days = {self._format.day(entry): 0 for _, entry in entries}
        counts = await self._tokens.count([*lines, *days])
        days.update(zip(days, counts[len(lines) :], strict=True))
        return [
            SizedEntry(memory, entry, count, day := self._format.day(entry), days[day])
            for (memory, entry), count in zip(entries, counts, strict=False)
        ]

    def _is_large(self, sized: SizedEntry) -> bool:
        return sized.tokens * EXCERPT_ROOM_DIVISOR > self._room

    def _worth(self, room: int) -> int:
        return estimate_turns(room, self._request.format)


def _slices(memories: Iterable[Memory]) -> Iterator[list[Memory]]:
    """Yield the memories in their order, each list up to the first that reaches `SLICE_CHARS`."""
    part: list[Memory] = []
    chars = 0
    for memory in memories:
        part.append(memory)
        chars += len(memory.text) + sum(len(one.text or "") for one in memory.resources)
        if chars >= SLICE_CHARS:
            yield part
            part, chars = [], 0
    if part:
        yield part


def _budget_of(request: AssembleRequest, max_budget_tokens: int) -> int:
    if request.budget_tokens > max_budget_tokens:
        raise Rejected("invalid_value", f"a budget is at most {max_budget_tokens} tokens", "budget_tokens")
    budget = request.budget_tokens - request.reserve_tokens
    if budget < MIN_BUDGET_TOKENS:
        message = f"{budget} of {request.budget_tokens} tokens are left; leave at least {MIN_BUDGET_TOKENS}"
        raise Rejected("invalid_value", message, "reserve_tokens")
    return budget


def _longest_field(request: AssembleRequest) -> str:
    """Return the field with most of the request's own text."""
    sizes = {
        "system_prompt": len(request.system_prompt or ""),
        "messages": sum(len(one.content) for one in request.messages),
        "prefix": len(request.prefix or ""),
        "suffix": len(request.suffix or ""),
        "remember": sum(len(one.content) for one in request.remember),
    }
    return max(sizes, key=lambda name: sizes[name])
