"""Counts tokens in `cl100k_base`. The encoding is loaded by the first count, in a thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tiktoken import Encoding

from schemas.failures import Unavailable
from streams.adapters.tokens.cl100k import encoding_file, load_encoding

OFFLOAD_CHARS = 8192
"""Total characters from which a count runs in a thread: these take 1 to 2 ms."""

MAX_PIECE_CHARS = 200_000
"""Characters to encode in one call. tiktoken crashes with a stack overflow on a million spaces in a row, but not on
700,000. A longer text is split after a line break if it has one: before a visible character that changes no count,
elsewhere by a token or so."""


class TiktokenCounter:
    """Implements `agents.ports.tokenizer.TokenCounter`."""

    def __init__(self, locate: Callable[[], Path] = encoding_file) -> None:
        """Take the function that finds the encoding's file."""
        self._locate = locate
        self._load_lock = threading.Lock()
        self._encoding: Encoding | None = None

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, in order; an empty text has none.

        Raises Unavailable if the file is missing or has other content; the next call tries again.
        """
        if self._encoding is None or sum(map(len, texts)) >= OFFLOAD_CHARS:
            return await asyncio.to_thread(self._count, texts)
        return self._count(texts)

    def _count(self, texts: Sequence[str]) -> list[int]:
        encode = self._load().encode_ordinary
        return [sum(len(encode(piece)) for piece in _pieces(text)) for text in texts]

    def _load(self) -> Encoding:
        with self._load_lock:
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
