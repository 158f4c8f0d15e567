"""Embed texts with the general embedder, cached next to the models."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.passages import MAX_CONTENT_CHARS
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import Precision

Vectors = NDArray[np.float32]
"""Shape (texts, 384)."""

MODEL, DIM, MAX_TOKENS = "all-MiniLM-L6-v2", 384, 256
"""The general embedder, with the system's settings."""

PRECISION: Precision = "int8"
"""The system's default."""


def embed_texts(texts: Sequence[str], models: Path) -> Vectors:
    """Embed the texts, truncated as the system does; `models` is the folder of exported models."""
    cache = models / "interaction_vectors.npz"
    known = dict(np.load(cache)) if cache.exists() else {}
    missing = [text for text in dict.fromkeys(texts) if _key(text) not in known]
    if missing:
        folder = export_model(MODEL, models / f"{MODEL}-{PRECISION}", PRECISION, print)
        model = FastembedModel.load(LocalModel(MODEL, folder, DIM, PRECISION, max_tokens=MAX_TOKENS))
        known |= {_key(text): model.passage(text[:MAX_CONTENT_CHARS]).pooled for text in missing}
        np.savez(cache, **known)
    return np.array([known[_key(text)] for text in texts], np.float32)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
