"""Models that turn texts into vectors. Raise `Unavailable` where the same call may succeed later."""

from typing import Protocol

from schemas.embedders import EmbedderDescription
from schemas.modes import Fingerprint, Mode
from schemas.vectors import Encoded


class Embedder(Protocol):
    """One model that turns texts into vectors. Prefixes are the adapter's work, never the caller's."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where passages lie. Stable while the process lives."""
        ...

    async def passage(self, text: str) -> Encoded:
        """Embed a text that is kept. Runs off the event loop; as many at once as there are cores."""
        ...

    async def query(self, text: str) -> Encoded:
        """Embed a question, ahead of any passages that are waiting."""
        ...


class Embedders(Protocol):
    """All embedders that modes may name. Nothing is loaded before it is asked for."""

    def described(self, name: str) -> EmbedderDescription | None:
        """The preset or configured embedder of that name, or whose model has it; None for a name that is neither."""
        ...

    def of(self, mode: Mode) -> Embedder:
        """The loaded embedder of a mode, with the mode's prefixes. Begins to load it where it is not yet.

        Raises ModelMissing, whose text says why, while it is not loaded.
        """
        ...

    def for_text(self, mode: Mode, text: str) -> Embedder:
        """The same, once the model is loaded that reads this text: a mode may have one for each language.

        Raises ModelMissing as `of` does.
        """
        ...

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """The model that a mode has for languages unlike that of this text, and that reads any text.

        None where one model reads all of them, and while one is not loaded: `of` is all that there is then.
        """
        ...
