"""Runs an opened model on one text.

Enters: prefix and text. Leaves: the model's output, and a mask of the rows that are the text's tokens. Guaranteed:
spans count code points of the given text, without the prefix and before any normalisation.
"""

import re
from dataclasses import dataclass

import numpy as np
from fastembed.text.onnx_embedding import OnnxTextEmbedding
from numpy.typing import NDArray
from tokenizers import Encoding

from schemas.models.vectors import Matrix, Spans, Vector

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """The output for one text. `states` are those of all tokens, or the one vector of a model that pools by itself.

    `is_own_token` marks the tokens of the text itself, without prefix and special tokens; `spans` are their spans.
    """

    states: Matrix | Vector
    is_own_token: NDArray[np.bool_]
    spans: Spans


class ModelRun:
    """Runs texts, one a call. Thread-safe."""

    def __init__(self, onnx: OnnxTextEmbedding) -> None:
        assert onnx.model is not None
        self._onnx = onnx
        self._session = onnx.model
        self._input_names = [node.name for node in onnx.model.get_inputs()]

    def __call__(self, prefix: str, text: str) -> ModelOutput:
        """Run the model on prefix and text."""
        [encoding] = self._onnx.tokenize([well_formed(prefix + text)])
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": [0] * len(encoding.ids),
        }
        feed = {name: np.array([inputs[name]], np.int64) for name in self._input_names}
        states = np.asarray(self._session.run(None, feed)[0][0], np.float32)
        return ModelOutput(states, *_own_spans(encoding, len(prefix)))


def _own_spans(encoding: Encoding, prefix: int) -> tuple[NDArray[np.bool_], Spans]:
    """Return a mask of the tokens that end behind the prefix, and their spans from there. Special tokens have none."""
    spans = np.array(encoding.offsets, np.int32).reshape(-1, 2) - np.int32(prefix)
    own = spans[:, 1] > 0
    return own, spans[own].clip(0)


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD: JSON can carry one, UTF-8 can't."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
