"""A request for a context in, a prompt of three messages that fits its token budget out, and an account of it.

Pinned memories come first, then the last turns of the conversation, the newest first, as far as their budget goes.
The whole prompt, counted as it is sent, never has more tokens than were asked for.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from agents.ports import Modes
from agents.rules.budgets import scaled
from agents.rules.filling import Filling, Sized
from agents.rules.lanes import asked_modes
from agents.rules.rendering import END_OF_LINE, line, messages
from agents.rules.window import last_turns, turns_in
from agents.token_port import TokenCounter
from agents.word_port import WordIndex
from schemas.assemble import AssembleRequest, AssembleResult, Message
from schemas.failures import Rejected
from schemas.interaction import Interaction
from schemas.memories import Memory
from schemas.scopes import ANY, PROJECT
from schemas.vectors import Where

Warnings = list[tuple[str, str]]
"""Codes and messages."""

Judge = Callable[[AssembleRequest, int, Sequence[Memory]], Awaitable[Interaction]]
"""Tells what a request is for, from its query, its partition and the conversation's last turns, newest last."""

TURNS_JUDGED = 12
"""Last turns that the judge sees: the user's last three are among them, unless tools have said much in between."""

PINS_NAMED = 10
"""Unknown pins that a warning names."""

LONGEST_PIN = 80
"""Characters of a pin in a warning; an id has 36."""


class Assemble:
    """Answers assemble requests. Writes nothing; what it reads is reached through ports."""

    def __init__(
        self,
        words: WordIndex,
        record: Callable[[int, str], Memory | None],
        tokens: TokenCounter,
        interaction: Judge,
        modes: Modes,
    ) -> None:
        """Take the ports; `record` reads by partition and memory id."""
        self._words = words
        self._record = record
        self._tokens = tokens
        self._interaction = interaction
        self._modes = modes

    async def answer(self, request: AssembleRequest, partition: int) -> tuple[AssembleResult, Warnings]:
        """Assemble a context.

        Raises Rejected, `unknown_mode`, or `invalid_value` where the system prompt leaves no room; Unavailable while
        there is no tokenizer.
        """
        self._refuse_unknown_modes(request, partition)
        where = Where(boundary=request.scope.boundary, scope=request.scope.fields())
        roster = self._words.roster(partition, where.boundary)
        turns = last_turns(roster, where, request.conversation_id, request.budget_tokens)
        pins = self._pinned(request, partition, where)
        interaction = await self._judged(request, partition, turns)
        budget = scaled(interaction.mode, request.budget_tokens)
        filling = Filling(await self._room(request))
        filling.offer("retrieved_evidence", await self._sized(pins), filling.left)
        await self._fill_window(filling, partition, _without(turns, request.pins), budget["recent_window"])
        prompt, total = await self._fitting(request, filling)
        result = AssembleResult(
            messages=prompt,
            sections=filling.sections(),
            interaction_mode=interaction.mode,
            interaction_confidence=interaction.confidence,
            budget=budget,
            tokens={"total": total, **filling.tokens()},
            dropped=filling.dropped,
        )
        return result, _unknown_pins(request, pins)

    def _refuse_unknown_modes(self, request: AssembleRequest, partition: int) -> None:
        declared = self._modes.get(partition, request.scope.boundary)
        asked_modes(ANY if request.mode is None else request.mode, declared, request.scope.fields()[PROJECT])

    def _pinned(self, request: AssembleRequest, partition: int, where: Where) -> list[Memory]:
        """The pinned memories that this request may see, newest first."""
        if not request.pins:
            return []
        roster = self._words.roster(partition, where.boundary)
        admitted = roster.admitted(where)
        numbers = {pin: roster.number_of.get(pin) for pin in request.pins}
        seen = [pin for pin, number in numbers.items() if number is not None and admitted[number]]
        found = self._records(partition, seen)
        return sorted(found, key=lambda memory: (memory.occurred_ms, memory.source), reverse=True)

    async def _judged(self, request: AssembleRequest, partition: int, turns: Sequence[str]) -> Interaction:
        if request.interaction_mode is not None:
            return Interaction(mode=request.interaction_mode, confidence=1.0)
        return await self._interaction(request, partition, self._records(partition, turns[-TURNS_JUDGED:]))

    async def _room(self, request: AssembleRequest) -> int:
        """The tokens that are left for memories."""
        empty = sum(await self._counts(messages(request.system_prompt, ())))
        if empty > request.budget_tokens:
            message = f"{empty} tokens without any memory, where {request.budget_tokens} are allowed in all"
            raise Rejected("invalid_value", message, "system_prompt")
        return request.budget_tokens - empty

    async def _fill_window(self, filling: Filling, partition: int, turns: Sequence[str], budget: int) -> None:
        room = min(budget, filling.left)
        older = len(turns) - min(turns_in(room), len(turns))
        filling.drop(turns[:older])
        filling.offer("recent_window", await self._sized(self._records(partition, turns[older:])[::-1]), room)

    async def _fitting(self, request: AssembleRequest, filling: Filling) -> tuple[list[Message], int]:
        """The prompt and its tokens, with what is too much given up: parts of a text may count less than the text."""
        while True:
            prompt = messages(request.system_prompt, filling.lines())
            total = sum(await self._counts(prompt))
            if total <= request.budget_tokens or not filling.give_up_one():
                return prompt, total

    def _records(self, partition: int, memory_ids: Iterable[str]) -> list[Memory]:
        """The records that are there, in the order of their ids."""
        found = (self._record(partition, memory_id) for memory_id in memory_ids)
        return [memory for memory in found if memory is not None]

    async def _sized(self, memories: Sequence[Memory]) -> list[Sized]:
        lines = [line(memory) for memory in memories]
        counts = await self._tokens.count([text + END_OF_LINE for text in lines])
        return [Sized(*found) for found in zip(memories, lines, counts, strict=True)]

    async def _counts(self, prompt: Sequence[Message]) -> list[int]:
        return await self._tokens.count([message.content for message in prompt])


def _without(memory_ids: Iterable[str], others: Iterable[str]) -> list[str]:
    left_out = set(others)
    return [memory_id for memory_id in memory_ids if memory_id not in left_out]


def _unknown_pins(request: AssembleRequest, found: Sequence[Memory]) -> Warnings:
    """One warning that names the first pins that were ignored."""
    unknown = _without(dict.fromkeys(request.pins), (memory.memory_id for memory in found))
    if not unknown:
        return []
    named = ", ".join(pin[:LONGEST_PIN] for pin in unknown[:PINS_NAMED])
    return [("unknown_pin", f"not in this scope: {named}" + (", …" if len(unknown) > PINS_NAMED else ""))]
