"""A token counter without a tokenizer: each word is a token, and so is each other visible character."""

import re
from collections.abc import Sequence

from schemas.failures import Unavailable

TOKEN = re.compile(r"\w+|[^\w\s]")


class FakeTokens:
    """Implements `agents.ports.models.TokenCounter`. While `outage` is true every call raises `Unavailable`."""

    def __init__(self) -> None:
        self.outage = False

    async def count(self, texts: Sequence[str]) -> list[int]:
        if self.outage:
            raise Unavailable("the tokenizer is out of order")
        return [len(TOKEN.findall(text)) for text in texts]
