"""What goes over the pipes between a worker and its embedder's process: frames of a header and some bytes.

A question is an id, a kind, a prefix and a text; an answer is the id, whether it succeeded, and the vectors or the
error. The first answer, with the id 0, is what the process has loaded, or why it could not.
"""

import struct
from typing import NamedTuple

import numpy as np

from schemas.vectors import Encoded

HEADER = struct.Struct("<IBI")
"""Id, kind, and how many bytes follow."""

COUNT = struct.Struct("<II")
"""How many token vectors follow the pooled one, and how many shares stand before it."""

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
    """Vectors as bytes: first the shares, then the pooled one, then the tokens'."""
    tokens = np.ascontiguousarray(encoded.tokens, np.float32)
    shares = np.zeros(0, np.float32) if encoded.shares is None else np.ascontiguousarray(encoded.shares, np.float32)
    pooled = np.ascontiguousarray(encoded.pooled, np.float32)
    return COUNT.pack(len(tokens), len(shares)) + shares.tobytes() + pooled.tobytes() + tokens.tobytes()


def unpacked(data: bytes) -> Encoded:
    """Vectors from their bytes; they are read-only views of these."""
    tokens, count = COUNT.unpack_from(data)
    numbers = np.frombuffer(data, np.float32, offset=COUNT.size)
    shares, numbers = numbers[:count], numbers[count:]
    dim = len(numbers) // (tokens + 1)
    return Encoded(numbers[:dim], numbers[dim:].reshape(tokens, dim), shares if count else None)
