"""The door to a tokenizer: how much of a language model's context a text takes."""

from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts tokens. The same text always has the same count, whatever stands beside it.

    No part of a text is special: what a tokenizer keeps for its own marks is counted as the characters that it is.
    The counts of lines that end in a line break and begin with a bracket add up to that of their text.
    """

    async def count(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, in the order of `texts`; an empty text has none.

        Long work runs off the event loop. Raises Unavailable while the tokenizer can't be loaded.
        """
        ...
