"""One ONNX embedding model in this process, through fastembed, from a folder and never from the network.

Leaves: vectors of one text, and the model's fingerprint. Guaranteed: thread-safe; each run uses one thread; pooled and
token vectors come from the same run; spans count code points of the given text, without prefix or normalisation.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.rerank.cross_encoder import TextCrossEncoder
from fastembed.rerank.cross_encoder.onnx_text_cross_encoder import OnnxTextCrossEncoder
from fastembed.text.onnx_embedding import OnnxTextEmbedding
from fastembed.text.static_embedding import MAX_LENGTH
from numpy.typing import NDArray

from agents.rules.text.passages import CUTTING
from schemas.models.vectors import Encoded, Matrix, Spans, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.local_model import LocalModel, companions_digest, file_digest
from streams.adapters.embedding.inference.token_vectors import TokenVectors

PASSAGE_MEAN, QUESTION_MEAN = "passage_mean", "question_mean"
"""The names of the means in a file of learned arrays, each of shape (1, dim)."""

MIN_NORM = 1e-12
"""Lower bound of the divisor; the value is fastembed's own."""


@dataclass(frozen=True, slots=True)
class PooledCentre:
    """Mean vectors of passages and of queries; 0 for a model that needs none.

    Otherwise an anisotropic model, such as the e5 family, gives unrelated texts a cosine of 0.75 and more. Method: the
    first step of all-but-the-top, Mu and Viswanath 2018, https://arxiv.org/abs/1702.01417.
    """

    passage: Vector | float = 0.0
    query: Vector | float = 0.0

    @classmethod
    def of(cls, arrays: Mapping[str, Matrix]) -> "PooledCentre":
        """Return the learned means; without them vectors stay as they are."""
        return cls(arrays[PASSAGE_MEAN][0], arrays[QUESTION_MEAN][0]) if PASSAGE_MEAN in arrays else cls()

    def of_passage(self, vector: Vector) -> Vector:
        return _centred(vector, self.passage)

    def of_query(self, vector: Vector) -> Vector:
        return _centred(vector, self.query)


def _centred(vector: Vector, mean: Vector | float) -> Vector:
    return vector if isinstance(mean, float) else unit_vector(vector - mean)


def unit_vector(vector: Vector) -> Vector:
    scaled: Vector = vector / max(float(np.sqrt(np.dot(vector, vector))), MIN_NORM)
    return scaled


_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PreparedText:
    """Input of the session for a text. `text` is the text itself, without its prefix.

    `is_own_token` marks the tokens of the text itself, without prefix and special tokens; `spans` are their spans.
    """

    text: str
    feed: Mapping[str, NDArray[np.int64]]
    is_own_token: NDArray[np.bool_]
    spans: Spans


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """Output for one text. `states` are those of all tokens, or the one vector of a model that pools by itself."""

    prepared: PreparedText
    states: Matrix | Vector

    @property
    def own_states(self) -> Matrix:
        """The states of the text's own tokens."""
        return self.states[self.prepared.is_own_token]


class ModelRun:
    """Runs texts, one a call. Thread-safe."""

    def __init__(self, onnx: OnnxTextEmbedding) -> None:
        assert onnx.model is not None
        self._onnx = onnx
        self._session = onnx.model
        self._input_names = [node.name for node in onnx.model.get_inputs()]

    def prepare(self, prefix: str, text: str) -> PreparedText:
        [encoding] = self._onnx.tokenize([well_formed(prefix + text)])
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": [0] * len(encoding.ids),
        }
        feed = {name: np.array([inputs[name]], np.int64) for name in self._input_names}
        # Counted from the end of the prefix. Special tokens have no span, and so end before it.
        spans = np.array(encoding.offsets, np.int32).reshape(-1, 2) - np.int32(len(prefix))
        is_own = spans[:, 1] > 0
        return PreparedText(text, feed, is_own, spans[is_own].clip(0))

    def __call__(self, prepared: PreparedText) -> ModelOutput:
        return ModelOutput(prepared, np.asarray(self._session.run(None, prepared.feed)[0][0], np.float32))


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD: JSON can carry one, UTF-8 can't."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


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
    # With a folder given fastembed looks nothing up; without `cache_dir` it makes a temporary folder.
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
    """A loaded model. All methods block and are thread-safe. A prefix of None is the model's own."""

    def __init__(self, local: LocalModel, onnx: OnnxTextEmbedding, file_sha256: str, files: str | None = None) -> None:
        max_tokens = limit_tokens(onnx, local.max_tokens)
        self._local = local
        self._onnx = onnx
        self._run = ModelRun(onnx)
        learned = local.learned_arrays()
        self._centre = PooledCentre.of({} if learned is None else learned.arrays)
        # Probe the model. Raises ValueError for vectors of another dimension, or not finite.
        states = self._run(self._run.prepare(self._local.passage_prefix, PROBE_TEXT)).states
        pooled = self._pooled(states)
        if pooled.shape != (self._local.dim,):
            raise ValueError(
                f"embedder {self._local.name!r} is declared with {self._local.dim} dimensions,"
                f" its model gives vectors of shape {pooled.shape}"
            )
        if not np.isfinite(pooled).all():
            raise ValueError(f"the model of embedder {self._local.name!r} gives vectors that are not finite")
        self._tokens = TokenVectors.of(learned, local.dim) if (states.ndim > 1) else None
        self.fingerprint = Fingerprint(
            embedder=local.name,
            file_sha256=file_sha256,
            files=files,
            precision=local.precision,
            dim=local.dim,
            pooling=local.pooling,
            normalize=local.normalize,
            passage_prefix=local.passage_prefix,
            max_tokens=max_tokens,
            tokens=None if self._tokens is None else self._tokens.name,
            token_dim=0 if self._tokens is None else self._tokens.dim,
            passages=CUTTING,
        )

    @classmethod
    def load(cls, local: LocalModel) -> Self:
        """Load and probe the model; takes 0.1 s for a small one.

        Raises OSError for a missing file, ValueError for a model of another dimension or without a usable tokenizer.
        """
        file_sha256 = file_digest(local.directory / local.model_file)
        return cls(local, open_model(local), file_sha256, companions_digest(local))

    def passage(self, text: str, prefix: str | None = None) -> Encoded:
        [encoded] = self.finish_passages([self.run(self.prepare_passage(text, prefix))])
        return encoded

    def prepare_passage(self, text: str, prefix: str | None = None) -> PreparedText:
        return self._run.prepare(self._local.passage_prefix if prefix is None else prefix, text)

    def run(self, prepared: PreparedText) -> ModelOutput:
        return self._run(prepared)

    def finish_passages(self, outputs: Sequence[ModelOutput]) -> list[Encoded]:
        """Compute the vectors of passages, each as if it were alone.

        Step by step for all, since a run evicts the processor's caches: batching takes half the time.
        """
        pooled = [self._centre.of_passage(self._pooled(output.states)) for output in outputs]
        if self._tokens is None:
            return [Encoded(vector, np.empty((0, 0), np.float32)) for vector in pooled]
        states = [(output.prepared.text, output.prepared.spans, output.own_states) for output in outputs]
        return [Encoded(*vectors) for vectors in zip(pooled, self._tokens.of_passages(states), strict=True)]

    def query(self, text: str, prefix: str | None = None) -> Encoded:
        output = self._run(self._run.prepare(self._local.query_prefix if prefix is None else prefix, text))
        pooled = self._centre.of_query(self._pooled(output.states))
        if self._tokens is None:
            return Encoded(pooled, np.empty((0, 0), np.float32), spans=np.empty((0, 2), np.int32))
        tokens, spans = self._tokens.of_query(output.prepared.spans, output.own_states)
        return Encoded(pooled, tokens, spans=spans)

    def _pooled(self, states: Matrix | Vector) -> Vector:
        """Pool, and normalise if the embedder does; never a view, which would keep all token states alive."""
        vector = states
        if states.ndim > 1:
            vector = states.mean(axis=0) if self._local.pooling == "mean" else states[0]
        return unit_vector(vector) if self._local.normalize else vector.copy()


NO_TOKENS: Matrix = np.empty((0, 0), np.float32)


# Pairs of a question and a text in; out the log-odds that the text answers the question, as a vector of one number.
# It has the methods of `FastembedModel`, the question in place of the prefix, so that one kind of process serves
# both. A pair beyond the tokenizer's limit loses the end of its longer part.
class CrossEncoderModel:
    """A loaded cross-encoder. All methods block and are thread-safe."""

    def __init__(self, local: LocalModel, onnx: OnnxTextCrossEncoder, file_sha256: str, files: str) -> None:
        """Probe the model. Raises ValueError if it does not give one finite number for a pair."""
        assert onnx.model is not None
        assert onnx.tokenizer is not None
        assert onnx.tokenizer.truncation is not None
        onnx.tokenizer.no_padding()  # One pair a run.
        self._tokenizer = onnx.tokenizer
        self._session = onnx.model
        self._input_names = [node.name for node in onnx.model.get_inputs()]
        self.fingerprint = Fingerprint(
            embedder=local.name,
            file_sha256=file_sha256,
            files=files,
            precision=local.precision,
            dim=local.dim,
            pooling=local.pooling,
            normalize=False,
            passage_prefix="",
            max_tokens=onnx.tokenizer.truncation["max_length"],
            tokens=None,
            token_dim=0,
        )
        probed = self.query(PROBE_TEXT, PROBE_TEXT).pooled
        if probed.shape != (1,) or not np.isfinite(probed).all():
            raise ValueError(f"the cross-encoder {local.name!r} gives {probed} for a pair, not one number")

    @classmethod
    def load(cls, local: LocalModel) -> Self:
        """Load and probe the model; takes 0.2 s. Raises OSError for a missing file, ValueError as the constructor."""
        file_sha256 = file_digest(local.directory / local.model_file)
        # fastembed knows models by id, so one is registered for each file name.
        model_id = f"modestream/cross-encoder-{local.model_file}"
        with suppress(ValueError):  # Registered already.
            TextCrossEncoder.add_custom_model(model_id, ModelSource(hf=model_id), local.model_file)
        folder = str(local.directory)
        # With a folder given fastembed looks nothing up; without `cache_dir` it makes a temporary folder.
        opened = TextCrossEncoder(
            model_id, cache_dir=folder, threads=1, providers=["CPUExecutionProvider"], specific_model_path=folder
        ).model
        if not isinstance(opened, OnnxTextCrossEncoder):
            raise TypeError(f"fastembed opened {model_id} as {type(opened).__name__}, not as an ONNX cross-encoder")
        return cls(local, opened, file_sha256, companions_digest(local))

    def prepare_passage(self, text: str, prefix: str | None = None) -> PreparedText:
        encoding = self._tokenizer.encode(well_formed(prefix or ""), well_formed(text))
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([inputs[name]], np.int64) for name in self._input_names}
        return PreparedText(text, feed, np.zeros(len(encoding.ids), np.bool_), np.zeros((0, 2), np.int32))

    def run(self, prepared: PreparedText) -> ModelOutput:
        return ModelOutput(prepared, np.asarray(self._session.run(None, prepared.feed)[0][0], np.float32))

    def finish_passages(self, outputs: Sequence[ModelOutput]) -> list[Encoded]:
        return [Encoded(output.states, NO_TOKENS) for output in outputs]

    def query(self, text: str, prefix: str | None = None) -> Encoded:
        [encoded] = self.finish_passages([self.run(self.prepare_passage(text, prefix))])
        return encoded


NO_SPANS = np.empty((0, 2), np.int32)


# For kinds that `FastembedModel` does not read: static models, the last token's state, tasks, pooling in the graph.
# There are no token vectors, as fastembed gives one vector for a text.
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
