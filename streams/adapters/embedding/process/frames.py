"""The binary protocol between a worker and its embedder's process: frames of a header and a body.

A request is an id, a kind, a prefix and a text; a response is the id, whether it succeeded, and the vectors or the
error. The first response, with the id 0, is the fingerprint of the loaded model, or why it could not be loaded. A
mapped file has the keys of the texts in progress: they outlive the process, and name what it died of.
"""

import asyncio
import hashlib
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from schemas.models.vectors import Encoded
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens

FRAME_HEADER = struct.Struct("<IBI")
"""Id, kind, and the number of bytes that follow."""

VECTOR_SIZES = struct.Struct("<IIII")
"""The length of the pooled vector, the token vectors' rows and columns, and 1 for a query. 32-bit words, so that the
floats behind them are aligned."""

PREFIX_LENGTH = struct.Struct("<I")
"""The number of bytes of a request's prefix; the text follows."""

HELLO, PASSAGE, QUERY, VECTORS, ERROR, PING = range(6)
"""Kinds: the process's first frame, with its fingerprint; two requests; two responses; a sign of life, sent back."""

ALONE = 0x80
"""Flag in the kind of a suspect's request, over whose text the process has died: it runs alone."""

KEY_BYTES = 16
"""Length of a request's key, which identifies its prefix and text."""


class FrameHeader(NamedTuple):
    number: int
    kind: int
    length: int


class FrameReader(asyncio.Protocol):
    """Cuts the bytes of a pipe into frames, all that are complete at a time."""

    def __init__(
        self, on_frame: Callable[[int, int, bytes], None], on_end: Callable[[], None], on_read: Callable[[], None]
    ) -> None:
        """`on_frame` gets id, kind and content; `on_read` follows the frames that came together.

        `on_end` is called when the pipe is closed at the other end.
        """
        self._on_frame = on_frame
        self._on_end = on_end
        self._on_read = on_read
        self._received = bytearray()

    def data_received(self, data: bytes) -> None:
        """Hand over the complete frames."""
        self._received += data
        start = 0
        while len(self._received) - start >= FRAME_HEADER.size:
            number, kind, length = FRAME_HEADER.unpack_from(self._received, start)
            content = start + FRAME_HEADER.size
            if len(self._received) < content + length:
                break
            self._on_frame(number, kind, bytes(self._received[content : content + length]))
            start = content + length
        del self._received[:start]
        if start:
            self._on_read()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._on_end()


def encode_frame(number: int, kind: int, content: bytes) -> bytes:
    return FRAME_HEADER.pack(number, kind, len(content)) + content


def decode_header(data: bytes) -> FrameHeader:
    return FrameHeader(*FRAME_HEADER.unpack(data))


def encode_error(number: int, problem: Exception) -> bytes:
    """Return the frame that says why a text has no vectors."""
    return encode_frame(number, ERROR, f"{type(problem).__name__}: {problem}".encode(errors="replace"))


def encode_request(prefix: str, text: str) -> bytes:
    """Return a request as bytes; lone surrogates, which JSON can carry, pass."""
    prefix_bytes, text_bytes = (part.encode("utf-8", "surrogatepass") for part in (prefix, text))
    return PREFIX_LENGTH.pack(len(prefix_bytes)) + prefix_bytes + text_bytes


def decode_request(data: bytes) -> tuple[str, str]:
    [length] = PREFIX_LENGTH.unpack_from(data)
    start = PREFIX_LENGTH.size + length
    prefix, text = data[PREFIX_LENGTH.size : start], data[start:]
    return prefix.decode("utf-8", "surrogatepass"), text.decode("utf-8", "surrogatepass")


def request_key(data: bytes) -> bytes:
    """Identify prefix and text of an encoded request."""
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def encode_vectors(encoded: Encoded) -> bytes:
    """Return vectors as bytes: the pooled vector, then the token vectors.

    A passage's token vectors are quantised; a query's are floats, with their spans behind them.
    """
    rows, dim = encoded.tokens.shape
    head = VECTOR_SIZES.pack(len(encoded.pooled), rows, dim, encoded.spans is not None) + encoded.pooled.tobytes()
    if encoded.spans is None:
        return head + quantise_tokens(encoded.tokens).tobytes()
    return head + encoded.tokens.tobytes() + encoded.spans.tobytes()


def decode_vectors(data: bytes) -> Encoded:
    """Parse vectors; all but a passage's token vectors are read-only views of `data`."""
    dim, rows, token_dim, is_query = VECTOR_SIZES.unpack_from(data)
    pooled = np.frombuffer(data, np.float32, dim, VECTOR_SIZES.size)
    start, shape = VECTOR_SIZES.size + pooled.nbytes, (rows, token_dim)
    if not is_query:
        return Encoded(pooled, dequantise_tokens(np.frombuffer(data, np.int8, offset=start).reshape(shape)))
    tokens = np.frombuffer(data, np.float32, rows * token_dim, start).reshape(shape)
    spans = np.frombuffer(data, np.int32, offset=start + tokens.nbytes).reshape(rows, 2)
    return Encoded(pooled, tokens, spans)


SLOTS = 2048
"""Concurrent texts: for each thread the running one and about ten whose answers it makes; for each worker one being
read."""

FREE = bytes(KEY_BYTES)


def create_slots(path: Path) -> None:
    """Replace the file of an earlier run, which its readers still have open."""
    draft = path.with_suffix(".new")
    draft.write_bytes(FREE * SLOTS)
    draft.replace(path)


def read_slots(descriptor: int) -> frozenset[bytes]:
    """Return the keys of the texts in progress."""
    content = os.pread(descriptor, SLOTS * len(FREE), 0)
    keys = (content[start : start + len(FREE)] for start in range(0, len(content), len(FREE)))
    return frozenset(keys) - {FREE}


class WorkSlots:
    """The writing end, for the threads of one process."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SLOTS * len(FREE))
        self._free = list(range(SLOTS))
        self._changing = threading.Lock()

    @contextmanager
    def at(self, content: bytes) -> Iterator[None]:
        """Note an encoded request inside of this context."""
        with self._changing:
            start = self._free.pop() * len(FREE)
        self._memory[start : start + len(FREE)] = request_key(content)
        try:
            yield
        finally:
            self._memory[start : start + len(FREE)] = FREE
            with self._changing:
                self._free.append(start // len(FREE))
