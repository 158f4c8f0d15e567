"""One ONNX cross-encoder in this process, through fastembed, from a folder and never from the network.

Enters: pairs of a question and a text. Leaves: the log-odds that the text answers the question, as a vector of one
number. It has the methods of `FastembedModel`, the question in place of the prefix, so that one kind of process serves
both. Guaranteed: thread-safe; each run uses one thread; a pair beyond the tokenizer's limit loses the end of its longer
part.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

import numpy as np
from fastembed.common.model_description import ModelSource
from fastembed.rerank.cross_encoder import TextCrossEncoder
from fastembed.rerank.cross_encoder.onnx_text_cross_encoder import OnnxTextCrossEncoder

from schemas.models.vectors import Encoded, Matrix
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.fastembed_model import PROBE_TEXT, ModelOutput, PreparedText, well_formed
from streams.adapters.embedding.inference.local_model import LocalModel, companions_digest

NO_TOKENS: Matrix = np.empty((0, 0), np.float32)


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
        with (local.directory / local.model_file).open("rb") as file:
            file_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
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
