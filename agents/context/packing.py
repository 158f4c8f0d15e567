"""Render and count memories, and pack them into a prompt within its token budget.

The whole prompt, counted as it is sent, never exceeds the budget without its reserve. Of a long reply the passages that
the search has found are shown. The first hits are then shown whole where one takes a quarter of the room at most, and
others where room is left at the end. Any other text that takes more than a quarter of the room is cut to an excerpt.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from modestream_client.contexts import Message, Section

from agents.context.sizing import EntrySizer, Pauses, text_chars
from agents.ports.models import TokenCounter
from agents.rules.context.excerpts import MAX_EXCERPT_CHARS, excerpt_about, excerpt_of_reply, excerpt_of_turn
from agents.rules.context.formats import FORMATS, Entry, build_messages, excerpt_of
from agents.rules.context.packing import MIN_ENTRY_TOKENS, ContextPacker, SectionFilling, SizedEntry, estimate_turns
from agents.rules.context.section_candidates import MAX_RELATED_HITS
from agents.rules.context.sticky import Invariant, SizedSticky, split_sticky
from agents.rules.cues.labels import SentenceLabel
from agents.rules.text.passages import Span, lexical_text
from schemas.failures import Rejected
from schemas.messages.assemble import MIN_BUDGET_TOKENS, AssembleRequest
from schemas.state.memories import Memory

EXCERPT_ROOM_DIVISOR = 4
"""An entry that takes more than this part of the room is cut to an excerpt."""

MAX_STICKY_CHARS = 4 * 1024 * 1024
"""Characters of the turns that are searched for the sentences that make them sticky: some 2 s. For later ones there is
no room, however large it is."""

MAX_OFFERED_CHARS = 8 * 1024 * 1024
"""Maximum characters of other texts read for one context, about 2 s: ten times the largest budget."""

MAX_CHARS_PER_TOKEN = 32
"""Characters of the request's own texts for each token of the budget; more are not counted. Prose has 4, code 10."""


class PackedPrompt(NamedTuple):
    """The messages, the memories in them, the total number of tokens, and those of an appended question."""

    messages: list[Message]
    references: list[str]
    tokens: int
    question: int | None


@dataclass(frozen=True, slots=True)
class PromptSource:
    """A request, and the data that its entries need.

    `record` reads a memory by its id; `coverage` rates a passage, 0..1; `passages` are those to show of hits, by id;
    `changed_at`: when a later statement replaced one of the memory; `intention`: the entries set for the whole user.
    """

    request: AssembleRequest
    record: Callable[[str], Memory | None]
    coverage: Callable[[str], float]
    now: datetime
    passages: Mapping[str, Sequence[Span]]
    changed_at: Callable[[Memory], datetime | None]
    intention: Mapping[str, Sequence[str]] = field(default_factory=dict)


class PromptPacker:
    """One context in progress; `content` has the packed memories, `sticky` those that precede all others.

    `left_out` are candidates of kinds that the interaction mode drops.
    """

    def __init__(self, source: PromptSource, tokens: TokenCounter, max_budget_tokens: int) -> None:
        """Raises Rejected `invalid_value` if the budget is above its maximum, or all of it is reserved."""
        self._request = source.request
        self._source = source
        self._tokens = tokens
        self._format = FORMATS[source.request.format]
        self._intention = source.intention
        self._own = Entry.of_request(source.request.remember, source.now)
        if source.request.budget_tokens > max_budget_tokens:
            raise Rejected("invalid_value", f"a budget is at most {max_budget_tokens} tokens", "budget_tokens")
        budget = source.request.budget_tokens - source.request.reserve_tokens
        if budget < MIN_BUDGET_TOKENS:
            message = f"{budget} of {source.request.budget_tokens} tokens are left; leave at least {MIN_BUDGET_TOKENS}"
            raise Rejected("invalid_value", message, "reserve_tokens")
        self._budget = budget
        self._room = 0
        self._pauses = Pauses()
        self._offered = EntrySizer(self._format, tokens, self._passages, self._pauses, source.changed_at)

        def passages_of_reply(memory: Memory) -> str | None:
            return excerpt_of_reply(memory, source.passages.get(memory.memory_id, ()))

        self._evidence = EntrySizer(
            self._format, tokens, self._passages, self._pauses, source.changed_at, passages_of_reply
        )
        self._offered_chars = 0
        self._gone: set[str] = set()
        self._drops: Callable[[Memory], bool] = lambda _: False
        self.left_out: set[str] = set()
        self.sticky: list[tuple[Invariant, str]] = []
        self.content = ContextPacker(0)

    @classmethod
    async def begin(cls, source: PromptSource, tokens: TokenCounter, max_budget_tokens: int) -> "PromptPacker":
        """Return an empty context. Raises Rejected if the request's own texts exceed the budget."""
        packer = cls(source, tokens, max_budget_tokens)
        longest, chars = _own_texts(packer._request)
        if chars > MAX_CHARS_PER_TOKEN * packer._budget:
            allowed = f"there is room for {packer._budget} tokens"
            raise Rejected(
                "invalid_value", f"{chars} characters without any memory, but {allowed}; shorten it", longest
            )
        empty = (await packer._counted([])).tokens
        if empty > packer._budget:
            # The request's own texts go before.
            packer._intention = {}
            empty = (await packer._counted([])).tokens
        if empty > packer._budget:
            message = f"{empty} tokens without any memory, but there is room for {packer._budget}; shorten it"
            raise Rejected("invalid_value", message, _own_texts(source.request)[0])
        packer._room = packer._budget - empty
        packer.content = ContextPacker(packer._room)
        return packer

    @property
    def budget(self) -> int:
        """The tokens that the prompt may take: the request's budget without its reserve."""
        return self._budget

    async def keep_sticky(
        self, ordered: Sequence[tuple[Invariant, str]], related: Sequence[str], pins: Collection[str]
    ) -> list[str]:
        """Keep sticky memories, the most important first, as long as there is room at all.

        `related` are the ids of the evidence, the most important first; the first ones of it and pins are shown whole.
        Returns the ids that are candidates like any other instead.
        """
        labels = {memory_id: invariant.label for invariant, memory_id in ordered}
        sized, unread = await self._sized_sticky(labels, frozenset((*related[:MAX_RELATED_HITS], *pins)))
        # Of those that are not read, the least that one takes.
        sizes = dict.fromkeys(unread, MIN_ENTRY_TOKENS[self._request.format])
        sizes |= {memory_id: entry.tokens for memory_id, entry in sized.items()}
        sticky = [SizedSticky(invariant, each, sizes[each]) for invariant, each in ordered if each in sizes]
        split = split_sticky(sticky, self._budget, related)
        for memory in split.kept:
            entry = sized.get(memory.memory_id)
            if entry is not None and not self.content.drop_if_repeated(entry):
                section: Section = "task_state" if memory.invariant.kind == "blocking_error" else "rules"
                self.content.offer(section, [entry], self.content.left)
            await self._pauses.pause_if_due()
        self.content.drop(unread)
        self.sticky = [(memory.invariant, memory.memory_id) for memory in split.kept]
        return [memory.memory_id for memory in split.demoted]

    async def _sized_sticky(
        self, labels: Mapping[str, SentenceLabel], whole: Collection[str]
    ) -> tuple[dict[str, SizedEntry], list[str]]:
        """Return the entries of the existing ones by id, and the ids of those that are not read.

        Those of `whole` are whole, of others the sentences with their label.
        """

        def excerpt(entry: SizedEntry) -> str | None:
            memory_id = entry.memory.memory_id
            keeps = memory_id in whole and not self._is_large(entry)
            return None if keeps else excerpt_of(entry.memory, labels[memory_id])

        unread = list(labels)[::-1]
        memories = self._sticky_memories(unread, max(0, len(labels) - self._worth(self.content.left)))
        sizer = EntrySizer(self._format, self._tokens, excerpt, self._pauses, self._source.changed_at)
        return {entry.memory.memory_id: entry async for entry in sizer.sized(memories)}, unread

    async def _sticky_memories(self, unread: list[str], left_over: int) -> AsyncIterator[Memory]:
        """Take the last ids and yield their memories, until `left_over` remain or too much was read."""
        chars = 0
        while len(unread) > left_over and chars < MAX_STICKY_CHARS:
            if (memory := self._record(unread.pop())) is not None:
                chars += text_chars(memory)
                yield memory
            await self._pauses.pause_if_due()

    def leave_out(self, drops: Callable[[Memory], bool]) -> None:
        """Leave out what is offered from now on if `drops` says so."""
        self._drops = drops

    async def offer(
        self,
        section: Section,
        memory_ids: Iterable[str],
        room: int,
        *,
        contiguous: bool = False,
        by_passages: bool = False,
    ) -> None:
        """Offer memories to a section, the most important first; `contiguous`: stop at the first that does not fit.

        `by_passages`: of long replies the passages that the search has found.
        """
        sizer = self._evidence if by_passages else self._offered
        unknown = self.content.not_kept(memory_ids)
        filling = self.content.section(section, room, contiguous=contiguous)
        wanted = (memory_id for memory_id in unknown if memory_id not in self.left_out)
        async with aclosing(sizer.sized(self._readable(wanted, filling, sizer))) as entries:
            async for entry in entries:
                if not filling.offer(entry):
                    break
        self.content.drop(memory_id for memory_id in unknown if memory_id not in self._gone)

    async def show_whole(self, memory_ids: Iterable[str], *, except_large: bool = False) -> None:
        """Show kept replies whole instead of their passages where there is room, the most important first.

        `except_large`: those that would take more than a quarter of all room keep their passages.
        """
        for memory_id in memory_ids:
            shown = self.content.kept(memory_id)
            if shown is None or not shown.entry.excerpt:
                continue
            # Each word is a token at least.
            if len(shown.memory.text.split()) <= shown.tokens + self.content.left:
                async with aclosing(self._offered.sized(_one(shown.memory))) as entries:
                    async for whole in entries:
                        if not (except_large and self._is_large(whole)):
                            self.content.lengthen(whole)
            await self._pauses.pause_if_due()

    async def _readable(
        self, memory_ids: Iterable[str], filling: SectionFilling, sizer: EntrySizer
    ) -> AsyncIterator[Memory]:
        """Yield the existing memories that may fit and that the mode keeps, until too much was read."""
        worth = self._worth(filling.reach)
        for memory_id in memory_ids:
            if worth <= 0:
                return
            sized = sizer.known(memory_id)
            if sized is not None:
                worth -= 1
                yield sized.memory
            elif self._offered_chars < MAX_OFFERED_CHARS:
                memory = self._record(memory_id)
                if memory is not None and self._drops(memory):
                    self.left_out.add(memory_id)
                elif memory is not None:
                    worth -= 1
                    if not self._exceeds(memory, filling):
                        self._offered_chars += text_chars(memory)
                        yield memory
            await self._pauses.pause_if_due()

    def _record(self, memory_id: str) -> Memory | None:
        memory = self._source.record(memory_id)
        if memory is None:
            self._gone.add(memory_id)
        return memory

    def _exceeds(self, memory: Memory, filling: SectionFilling) -> bool:
        """True if a section skips a text whole and has no excerpt of it, as its words tell; it need not be counted.

        Each word is a token at least, each byte one at most.
        """
        if text_chars(memory) < filling.reach or memory.memory_id in self._source.passages:
            return False
        line = self._format.line(Entry.of(memory))
        is_large = len(line.encode("utf-8", "replace")) * EXCERPT_ROOM_DIVISOR > self._room
        return not is_large and len(line.split()) > filling.reach

    async def prompt(self) -> PackedPrompt:
        """Return the prompt; drop memories while it is too long, as a text may count more than its parts."""
        while True:
            prompt = await self._counted(self.content.entries())
            if prompt.tokens <= self._budget or not self.content.drop_least_important():
                return prompt

    async def _counted(self, entries: Sequence[Entry]) -> PackedPrompt:
        entries = sorted([*entries, *self._own], key=lambda entry: entry.occurred_at)
        body = self._format.body(entries, self._intention)
        messages = build_messages(self._request, body)
        counts = await self._tokens.count([message.content for message in messages])
        question = None if self._request.question is None else counts[-1]
        return PackedPrompt(messages, [entry.memory_id for entry in entries if entry.memory_id], sum(counts), question)

    def _passages(self, entry: SizedEntry) -> str | None:
        """Return the passages about the query, of a long text that takes too much room."""
        if not self._is_large(entry) or text_chars(entry.memory) <= MAX_EXCERPT_CHARS:
            return None
        passages = self._source.passages.get(entry.memory.memory_id, ())
        passages_shown = excerpt_of_turn(entry.memory, passages)
        return passages_shown or excerpt_about(lexical_text(entry.memory), self._source.coverage)

    def _is_large(self, sized: SizedEntry) -> bool:
        return sized.tokens * EXCERPT_ROOM_DIVISOR > self._room

    def _worth(self, room: int) -> int:
        return estimate_turns(room, self._request.format)


async def _one(memory: Memory) -> AsyncIterator[Memory]:
    yield memory


def _own_texts(request: AssembleRequest) -> tuple[str, int]:
    """Return the field with most of the request's own text, and the characters of all."""
    sizes = {
        "system_prompt": len(request.system_prompt or ""),
        "messages": sum(len(message.content) for message in request.messages),
        "prefix": len(request.prefix or ""),
        "suffix": len(request.suffix or ""),
        "query": len(request.question or ""),
        "remember": sum(len(text.content) for text in request.remember),
    }
    return max(sizes, key=lambda name: sizes[name]), sum(sizes.values())
