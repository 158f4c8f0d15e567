"""The encoding `cl100k_base`, from a file in the package `litellm`, which is not imported; no network.

`tiktoken.get_encoding` would download the file, and write it to a folder of its own.
"""

import base64
import hashlib
from importlib.util import find_spec
from pathlib import Path

from tiktoken import Encoding

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
