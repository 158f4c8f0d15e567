"""Models that turn texts into vectors. Calls raise `Unavailable` if the same call may succeed later.

`boundary` is that of the text's user: users share a model fairly. It has no effect on the vectors.
"""

from collections.abc import Sequence
from typing import Protocol

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
