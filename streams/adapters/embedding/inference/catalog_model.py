"""Models that fastembed pools itself, with one vector for a text: static ones, the last token's state, tasks."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from fastembed import TextEmbedding
from fastembed.text.onnx_embedding import OnnxTextEmbedding
from fastembed.text.static_embedding import MAX_LENGTH

from agents.rules.text.passages import CUTTING
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.fastembed_model import (
    NO_TOKENS,
    PROBE_TEXT,
    ModelOutput,
    PreparedText,
    well_formed,
)
from streams.adapters.embedding.inference.local_model import LocalModel, companions_digest, file_digest

NO_SPANS = np.empty((0, 2), np.int32)


class CatalogModel:
    """A loaded model. All methods block and are thread-safe. A prefix of None is the model's own."""

    def __init__(self, local: LocalModel, embedding: TextEmbedding, file_sha256: str) -> None:
        """Probe the model. Raises ValueError for vectors of another dimension, or not finite."""
        self._local = local
        self._embedding = embedding
        onnx = embedding.model
        tokenizer = onnx.tokenizer if isinstance(onnx, OnnxTextEmbedding) else None
        truncation = None if tokenizer is None else tokenizer.truncation
        self.fingerprint = Fingerprint(
            embedder=local.name,
            file_sha256=file_sha256,
            files=companions_digest(local),
            precision=local.precision,
            dim=local.dim,
            pooling="fastembed",
            normalize=local.normalize,
            passage_prefix=local.passage_prefix,
            max_tokens=truncation["max_length"] if truncation else MAX_LENGTH,
            passages=CUTTING,
        )
        probed = self.query(PROBE_TEXT).pooled
        if probed.shape != (local.dim,) or not np.isfinite(probed).all():
            raise ValueError(f"{local.name!r} gives vectors of shape {probed.shape}, or not finite; not {local.dim}")

    @classmethod
    def load(cls, local: LocalModel) -> Self:
        """Load and probe the model. Raises OSError for a missing file, ValueError as the constructor."""
        file_sha256 = file_digest(local.directory / local.model_file)
        folder = str(local.directory)
        embedding = TextEmbedding(
            local.fastembed_id,
            cache_dir=folder,
            threads=1 if local.model_file.endswith(".onnx") else None,
            providers=["CPUExecutionProvider"] if local.model_file.endswith(".onnx") else None,
            specific_model_path=folder,
        )
        return cls(local, embedding, file_sha256)

    def prepare_passage(self, text: str, prefix: str | None = None) -> PreparedText:
        """Return the text with its prefix: fastembed cuts it into tokens when it runs."""
        whole = well_formed((self._local.passage_prefix if prefix is None else prefix) + text)
        return PreparedText(whole, {}, np.zeros(0, np.bool_), NO_SPANS)

    def run(self, prepared: PreparedText) -> ModelOutput:
        [vector] = self._embedding.passage_embed([prepared.text])
        return ModelOutput(prepared, np.array(vector, np.float32))

    def finish_passages(self, outputs: Sequence[ModelOutput]) -> list[Encoded]:
        return [Encoded(output.states, NO_TOKENS) for output in outputs]

    def passage(self, text: str, prefix: str | None = None) -> Encoded:
        [encoded] = self.finish_passages([self.run(self.prepare_passage(text, prefix))])
        return encoded

    def query(self, text: str, prefix: str | None = None) -> Encoded:
        whole = well_formed((self._local.query_prefix if prefix is None else prefix) + text)
        [vector] = self._embedding.query_embed(whole)
        return Encoded(np.array(vector, np.float32), NO_TOKENS, spans=NO_SPANS)
