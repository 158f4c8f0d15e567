"""Models: embedders, language models, a cross-encoder, a tokenizer. Adapters and fakes pass the same contract tests."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from modestream_client.results import EmbedderStatus

from schemas.models.language import AnswerT, Chat, ChatAnswer, Heard, ModelAnswer, OnText, Prompt
from schemas.models.vectors import Encoded
from schemas.state.modes import EmbedderDescription, Fingerprint, Mode


class Embedder(Protocol):
    """One model. The adapter adds the prefixes."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Everything that determines the vectors of passages. Constant during the life of the process."""

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        """Embed a text to be stored. Runs off the event loop, with one call per core at once."""

    async def query(self, text: str, *, boundary: str = "") -> Encoded:
        """Embed a question, ahead of queued passages, or raise `Unavailable` after some seconds."""


class Embedders(Protocol):
    """All embedders that modes may name, loaded on first use."""

    def described(self, name: str) -> EmbedderDescription | None:
        """Return the preset or configured embedder of this name or model name; None if there is none."""

    def available(self) -> Sequence[EmbedderDescription]:
        """Return every embedder that a mode may name, once each: presets first."""

    def prepare(self, name: str) -> None:
        """Start to load an embedder's model, after a fetch where its files are missing; repeat a failed attempt.

        A name that `described` does not know changes nothing.
        """

    def standing(self, name: str) -> EmbedderStatus:
        """Return whether an embedder's model is loaded, or why not, and how far its fetch is."""

    def of(self, mode: Mode) -> Embedder:
        """Return the loaded embedder of a mode, with the mode's prefixes; start loading it if necessary.

        Raises ModelMissing, with the reason, while it is not loaded.
        """

    def for_text(self, mode: Mode, text: str) -> Embedder:
        """Return the embedder once the model for this text's language is loaded: a mode may have several.

        It embeds parts of the text by that model too, whatever the language of a part looks like.
        Raises ModelMissing as `of` does.
        """

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """Return the mode's multilingual model, which embeds texts of other languages than this text's.

        None if one model reads all languages, and while a model is not loaded: only `of` can be used then.
        """


class LanguageModel(Protocol):
    """Models behind named profiles; a step (`understand.turn`) or its role (`understand`) selects the profile.

    `profile` names one instead, whatever step and role would select. No other one takes its place: of a profile that
    there is not, `ask` raises `Unavailable`. Calls may be concurrent; each profile limits their number.
    """

    async def ask(
        self, step: str, role: str, prompt: Prompt, answer: type[AnswerT], profile: str | None = None
    ) -> ModelAnswer[AnswerT]:
        """Return a validated answer, after retries and at most one repair.

        Raises `Unavailable` if the same prompt may succeed later: the model is down or too slow, limits the rate, has
        an open circuit breaker, or has no valid credentials; the message says what to do. Raises `Unanswerable` if its
        answers are invalid or it refuses this text.
        """

    async def continue_chat(
        self, step: str, role: str, chat: Chat, profile: str | None = None, on_text: OnText | None = None
    ) -> ChatAnswer:
        """Return the answer to a conversation, in the model's own words, after retries.

        `on_text` gets its pieces as they come, in this event loop; after the first one nothing is tried again, and each
        may take as long as a whole answer without `on_text`. Raises as `ask`, `Unavailable` also for an answer that
        breaks off, and `Unanswerable` also for one without a text. Of a schema only the model is told.
        """

    async def transcribe(self, step: str, role: str, sound: bytes, name: str) -> Sequence[Heard]:
        """Return what is said in a sound or a film, in order; the ending of `name` says its format.

        It may take ten times as long as an answer. Raises as `ask`.
        """

    def has_role(self, role: str) -> bool:
        """True if a profile is set for this role itself: `default` hears and sees only if it says so."""

    def available(self, step: str, role: str, profile: str | None = None) -> bool:
        """True if a call of this step may be made now; False if no profile is set."""

    async def until_available(self, step: str, role: str, profile: str | None = None) -> None:
        """Wait until `available`. After an outage one waiting caller may probe; the others keep waiting.

        Never returns if no profile is set.
        """

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        """Return per profile `model`, `state` (closed, open, half_open), `calls`, `failures` and `last_error`.

        Further `tokens_in`, `tokens_out`, and `cost_usd` where prices are known.

        Shown by `health`; contains no secret.
        """

    async def close(self) -> None:
        """Release connections; no call may follow."""


class CrossEncoder(Protocol):
    """Reads pairs of a question and a text, in English; what is beyond 512 tokens of a pair is not read."""

    async def scores(self, question: str, texts: Sequence[str], *, boundary: str = "") -> Sequence[float]:
        """Return the log-odds that each text answers the question, in the order of the texts.

        The first call loads the model and waits for it; cancelling it drops the pairs that are not read yet. Users
        share it fairly by `boundary`. Raises ModelMissing, with the reason, if there is none, `Unavailable` if the same
        call may succeed later, RuntimeError if the model fails on a text.
        """

    async def close(self) -> None:
        """End its process; no call may follow."""


class TokenCounter(Protocol):
    """Counts tokens. The count of a text does not depend on the other texts of the call.

    Special tokens are counted as ordinary text. The counts of lines that begin with a bracket and end in a line break
    add up to the count of their concatenation.
    """

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, in the order of `texts`; an empty text has none.

        Long work runs off the event loop. Raises Unavailable while the tokenizer can't be loaded.
        """
