"""What goes over the pipes between a worker and its embedder's process: frames of a header and some bytes.

A question is an id, a kind, a prefix and a text; an answer is the id, whether it succeeded, and the vectors or the
error. The first answer, with the id 0, is what the process has loaded, or why it could not.
"""

import struct
from typing import NamedTuple

import numpy as np

from schemas.vectors import Encoded
from streams.adapters.embedding.inference.token_grid import dequantise_tokens, quantise_tokens

FRAME_HEADER = struct.Struct("<IBI")
"""Id, kind, and how many bytes follow."""

VECTOR_SIZES = struct.Struct("<IIIII")
"""How many shares and how many numbers of the pooled vector follow, the token vectors' rows and columns, and 1 for
those of a question. Whole words, so that the numbers behind them are where a processor wants them."""

PREFIX_LENGTH = struct.Struct("<I")
"""How many bytes of a question are its prefix; the text follows."""

HELLO, PASSAGE, QUERY, VECTORS, ERROR = range(5)
"""Kinds: the child's first frame, with its fingerprint; two questions; two answers."""


class FrameHeader(NamedTuple):
    """The head of a frame."""

    number: int
    kind: int
    length: int


def encode_frame(number: int, kind: int, content: bytes) -> bytes:
    """A frame, ready to be written."""
    return FRAME_HEADER.pack(number, kind, len(content)) + content


def decode_header(data: bytes) -> FrameHeader:
    """The head of a frame from its first bytes."""
    return FrameHeader(*FRAME_HEADER.unpack(data))


def encode_request(prefix: str, text: str) -> bytes:
    """A question as bytes; lone surrogates, which JSON can carry, pass."""
    before, kept = (part.encode("utf-8", "surrogatepass") for part in (prefix, text))
    return PREFIX_LENGTH.pack(len(before)) + before + kept


def decode_request(data: bytes) -> tuple[str, str]:
    """Prefix and text from their bytes."""
    [length] = PREFIX_LENGTH.unpack_from(data)
    start = PREFIX_LENGTH.size + length
    before, kept = (part.decode("utf-8", "surrogatepass") for part in (data[PREFIX_LENGTH.size : start], data[start:]))
    return before, kept


def encode_vectors(encoded: Encoded) -> bytes:
    """Vectors as bytes: the shares, the pooled vector, the token vectors.

    A passage's token vectors are integers of the grid; a question's are as they are, and their places follow.
    """
    rows, dim = encoded.tokens.shape
    shares = np.zeros(0, np.float32) if encoded.interaction_probabilities is None else encoded.interaction_probabilities
    sizes = VECTOR_SIZES.pack(len(shares), len(encoded.pooled), rows, dim, encoded.spans is not None)
    numbers = sizes + shares.tobytes() + encoded.pooled.tobytes()
    if encoded.spans is None:
        return numbers + quantise_tokens(encoded.tokens).tobytes()
    return numbers + encoded.tokens.tobytes() + encoded.spans.tobytes()


def decode_vectors(data: bytes) -> Encoded:
    """Vectors from their bytes; all but a passage's token vectors are read-only views of these."""
    count, dim, rows, token_dim, is_question = VECTOR_SIZES.unpack_from(data)
    shares = np.frombuffer(data, np.float32, count, VECTOR_SIZES.size) if count else None
    pooled = np.frombuffer(data, np.float32, dim, VECTOR_SIZES.size + 4 * count)
    start, shape = VECTOR_SIZES.size + 4 * (count + dim), (rows, token_dim)
    if not is_question:
        return Encoded(pooled, dequantise_tokens(np.frombuffer(data, np.int8, offset=start).reshape(shape)), shares)
    tokens = np.frombuffer(data, np.float32, rows * token_dim, start).reshape(shape)
    spans = np.frombuffer(data, np.int32, offset=start + tokens.nbytes).reshape(rows, 2)
    return Encoded(pooled, tokens, shares, spans)
