"""One ONNX embedding model in this process, through fastembed, from a folder and never from the network.

Enters: a folder and how to read the model's output. Leaves: vectors of one text, and the model's fingerprint.
Guaranteed: thread-safe; each run uses one thread; pooled and token vectors come from the same run.
"""

import hashlib
from contextlib import suppress
from typing import Self

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.text.onnx_embedding import OnnxTextEmbedding

from schemas.models.vectors import Encoded, Matrix, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.inference.model_run import ModelRun
from streams.adapters.embedding.inference.pooled_centre import PooledCentre, unit_vector
from streams.adapters.embedding.inference.token_vectors import TokenVectors


def open_model(local: LocalModel) -> OnnxTextEmbedding:
    """Open the session. fastembed knows models by id, so one is registered for each way to read an output."""
    length = "unit" if local.normalize else "raw"
    model_id = f"modestream/{local.pooling}-{length}-{local.dim}-{local.model_file}"
    with suppress(ValueError):  # Registered already; a check beforehand would race with another thread.
        TextEmbedding.add_custom_model(
            model_id,
            pooling=PoolingType(local.pooling.upper()),
            normalization=local.normalize,
            sources=ModelSource(hf=model_id),
            dim=local.dim,
            model_file=local.model_file,
        )
    folder = str(local.directory)
    # With a given folder nothing is looked up; without `cache_dir` a folder is made in the system's temporary one.
    embedding = TextEmbedding(
        model_id, cache_dir=folder, threads=1, providers=["CPUExecutionProvider"], specific_model_path=folder
    )
    if not isinstance(embedding.model, OnnxTextEmbedding):
        raise TypeError(f"fastembed opened {model_id} as {type(embedding.model).__name__}, not as an ONNX text model")
    return embedding.model


def limit_tokens(onnx: OnnxTextEmbedding, max_tokens: int | None) -> int:
    """Set the tokenizer to truncate at `max_tokens`, without padding; return its limit, which may be lower.

    Raises ValueError if there is no usable tokenizer.
    """
    tokenizer = onnx.tokenizer
    if tokenizer is None or tokenizer.truncation is None:
        raise ValueError("the model's folder has no tokenizer with a token limit")
    folder_limit: int = tokenizer.truncation["max_length"]
    limit = min(max_tokens or folder_limit, folder_limit)
    tokenizer.enable_truncation(max_length=limit, direction=tokenizer.truncation["direction"])
    tokenizer.no_padding()  # One text a run: padding to a fixed multiple would only cost time.
    return limit


PROBE_TEXT = "probe"
"""Any text of at least one token: its output shows the model's dimension, and whether it has token states."""


class FastembedModel:
    """A loaded model. All methods block and are thread-safe. A prefix that is None is the model's own."""

    def __init__(self, local: LocalModel, onnx: OnnxTextEmbedding, file_sha256: str) -> None:
        """Take an opened model and run the probe; `load` opens one."""
        max_tokens = limit_tokens(onnx, local.max_tokens)
        self._local = local
        self._onnx = onnx
        self._run = ModelRun(onnx)
        learned = local.learned_arrays()
        self._centre = PooledCentre.of({} if learned is None else learned.arrays)
        self._tokens = TokenVectors.of(learned, local.dim) if self._has_token_states() else None
        self.fingerprint = _fingerprint(local, file_sha256, max_tokens, self._tokens)

    @classmethod
    def load(cls, local: LocalModel) -> Self:
        """Load and probe the model; takes 0.1 s for a small one.

        Raises OSError for a missing file, ValueError for a model of another dimension or without a usable tokenizer.
        """
        with (local.directory / local.model_file).open("rb") as file:
            file_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(local, open_model(local), file_sha256)

    def passage(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a passage."""
        output = self._run(self._local.passage_prefix if prefix is None else prefix, text)
        pooled = self._centre.of_passage(self._pooled(output.states))
        if self._tokens is None:
            return Encoded(pooled, np.empty((0, 0), np.float32))
        return Encoded(pooled, self._tokens.of_passage(text, output.spans, output.states[output.is_own_token]))

    def query(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a query."""
        output = self._run(self._local.query_prefix if prefix is None else prefix, text)
        pooled = self._centre.of_query(self._pooled(output.states))
        if self._tokens is None:
            return Encoded(pooled, np.empty((0, 0), np.float32), spans=np.empty((0, 2), np.int32))
        tokens, spans = self._tokens.of_query(output.spans, output.states[output.is_own_token])
        return Encoded(pooled, tokens, spans=spans)

    def _pooled(self, states: Matrix | Vector) -> Vector:
        """Pool, and normalise if the embedder does; never a view, which would keep all token states alive."""
        vector = states
        if states.ndim > 1:
            vector = states.mean(axis=0) if self._local.pooling == "mean" else states[0]
        return unit_vector(vector) if self._local.normalize else vector.copy()

    def _has_token_states(self) -> bool:
        """Probe the model. Raises ValueError for vectors of another dimension, or not finite."""
        states = self._run(self._local.passage_prefix, PROBE_TEXT).states
        pooled = self._pooled(states)
        if pooled.shape != (self._local.dim,):
            raise ValueError(
                f"embedder {self._local.name!r} is declared with {self._local.dim} dimensions,"
                f" its model gives vectors of shape {pooled.shape}"
            )
        if not np.isfinite(pooled).all():
            raise ValueError(f"the model of embedder {self._local.name!r} gives vectors that are not finite")
        return states.ndim > 1


def _fingerprint(local: LocalModel, file_sha256: str, max_tokens: int, tokens: TokenVectors | None) -> Fingerprint:
    return Fingerprint(
        embedder=local.name,
        file_sha256=file_sha256,
        precision=local.precision,
        dim=local.dim,
        pooling=local.pooling,
        normalize=local.normalize,
        passage_prefix=local.passage_prefix,
        max_tokens=max_tokens,
        tokens=None if tokens is None else tokens.name,
        token_dim=0 if tokens is None else tokens.dim,
    )
