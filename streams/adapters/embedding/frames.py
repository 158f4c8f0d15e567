"""What goes over the pipes between a worker and its embedder's process: frames of a header and some bytes.

A question is an id, a kind and a text; an answer is the id, whether it succeeded, and the vectors or the error.
"""

import struct
from typing import NamedTuple

import numpy as np

from schemas.vectors import Encoded

HEADER = struct.Struct("<IBI")
"""Id, kind, and how many bytes follow."""

COUNT = struct.Struct("<I")
"""How many token vectors follow the pooled one."""

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


def packed(encoded: Encoded) -> bytes:
    """Vectors as bytes."""
    tokens = np.ascontiguousarray(encoded.tokens, np.float32)
    return COUNT.pack(len(tokens)) + np.ascontiguousarray(encoded.pooled, np.float32).tobytes() + tokens.tobytes()


def unpacked(data: bytes) -> Encoded:
    """Vectors from their bytes; they are read-only views of these."""
    [tokens] = COUNT.unpack_from(data)
    numbers = np.frombuffer(data, np.float32, offset=COUNT.size)
    dim = len(numbers) // (tokens + 1)
    return Encoded(numbers[:dim], numbers[dim:].reshape(tokens, dim))
