"""Texts in, their numbers of tokens in `cl100k_base` out. The encoding is loaded by the first count, in a thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tiktoken import Encoding

from schemas.failures import Unavailable
from streams.adapters.tokens.cl100k import encoding_file, load_encoding

OFFLOAD_CHARS = 8192
"""Characters that are counted off the event loop, in all: as many take one or two milliseconds."""

MAX_PIECE_CHARS = 200_000
"""Characters that are encoded at once. tiktoken dies of a stack overflow over a run of a million spaces, and bears
700,000. A longer text is cut after a line break, where it has one: that changes no count before a visible character,
and elsewhere by a token or so."""


class TiktokenCounter:
    """Implements `agents.ports.tokenizer.TokenCounter`."""

    def __init__(self, locate: Callable[[], Path] = encoding_file) -> None:
        """Take what finds the encoding's file."""
        self._locate = locate
        self._loading = threading.Lock()
        self._encoding: Encoding | None = None

    async def count(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, in order; an empty text has none.

        Raises Unavailable where the file is missing or is another one; the next call looks again.
        """
        if self._encoding is None or sum(map(len, texts)) >= OFFLOAD_CHARS:
            return await asyncio.to_thread(self._count, texts)
        return self._count(texts)

    def _count(self, texts: Sequence[str]) -> list[int]:
        encode = self._loaded().encode_ordinary
        return [sum(len(encode(piece)) for piece in _pieces(text)) for text in texts]

    def _loaded(self) -> Encoding:
        with self._loading:
            if self._encoding is None:
                try:
                    self._encoding = load_encoding(self._locate())
                except (OSError, ValueError) as problem:
                    raise Unavailable(f"no tokenizer: {problem}") from problem
            return self._encoding


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > MAX_PIECE_CHARS:
        end = text.rfind("\n", start, start + MAX_PIECE_CHARS) + 1 or start + MAX_PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]
