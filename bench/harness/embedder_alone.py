"""Baseline of embedding: plain fastembed, one thread, one text per call."""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import Precision

MODEL, DIM = "all-MiniLM-L6-v2", 384


class EmbedderAlone:
    """all-MiniLM-L6-v2 in one precision."""

    def __init__(self, models: Path, precision: Precision) -> None:
        """Export the model into `models` if it is missing, and load it."""
        folder = export_model(MODEL, models / f"{MODEL}-{precision}", precision, lambda _: None)
        name = f"bench/{precision}"
        source = ModelSource(hf=name)
        TextEmbedding.add_custom_model(
            name, pooling=PoolingType.MEAN, normalization=True, sources=source, dim=DIM, model_file="model.onnx"
        )
        self._model = TextEmbedding(name, threads=1, specific_model_path=str(folder), cache_dir=str(folder))

    def texts_per_second(self, texts: Sequence[str]) -> float:
        """Measure the throughput over these texts, after a warm-up of ten."""
        for text in texts[:10]:
            self.embed(text)
        began = time.perf_counter()
        for text in texts:
            self.embed(text)
        return len(texts) / (time.perf_counter() - began)

    def seconds_a_text(self, texts: Sequence[str]) -> float:
        """Measure the median time per text."""
        return median(self._timed(text) for text in texts)

    def embed(self, text: str) -> list[float]:
        """Embed one text."""
        vector: list[float] = next(iter(self._model.embed([text]))).tolist()
        return vector

    def _timed(self, text: str) -> float:
        began = time.perf_counter()
        self.embed(text)
        return time.perf_counter() - began
