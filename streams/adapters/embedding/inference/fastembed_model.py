"""One ONNX model of fastembed's format in this process, from a folder and never from the network.

Leaves: vectors of one text, and the model's fingerprint. Guaranteed: thread-safe; each run uses one thread; pooled and
token vectors come from the same run; spans count code points of the given text, without prefix or normalisation; the
vectors are those of fastembed.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import AddedToken, Tokenizer

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


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A session of one thread, and the tokenizer of its folder, which truncates to `max_tokens` and does not pad."""

    session: InferenceSession
    tokenizer: Tokenizer
    max_tokens: int

    @property
    def input_names(self) -> list[str]:
        return [node.name for node in self.session.get_inputs()]


# fastembed would do the same, but imports a client of the hub, pictures and progress bars: 0.6 s of processor time and
# 27 MB for each embedder's process.
def open_model(local: LocalModel) -> OpenedModel:
    """Open the session and the tokenizer as fastembed does. Raises OSError, or ValueError without a token limit."""
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = str(local.directory / local.model_file)
    session = InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return OpenedModel(session, *_tokenizer(local.directory, local.max_tokens or sys.maxsize))


def _tokenizer(folder: Path, max_tokens: int) -> tuple[Tokenizer, int]:
    """Return the tokenizer and its limit: `max_tokens` can only lower the folder's."""
    settings: dict[str, Any] = orjson.loads((folder / "tokenizer_config.json").read_bytes())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # transformers writes 1e30 where it knows no limit.
    stated = (settings.get(key) for key in ("model_max_length", "max_length"))
    limits = [limit for limit in stated if type(limit) is int and 0 < limit <= sys.maxsize]
    if not limits:
        raise ValueError("the model's folder has no tokenizer with a token limit")
    # Without a direction `enable_truncation` resets that of `tokenizer.json`.
    written = (tokenizer.truncation or {}).get("direction", "right")
    limit = min(*limits, max_tokens)
    tokenizer.enable_truncation(limit, direction=settings.get("truncation_side") or written)
    tokenizer.no_padding()  # One text a run: padding to a fixed multiple would only cost time.
    special = folder / "special_tokens_map.json"
    for value in orjson.loads(special.read_bytes()).values() if special.exists() else ():
        tokens = value if isinstance(value, list) else [value]
        tokenizer.add_special_tokens([AddedToken(**token) if isinstance(token, dict) else token for token in tokens])
    return tokenizer, limit


class ModelRun:
    """Runs texts, one a call. Thread-safe."""

    def __init__(self, opened: OpenedModel) -> None:
        self._opened = opened
        self._input_names = opened.input_names

    def prepare(self, prefix: str, text: str) -> PreparedText:
        encoding = self._opened.tokenizer.encode(well_formed(prefix + text))
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
        return ModelOutput(prepared, np.asarray(self._opened.session.run(None, prepared.feed)[0][0], np.float32))


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD: JSON can carry one, UTF-8 can't."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


PROBE_TEXT = "probe"
"""Any text of at least one token: its output shows the model's dimension, and whether it has token states."""


class FastembedModel:
    """A loaded model. All methods block and are thread-safe. A prefix of None is the model's own."""

    def __init__(self, local: LocalModel, opened: OpenedModel, file_sha256: str, files: str | None = None) -> None:
        self._local = local
        self._run = ModelRun(opened)
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
            max_tokens=opened.max_tokens,
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

    def __init__(self, local: LocalModel, opened: OpenedModel, file_sha256: str, files: str) -> None:
        """Probe the model. Raises ValueError if it does not give one finite number for a pair."""
        self._opened = opened
        self._input_names = opened.input_names
        self.fingerprint = Fingerprint(
            embedder=local.name,
            file_sha256=file_sha256,
            files=files,
            precision=local.precision,
            dim=local.dim,
            pooling=local.pooling,
            normalize=False,
            passage_prefix="",
            max_tokens=opened.max_tokens,
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
        return cls(local, open_model(local), file_sha256, companions_digest(local))

    def prepare_passage(self, text: str, prefix: str | None = None) -> PreparedText:
        encoding = self._opened.tokenizer.encode(well_formed(prefix or ""), well_formed(text))
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([inputs[name]], np.int64) for name in self._input_names}
        return PreparedText(text, feed, np.zeros(len(encoding.ids), np.bool_), np.zeros((0, 2), np.int32))

    def run(self, prepared: PreparedText) -> ModelOutput:
        return ModelOutput(prepared, np.asarray(self._opened.session.run(None, prepared.feed)[0][0], np.float32))

    def finish_passages(self, outputs: Sequence[ModelOutput]) -> list[Encoded]:
        return [Encoded(output.states, NO_TOKENS) for output in outputs]

    def query(self, text: str, prefix: str | None = None) -> Encoded:
        [encoded] = self.finish_passages([self.run(self.prepare_passage(text, prefix))])
        return encoded
