"""By what memories are ranked: everything, pooled vectors and words, or words alone. Pure."""

from typing import Literal

ModelVariant = Literal["tokens", "vectors", "words"]

MODEL_VARIANTS: tuple[ModelVariant, ...] = ("tokens", "vectors", "words")
"""What is there to rank by, most first."""
