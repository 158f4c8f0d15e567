"""The encoding `cl100k_base`, from the file that the `litellm` package carries: no network, and litellm not imported.

`tiktoken.get_encoding` is not used: it downloads the file, and writes it into a folder of its own.
"""

import base64
import hashlib
from importlib.util import find_spec
from pathlib import Path

from tiktoken import Encoding

ENCODING_PATH = Path("litellm_core_utils", "tokenizers", "9b5ad71b2ce5302211f9c61530b329a4922fc6a4")
"""Where the tokens lie in the package: the name by which tiktoken would cache the file, from its address."""

ENCODING_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""Of the file: the hash that `tiktoken_ext.openai_public` demands of it."""

SPLIT_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""How a text is split before it is encoded: `tiktoken_ext.openai_public.cl100k_base`."""


def encoding_file() -> Path:
    """The file of the installed package. Raises FileNotFoundError where there is no such package."""
    package = find_spec("litellm")
    if package is None or package.origin is None:
        raise FileNotFoundError("the package litellm is not installed")
    return Path(package.origin).parent / ENCODING_PATH


def load_encoding(file: Path) -> Encoding:
    """The encoding without special tokens. Raises OSError for no file, ValueError for another one."""
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != ENCODING_SHA256:
        raise ValueError(f"{file.name} does not hold the tokens of cl100k_base")
    pairs = (entry.split() for entry in content.splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return Encoding("cl100k_base", pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={})
