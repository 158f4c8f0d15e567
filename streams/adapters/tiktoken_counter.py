"""Counts tokens in `cl100k_base`. The encoding is loaded by the first count, in a thread."""

import asyncio
import base64
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from tiktoken import Encoding

from schemas.failures import Unavailable

ENCODING_PATH = Path("litellm_core_utils", "tokenizers", "9b5ad71b2ce5302211f9c61530b329a4922fc6a4")
"""The file in the package: tiktoken's cache name for it, a hash of its address."""

ENCODING_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""The file's hash in `tiktoken_ext.openai_public`."""

SPLIT_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""The split before encoding, from `tiktoken_ext.openai_public.cl100k_base`."""


def encoding_file() -> Path:
    """Return the path of the file. Raises FileNotFoundError without the package."""
    package = find_spec("litellm")
    if package is None or package.origin is None:
        raise FileNotFoundError("the package litellm is not installed; it has the encoding: install requirements.lock")
    return Path(package.origin).parent / ENCODING_PATH


def load_encoding(file: Path) -> Encoding:
    """Read the encoding, without special tokens. Raises OSError for a missing file, ValueError for another one."""
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != ENCODING_SHA256:
        raise ValueError(f"{file.name} does not hold the tokens of cl100k_base")
    pairs = (entry.split() for entry in content.splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return Encoding("cl100k_base", pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={})


OFFLOAD_CHARS = 8192
"""Total characters from which a count runs in a thread: these take 1 to 2 ms."""

MAX_PIECE_CHARS = 200_000
"""Characters to encode in one call. tiktoken crashes with a stack overflow on a million spaces in a row, but not on
700,000. A longer text is split after a line break if it has one: before a visible character that changes no count,
elsewhere by a token or so."""


class TiktokenCounter:
    """Implements `agents.ports.models.TokenCounter`."""

    def __init__(self, locate: Callable[[], Path] = encoding_file) -> None:
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
        with self._load_lock:
            if self._encoding is None:
                try:
                    self._encoding = load_encoding(self._locate())
                except (OSError, ValueError) as problem:
                    raise Unavailable(f"no tokenizer: {problem}") from problem
            encode = self._encoding.encode_ordinary
        return [sum(len(encode(piece)) for piece in _pieces(text)) for text in texts]


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > MAX_PIECE_CHARS:
        end = text.rfind("\n", start, start + MAX_PIECE_CHARS) + 1 or start + MAX_PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]
