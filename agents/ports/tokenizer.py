"""Token counts of a language model's tokenizer."""

from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts tokens. The count of a text does not depend on the other texts of the call.

    Special tokens are counted as ordinary text. The counts of lines that begin with a bracket and end in a line break
    add up to the count of their concatenation.
    """

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, in the order of `texts`; an empty text has none.

        Long work runs off the event loop. Raises Unavailable while the tokenizer can't be loaded.
        """
