"""By what memories are ranked: everything, pooled vectors and words, or words alone. Pure."""

from typing import Literal

HeadName = Literal["tokens", "vectors", "words"]

HEADS: tuple[HeadName, ...] = ("tokens", "vectors", "words")
"""What is there to rank by, most first."""
