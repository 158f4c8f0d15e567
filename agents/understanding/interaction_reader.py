"""What texts are for: the classifier over the general embedder's vectors, and the deployment's recent answers.

A text comes in; its interaction mode leaves, with how sure that is. Guaranteed: the same text is read the same way,
whatever others write. `is_unstable` says whether the deployment's answers are to be trusted less at present.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from agents.ports.embedder import Embedder
from agents.rules.interaction.classifier import InteractionClassifier
from agents.rules.interaction.drift import DRIFT_WINDOW, has_drifted, has_error_spike
from agents.rules.interaction.smoothing import HISTORY_TURNS, smooth_interaction
from agents.rules.interaction.voting import apply_threshold, pool_votes
from agents.rules.text.embedding_text import embedding_text
from schemas.assemble import AssembleRequest
from schemas.interaction import Interaction, InteractionMode
from schemas.memories import Memory


class InteractionReader:
    """Reads texts, and watches what it reads."""

    def __init__(self, general: Callable[[], Embedder], classifier: InteractionClassifier) -> None:
        """Take what gives the general embedder (it raises ModelMissing while that is not loaded) and the classifier."""
        self._general = general
        self._classifier = classifier
        self._read: deque[InteractionMode] = deque(maxlen=2 * DRIFT_WINDOW)
        self._wrong: deque[bool] = deque(maxlen=2 * DRIFT_WINDOW)

    async def read(
        self, text: str, embedded: str, *, intent: str | None = None, model: Interaction | None = None
    ) -> Interaction:
        """What a text is for by itself, whatever the threshold; `embedded` is the text as it is indexed.

        `intent` and `model` are a language model's votes; the rules' own intent is among what the classifier weighs.
        Raises Unavailable, or ModelMissing, while the general embedder can't answer.
        """
        encoded = await self._general().passage(embedded)
        if encoded.interaction_probabilities is not None and text == embedded:
            return pool_votes(encoded.interaction_probabilities.astype(np.float64), intent, model)
        return pool_votes(self._classifier.probabilities(text, encoded.pooled), intent, model)

    async def judge(self, request: AssembleRequest, turns: Sequence[Memory]) -> Interaction:
        """What a request is for: its query, in the light of what the user's last turns were for."""
        # The general embedder has no prefixes, so a question's vector is a passage's, and waits for none.
        encoded = await self._general().query(request.query)
        now = pool_votes(self._classifier.probabilities(request.query, encoded.pooled), None, None)
        users = [turn for turn in turns if turn.role == "user"][-HISTORY_TURNS:]
        return smooth_interaction(now, [await self._known(turn) for turn in users], is_unstable=self.is_unstable)

    async def _known(self, turn: Memory) -> Interaction:
        """What a stored turn is for: one that was stored a moment ago may not have been read yet."""
        return turn.reading.interaction or apply_threshold(await self.read(turn.text, embedding_text(turn)))

    def record_classification(self, interaction: Interaction) -> None:
        """Count a turn that was classified, by what leads: a fallback must not be what keeps itself alive."""
        self._read.append(interaction.mode)
        self._wrong.append(False)

    def record_correction(self) -> None:
        """Count a correction by command: an error among the latest classifications."""
        if self._wrong:
            self._wrong[-1] = True

    @property
    def is_unstable(self) -> bool:
        """Whether the deployment's classifications drift, or are corrected more than twice as often as before."""
        read, wrong = list(self._read), list(self._wrong)
        if has_drifted(read[-DRIFT_WINDOW:], read[:-DRIFT_WINDOW]):
            return True
        return has_error_spike(
            sum(wrong[-DRIFT_WINDOW:]),
            len(wrong[-DRIFT_WINDOW:]),
            sum(wrong[:-DRIFT_WINDOW]),
            len(wrong[:-DRIFT_WINDOW]),
        )
