"""One text through an opened model, in one run.

Enters: prefix and text. Leaves: the model's output, and which of its rows are the text's tokens. Guaranteed: places are
code points of the text that was given, whatever stands before it and whatever the tokenizer makes of it.
"""

import re
from dataclasses import dataclass

import numpy as np
from fastembed.text.onnx_embedding import OnnxTextEmbedding
from numpy.typing import NDArray
from tokenizers import Encoding

from schemas.vectors import Matrix, Spans, Vector

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What the model made of a text. `states` are all tokens', or the one vector of a model that pools by itself.

    `is_own_token` says which states are the text's: not the prefix's, not the special tokens'; `spans` has the places of these.
    """

    states: Matrix | Vector
    is_own_token: NDArray[np.bool_]
    spans: Spans


class ModelRun:
    """Runs texts, one at a time. Any thread may call it."""

    def __init__(self, onnx: OnnxTextEmbedding) -> None:
        assert onnx.model is not None
        self._onnx = onnx
        self._session = onnx.model
        self._inputs = [node.name for node in onnx.model.get_inputs()]

    def __call__(self, prefix: str, text: str) -> ModelOutput:
        """Run one text with a prefix before it."""
        [encoding] = self._onnx.tokenize([well_formed(prefix + text)])
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": [0] * len(encoding.ids),
        }
        feed = {name: np.array([given[name]], np.int64) for name in self._inputs}
        states = np.asarray(self._session.run(None, feed)[0][0], np.float32)
        return ModelOutput(states, *_places(encoding, len(prefix)))


def _places(encoding: Encoding, prefix: int) -> tuple[NDArray[np.bool_], Spans]:
    """Which tokens end behind the prefix, and where they stand in what follows it. Special tokens stand nowhere."""
    spans = np.array(encoding.offsets, np.int32).reshape(-1, 2) - np.int32(prefix)
    own = spans[:, 1] > 0
    return own, spans[own].clip(0)


def well_formed(text: str) -> str:
    """Put a replacement character for each lone surrogate, which JSON can carry and UTF-8 can't."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
