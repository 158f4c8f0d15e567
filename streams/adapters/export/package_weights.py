"""Weights from an installed package: its verified file, and tensors in 4 bits, in blocks of 32 that share a scale.

Nothing is rounded; bytes are copied on access only. Format: `Q4_0` of https://github.com/ggml-org/ggml.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[np.float32]]
"""Tensors by their published name, such as `encoder.layer.0.output.dense.weight`."""


def read_verified(file: Path, sha256: str) -> bytes:
    """Read a file. Raises ValueError where its content is not the published one."""
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise ValueError(f"{file.name} has sha256 {digest}, the published model has {sha256}")
    return content


WEIGHTS_IN_BLOCK = 32

ZERO_LEVEL = 8
"""The level, of 0 to 15, of a weight of 0."""

Q4_BLOCK_DTYPE = np.dtype([("scale", "<f2"), ("pairs", "u1", (WEIGHTS_IN_BLOCK // 2,))])
"""A block's scale, then two weights a byte: byte `i` has weight `i` in the low half and weight `i + 16` in the high."""


@dataclass(frozen=True, slots=True)
class FourBitTensor:
    """A tensor of shape (rows, columns). `blocks` has type `Q4_BLOCK_DTYPE` and shape (rows, columns / 32)."""

    blocks: NDArray[np.void]

    @classmethod
    def of(cls, content: bytes, columns: int) -> "FourBitTensor":
        """Read rows of `columns` weights. Raises ValueError if the bytes are no whole number of rows."""
        return cls(np.frombuffer(content, Q4_BLOCK_DTYPE).reshape(-1, columns // WEIGHTS_IN_BLOCK))

    def levels(self) -> NDArray[np.uint8]:
        """Return each weight's level, 0 to 15; shape (rows, columns)."""
        pairs = self.blocks["pairs"]
        levels: NDArray[np.uint8] = np.concatenate([pairs & 15, pairs >> 4], axis=-1)
        return levels.reshape(len(self.blocks), -1)

    def scales(self) -> NDArray[np.float32]:
        """Return the scale of each block; shape (rows, columns / 32)."""
        scales: NDArray[np.float32] = self.blocks["scale"].astype(np.float32)
        return scales

    def floats(self) -> NDArray[np.float32]:
        """Return the weights; shape (rows, columns)."""
        weights = self.levels().astype(np.float32) - ZERO_LEVEL
        return weights * self.scales().repeat(WEIGHTS_IN_BLOCK, axis=1)

    def packed_levels(self) -> NDArray[np.uint8]:
        """Return the levels, two adjacent ones a byte, the left in the low half; shape (rows, columns / 2)."""
        levels = self.levels()
        packed: NDArray[np.uint8] = np.bitwise_or(levels[:, 0::2], levels[:, 1::2] << np.uint8(4))
        return packed
