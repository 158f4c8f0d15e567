"""What the texts of one request say about rules that no longer hold; each text is read once.

Reading takes up to 30 ms for the longest text: texts are read before the snapshot of a context, with pauses, and the
snapshot finds what they say here.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache

from agents.ports.stores import Memories
from agents.rules.context.expiry import expired_spans
from agents.rules.context.taking_back import taken_back_spans
from agents.rules.context.visible_memories import labels_without
from agents.rules.cues.labels import NO_LABELS, SentenceLabel, sentences_with_labels
from agents.rules.text.overlap import content_stems
from agents.rules.text.sentences import Span
from schemas.state.memories import Memory


class RuleTexts:
    """Turns in, what of them no longer holds `today`."""

    def __init__(self, memories: Memories, today: date) -> None:
        self.sentences = cache(sentences_with_labels)
        self._memories = memories
        self._today = today
        self._turns: dict[str, Memory | None] = {}
        self._expired = cache(expired_spans)
        self._taken_back = cache(taken_back_spans)
        self._stems = cache(content_stems)
        self._labels: dict[tuple[str, tuple[tuple[int, int], ...]], SentenceLabel] = {}

    def turn(self, memory_id: str) -> Memory | None:
        """Return a turn without its resources, None if there is none; as it was when it was first asked for."""
        if memory_id not in self._turns:
            found = self._memories.get(memory_id)
            self._turns[memory_id] = found and found.model_copy(update={"resources": ()})
        return self._turns[memory_id]

    def expired(self, turn: Memory) -> list[Span]:
        """Return the sentences that are past their own date."""
        return self._expired(turn.text, turn.occurred_at, self._today)

    def taken_back(
        self, turn: Memory, labels: SentenceLabel, statements: Iterable[str], *, by_number: bool
    ) -> list[Span]:
        """Return the sentences with these labels that a statement takes back."""
        return self._taken_back(turn.text, labels, tuple(map(self._stems, statements)), by_number=by_number)

    def labels(self, turn: Memory, without: Iterable[tuple[int, int]] = ()) -> SentenceLabel:
        """Return the labels of a turn without these spans of its text."""
        key = turn.memory_id, tuple(without)
        if key not in self._labels:
            self._labels[key] = labels_without(turn, key[1])
        return self._labels[key]

    def lost_labels(self, turn: Memory, spans: Sequence[Span]) -> SentenceLabel:
        """Return the labels that a turn has by these sentences alone."""
        return self.labels(turn) & ~self.labels(turn, spans) if spans else NO_LABELS
