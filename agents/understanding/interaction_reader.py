"""Classify texts by interaction mode with the vectors of the general embedder, and assess the classifications.

The same text always has the same classification; an unstable deployment needs more confidence.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import is_

import numpy as np

from agents.modes.vector_spaces import encode_memory
from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex
from agents.ports.models import Embedder
from agents.ports.stores import Memories
from agents.rules.clustering.clustering import normalise_rows
from agents.rules.cues.intents import mode_of_intent
from agents.rules.cues.labels import SentenceLabel
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from agents.rules.interaction.classifier import InteractionClassifier
from agents.rules.interaction.stability import (
    HISTORY_TURNS,
    MAX_WEEK_TURNS,
    LeadingInteraction,
    Stability,
    StabilitySource,
    apply_threshold,
    assess_own_weeks,
    assess_stability,
    assume_stable,
    pool_votes,
    smooth_interaction,
)
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.assemble import AssembleRequest
from schemas.moments import milliseconds_of, start_of_week, week_of
from schemas.state.interaction import Interaction, InteractionCounts
from schemas.state.memories import Memory

HISTORY_TIMEOUT_S = 2.0
"""Seconds for classifying last turns that have just been stored: a context waits for it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InteractionReader:
    """Texts in, interaction modes out.

    `general` returns the general embedder; it raises ModelMissing while that is not loaded.
    """

    general: Callable[[], Embedder]
    classifier: InteractionClassifier
    taxonomy: ModeTaxonomy

    async def read(
        self, memory: Memory, *, intent: str | None = None, model: Interaction | None = None
    ) -> LeadingInteraction:
        """Classify a turn on its own, before the threshold is applied.

        `intent` and `model` are a language model's votes; the rules' own intent is a feature of the classifier. Raises
        Unavailable or ModelMissing while the general embedder does not answer.
        """
        try:
            # A turn that `general` has just embedded is in its cache: no second pass of the model.
            encoded = await encode_memory(self.general(), memory)
        except RuntimeError as refused:
            # The memory is found by words, and its interaction mode is not known.
            raise ModelMissing(f"the general model refuses the text: {refused}") from refused
        # The classifier knows vectors of length 1; that of a long text is a mean, and shorter.
        [vector] = normalise_rows(encoded.pooled[np.newaxis])
        by_intent = None if intent is None else mode_of_intent(intent, self.taxonomy.intents)
        probabilities = self.classifier.probabilities(memory.text, vector)
        return pool_votes(probabilities, by_intent, model, self.taxonomy.version)

    async def judge(
        self, request: AssembleRequest, turns: Sequence[Memory], stability: StabilitySource = assume_stable
    ) -> Interaction:
        """Classify a request's query, smoothed by the interaction modes of the user's last turns.

        Raises Unavailable or ModelMissing as `read` does, within seconds.
        """
        # The general embedder has no prefixes: `query` gives the vector of a passage, and without queueing.
        encoded = await self.general().query(request.query, boundary=request.scope.boundary)
        current = pool_votes(self.classifier.probabilities(request.query, encoded.pooled), None, None)
        users = [turn for turn in turns if turn.role == "user"][-HISTORY_TURNS:]
        try:
            async with asyncio.timeout(HISTORY_TIMEOUT_S):
                # A turn that has just been stored may still have to be classified.
                history = [turn.reading.interaction or apply_threshold(await self.read(turn)) for turn in users]
        except TimeoutError as late:
            raise Unavailable("the last turns are not classified yet") from late
        return smooth_interaction(current, history, is_unstable=stability(request.scope.boundary).is_fallback)


class AssessStability:
    """Counts in, stability out. Writes nothing."""

    def __init__(self, counts: Callable[[], Iterable[InteractionCounts]], clock: Clock) -> None:
        """`counts` reads those of every served partition."""
        self._counts = counts
        self._clock = clock
        self._last: tuple[int, list[InteractionCounts], Stability] = (-1, [], assume_stable())

    def __call__(self) -> Stability:
        """Return the stability now; it is computed again when a count or the week has changed."""
        week, counts = week_of(self._clock.now()), list(self._counts())
        last_week, last, stability = self._last
        if week == last_week and len(counts) == len(last) and all(map(is_, counts, last)):
            return stability
        self._last = (week, counts, assess_stability(counts, week))
        return self._last[2]


OWN_WEEKS_S = 600.0
"""Seconds for which a user's own weeks are kept: they are read from up to 400 records."""

MAX_OWN_WEEKS = 1000
"""Users whose own weeks are kept."""


class UserStability:
    """The deployment's stability; where it has too few users, that of the asking user's own weeks. Writes nothing."""

    def __init__(
        self, deployment: Callable[[], Stability], words: LexicalIndex, memories: Memories, clock: Clock
    ) -> None:
        self._deployment = deployment
        self._words = words
        self._memories = memories
        self._clock = clock
        self._own: dict[str, tuple[datetime, Stability]] = {}

    def __call__(self, boundary: str) -> Stability:
        """Return the stability for a user; own weeks may be `OWN_WEEKS_S` old."""
        if not (deployment := self._deployment()).has_few_users:
            return deployment
        now = self._clock.now()
        at, stability = self._own.get(boundary, (now, None))
        if stability is None or now - at > timedelta(seconds=OWN_WEEKS_S) or week_of(now) != week_of(at):
            # The latest turns of the user in this week and the last.
            week = week_of(now)
            columns = self._words.memory_columns(boundary)
            times = columns.columns.occurred_ms
            is_turn = columns.columns.live & ((columns.columns.labels & SentenceLabel.USER.value) != 0)
            latest: list[int] = []
            for begin in (week - 1, week):
                start_ms, end_ms = (milliseconds_of(start_of_week(each)) for each in (begin, begin + 1))
                inside = np.flatnonzero(is_turn & (times >= start_ms) & (times < end_ms))
                latest += inside[np.argsort(times[inside], kind="stable")][-MAX_WEEK_TURNS:].tolist()
            records = (self._memories.get(columns.id_of[number]) for number in latest)
            stability = assess_own_weeks([record for record in records if record is not None], week_of(now))
            self._own.pop(boundary, None)
            self._own[boundary] = now, stability
            if len(self._own) > MAX_OWN_WEEKS:
                del self._own[next(iter(self._own))]
        return stability
