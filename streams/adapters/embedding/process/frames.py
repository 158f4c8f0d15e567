"""What goes over the pipes between a worker and its embedder's process: frames of a header and some bytes.

A question is an id, a kind, a prefix and a text; an answer is the id, whether it succeeded, and the vectors or the
error. The first answer, with the id 0, is what the process has loaded, or why it could not.
"""

import struct
from typing import NamedTuple

import numpy as np

from schemas.vectors import Encoded
from streams.adapters.embedding.inference.token_grid import from_grid, to_grid

HEADER = struct.Struct("<IBI")
"""Id, kind, and how many bytes follow."""

SIZES = struct.Struct("<IIIII")
"""How many shares and how many numbers of the pooled vector follow, the token vectors' rows and columns, and 1 for
those of a question. Whole words, so that the numbers behind them are where a processor wants them."""

LENGTH = struct.Struct("<I")
"""How many bytes of a question are its prefix; the text follows."""

HELLO, PASSAGE, QUERY, VECTORS, ERROR = range(5)
"""Kinds: the child's first frame, with its fingerprint; two questions; two answers."""


class Header(NamedTuple):
    """The head of a frame."""

    number: int
    kind: int
    length: int


def frame(number: int, kind: int, content: bytes) -> bytes:
    """A frame, ready to be written."""
    return HEADER.pack(number, kind, len(content)) + content


def header(data: bytes) -> Header:
    """The head of a frame from its first bytes."""
    return Header(*HEADER.unpack(data))


def asked(prefix: str, text: str) -> bytes:
    """A question as bytes; lone surrogates, which JSON can carry, pass."""
    before, kept = (part.encode("utf-8", "surrogatepass") for part in (prefix, text))
    return LENGTH.pack(len(before)) + before + kept


def question(data: bytes) -> tuple[str, str]:
    """Prefix and text from their bytes."""
    [length] = LENGTH.unpack_from(data)
    start = LENGTH.size + length
    before, kept = (part.decode("utf-8", "surrogatepass") for part in (data[LENGTH.size : start], data[start:]))
    return before, kept


def packed(encoded: Encoded) -> bytes:
    """Vectors as bytes: the shares, the pooled vector, the token vectors.

    A passage's token vectors are integers of the grid; a question's are as they are, and their places follow.
    """
    rows, dim = encoded.tokens.shape
    shares = np.zeros(0, np.float32) if encoded.shares is None else encoded.shares
    sizes = SIZES.pack(len(shares), len(encoded.pooled), rows, dim, encoded.spans is not None)
    numbers = sizes + shares.tobytes() + encoded.pooled.tobytes()
    if encoded.spans is None:
        return numbers + to_grid(encoded.tokens).tobytes()
    return numbers + encoded.tokens.tobytes() + encoded.spans.tobytes()


def unpacked(data: bytes) -> Encoded:
    """Vectors from their bytes; all but a passage's token vectors are read-only views of these."""
    count, dim, rows, token_dim, is_question = SIZES.unpack_from(data)
    shares = np.frombuffer(data, np.float32, count, SIZES.size) if count else None
    pooled = np.frombuffer(data, np.float32, dim, SIZES.size + 4 * count)
    start, shape = SIZES.size + 4 * (count + dim), (rows, token_dim)
    if not is_question:
        return Encoded(pooled, from_grid(np.frombuffer(data, np.int8, offset=start).reshape(shape)), shares)
    tokens = np.frombuffer(data, np.float32, rows * token_dim, start).reshape(shape)
    spans = np.frombuffer(data, np.int32, offset=start + tokens.nbytes).reshape(rows, 2)
    return Encoded(pooled, tokens, shares, spans)
