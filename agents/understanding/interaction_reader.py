"""Classify texts by interaction mode with the vectors of the general embedder, and assess the classifications.

The same text always has the same classification; an unstable deployment needs more confidence.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from operator import is_

import numpy as np

from agents.modes.vector_spaces import encode_memory
from agents.ports.clock import Clock
from agents.ports.models import Embedder
from agents.rules.clustering.clustering import normalise_rows
from agents.rules.cues.intents import mode_of_intent
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from agents.rules.interaction.classifier import HISTORY_TURNS, InteractionClassifier
from agents.rules.interaction.decision import LeadingInteraction, apply_threshold, pool_votes, smooth_interaction
from agents.rules.interaction.stability import Stability, StabilitySource, assess_stability, assume_stable, week_of
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.assemble import AssembleRequest
from schemas.state.interaction import Interaction, InteractionCounts
from schemas.state.memories import Memory

HISTORY_TIMEOUT_S = 2.0
"""Seconds for classifying last turns that have just been stored: a context waits for it."""


class InteractionReader:
    """Texts in, interaction modes out."""

    def __init__(
        self, general: Callable[[], Embedder], classifier: InteractionClassifier, taxonomy: ModeTaxonomy
    ) -> None:
        """`general` returns the general embedder; it raises ModelMissing while that is not loaded."""
        self._general = general
        self._classifier = classifier
        self._taxonomy = taxonomy

    async def read(
        self, memory: Memory, *, intent: str | None = None, model: Interaction | None = None
    ) -> LeadingInteraction:
        """Classify a turn on its own, before the threshold is applied.

        `intent` and `model` are a language model's votes; the rules' own intent is a feature of the classifier. Raises
        Unavailable or ModelMissing while the general embedder does not answer.
        """
        try:
            # A turn that `general` has just embedded is in its cache: no second pass of the model.
            encoded = await encode_memory(self._general(), memory)
        except RuntimeError as refused:
            # The memory is found by words, and its interaction mode is not known.
            raise ModelMissing(f"the general model refuses the text: {refused}") from refused
        # The classifier knows vectors of length 1; that of a long text is a mean, and shorter.
        [vector] = normalise_rows(encoded.pooled[np.newaxis])
        by_intent = None if intent is None else mode_of_intent(intent, self._taxonomy.intents)
        probabilities = self._classifier.probabilities(memory.text, vector)
        return pool_votes(probabilities, by_intent, model, self._taxonomy.version)

    async def judge(
        self, request: AssembleRequest, turns: Sequence[Memory], stability: StabilitySource = assume_stable
    ) -> Interaction:
        """Classify a request's query in the light of the interaction modes of the user's last turns.

        Raises Unavailable or ModelMissing as `read` does, within seconds.
        """
        # The general embedder has no prefixes: `query` gives the vector of a passage, and without queueing.
        encoded = await self._general().query(request.query, boundary=request.scope.boundary)
        alone = self._classifier.probabilities(request.query, encoded.pooled)
        users = [turn for turn in turns if turn.role == "user"][-HISTORY_TURNS:]
        try:
            async with asyncio.timeout(HISTORY_TIMEOUT_S):
                # A turn that has just been stored may still have to be classified.
                history = [turn.reading.interaction or apply_threshold(await self.read(turn)) for turn in users]
        except TimeoutError as late:
            raise Unavailable("the last turns are not classified yet") from late
        current = pool_votes(self._classifier.in_conversation(alone, [turn.mode for turn in history]), None, None)
        return smooth_interaction(current, history, is_unstable=stability().is_fallback)


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
