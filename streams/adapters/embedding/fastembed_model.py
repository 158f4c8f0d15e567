"""One ONNX embedding model in this process, through fastembed, from a folder and never from the network.

Enters: a folder and how to read the model's output. Leaves: vectors of one text. Guaranteed: one thread a run, any
number of runs at once from any threads, pooled and token vectors from the same run, and a fingerprint.
"""

import hashlib
from contextlib import suppress
from functools import lru_cache, partial
from typing import Self

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.text.onnx_embedding import OnnxTextEmbedding
from tokenizers import Tokenizer

from schemas.modes import Fingerprint
from schemas.vectors import Encoded, Matrix, Vector
from streams.adapters.embedding.local_model import LocalModel

SMALLEST_LENGTH = 1e-12
"""A vector shorter than this is left as it is, not divided by almost nothing; the value is fastembed's own."""

PREFIXES = 256
"""How many prefixes' numbers of tokens are kept: modes have a handful, and counting one anew costs microseconds."""

PROBE = "probe"
"""Any text of at least one token: what the model makes of it shows its dimension and its special tokens."""


class FastembedModel:
    """A loaded model. All methods block; any thread may call them."""

    def __init__(self, local: LocalModel, onnx: OnnxTextEmbedding, file_sha256: str) -> None:
        """Take an opened model; `load` opens one."""
        tokenizer, max_tokens = _tokenizer(onnx, local.max_tokens)
        self.fingerprint = _fingerprint(local, file_sha256, max_tokens)
        self._local = local
        self._onnx = onnx
        self._specials_before, self._specials_after = _special_tokens(tokenizer)
        self._prefix_tokens = lru_cache(PREFIXES)(partial(_tokens, tokenizer))

    @classmethod
    def load(cls, local: LocalModel) -> Self:
        """Load and try the model; takes a tenth of a second for a small one.

        Raises OSError for a missing file, ValueError for a model of another dimension or without a usable tokenizer.
        """
        with (local.directory / local.model_file).open("rb") as file:
            file_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        model = cls(local, _open(local), file_sha256)
        model._check()
        return model

    def passage(self, text: str) -> Encoded:
        """Embed a text that is kept."""
        return self.encode(self._local.passage_prefix, text)

    def query(self, text: str) -> Encoded:
        """Embed a question."""
        return self.encode(self._local.query_prefix, text)

    def encode(self, prefix: str, text: str) -> Encoded:
        """Embed a text with any prefix before it."""
        prefix = _well_formed(prefix)
        output = self._onnx.onnx_embed([prefix + _well_formed(text)])
        states = np.asarray(output.model_output[0], dtype=np.float32)
        if states.ndim == 1:
            return Encoded(self._pooled(states), np.empty((0, len(states)), np.float32))
        pooled = states.mean(axis=0) if self._local.pooling == "mean" else states[0]
        first = self._specials_before + self._prefix_tokens(prefix)
        return Encoded(self._pooled(pooled), _unit_rows(states[first : len(states) - self._specials_after]))

    def _pooled(self, vector: Vector) -> Vector:
        """Of length 1 where the embedder normalises; never a view that would keep all token states alive."""
        return _unit_rows(vector[np.newaxis])[0] if self._local.normalize else vector.copy()

    def _check(self) -> None:
        pooled = self.passage(PROBE).pooled
        if pooled.shape != (self._local.dim,):
            raise ValueError(
                f"embedder {self._local.name!r} is declared with {self._local.dim} dimensions,"
                f" its model gives vectors of shape {pooled.shape}"
            )
        if not np.isfinite(pooled).all():
            raise ValueError(f"the model of embedder {self._local.name!r} gives vectors that are not finite")


def _open(local: LocalModel) -> OnnxTextEmbedding:
    """Open the session. fastembed knows models by id: one is registered for each way to read a model's output."""
    length = "unit" if local.normalize else "raw"
    model_id = f"modestream/{local.pooling}-{length}-{local.dim}-{local.model_file}"
    with suppress(ValueError):  # It is registered already; asking first would race with another thread.
        TextEmbedding.add_custom_model(
            model_id,
            pooling=PoolingType(local.pooling.upper()),
            normalization=local.normalize,
            sources=ModelSource(hf=model_id),
            dim=local.dim,
            model_file=local.model_file,
        )
    folder = str(local.directory)
    # With a folder given nothing is looked up; the cache would otherwise be made in the system's temporary folder.
    embedding = TextEmbedding(
        model_id, cache_dir=folder, threads=1, providers=["CPUExecutionProvider"], specific_model_path=folder
    )
    if not isinstance(embedding.model, OnnxTextEmbedding):
        raise TypeError(f"fastembed opened {model_id} as {type(embedding.model).__name__}, not as an ONNX text model")
    return embedding.model


def _tokenizer(onnx: OnnxTextEmbedding, max_tokens: int | None) -> tuple[Tokenizer, int]:
    """Set the opened model's tokenizer to cut at `max_tokens` and to pad nothing; give it and where it cuts."""
    tokenizer = onnx.tokenizer
    if tokenizer is None or tokenizer.truncation is None:
        raise ValueError("the model's folder has no tokenizer with a limit of tokens")
    folder_limit: int = tokenizer.truncation["max_length"]
    limit = min(max_tokens or folder_limit, folder_limit)
    tokenizer.enable_truncation(max_length=limit, direction=tokenizer.truncation["direction"])
    tokenizer.no_padding()  # One text a run: padding could only come from a fixed multiple, and cost time.
    return tokenizer, limit


def _fingerprint(local: LocalModel, file_sha256: str, max_tokens: int) -> Fingerprint:
    return Fingerprint(
        embedder=local.name,
        file_sha256=file_sha256,
        precision=local.precision,
        dim=local.dim,
        pooling=local.pooling,
        normalize=local.normalize,
        passage_prefix=local.passage_prefix,
        max_tokens=max_tokens,
    )


def _tokens(tokenizer: Tokenizer, prefix: str) -> int:
    """How many tokens a prefix is."""
    return len(tokenizer.encode(prefix.strip(), add_special_tokens=False).ids)


def _special_tokens(tokenizer: Tokenizer) -> tuple[int, int]:
    """How many special tokens the tokenizer puts before and after a text."""
    mask = tokenizer.encode(PROBE).special_tokens_mask
    return mask.index(0), mask[::-1].index(0)


def _unit_rows(rows: Matrix) -> Matrix:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    units: Matrix = rows / np.maximum(lengths, np.float32(SMALLEST_LENGTH))[:, np.newaxis]
    return units


def _well_formed(text: str) -> str:
    """Put a replacement character for each lone surrogate, which JSON can carry and UTF-8 can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
