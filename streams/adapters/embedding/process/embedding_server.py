"""Answers the requests of one connection with a model; the model is loaded, exported or downloaded here."""

from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from schemas.failures import ModelMissing
from streams.adapters.embedding.inference.cross_encoder import CrossEncoderModel
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel, ensure_exported, ensure_model_folder
from streams.adapters.embedding.process import frames
from streams.adapters.embedding.process.passage_answers import PassageAnswers, Write
from streams.adapters.embedding.process.turn_pool import WorkerLine

MAX_REASON_BYTES = 1000
"""Enough for any reason, and written to a pipe in one piece."""


LoadedModel = FastembedModel | CrossEncoderModel


def load_model(options: dict[str, Any]) -> LoadedModel:
    """Export or download the model where the options say so, and load it. Raises ModelMissing."""
    try:
        local = ensure_model(options)
        return CrossEncoderModel.load(local) if local.scores_pairs else FastembedModel.load(local)
    except Exception as problem:
        is_reason = isinstance(problem, FileNotFoundError | ModelMissing)
        raise ModelMissing(str(problem) if is_reason else f"{type(problem).__name__}: {problem}") from problem


def ensure_model(options: dict[str, Any]) -> LocalModel:
    """Return the model with a folder that has its files: found, exported or downloaded."""
    local = LocalModel(**options["model"] | {"directory": Path(options["model"]["directory"])})
    if options["export"]:
        ensure_exported(local, options["export"])
    return replace(local, directory=ensure_model_folder(local, options["hub"]))


def hello(model: LoadedModel) -> bytes:
    """Return the first frame of a loaded model: its fingerprint."""
    return frames.encode_frame(0, frames.HELLO, model.fingerprint.model_dump_json().encode())


def refusal(problem: ModelMissing) -> bytes:
    """Return the first frame where no model is loaded: the reason."""
    return frames.encode_frame(0, frames.ERROR, str(problem).encode(errors="replace")[:MAX_REASON_BYTES])


class EmbeddingServer:
    """Answers in any order: passages where `texts` runs them; a query at once, in the thread that read it."""

    def __init__(self, model: LoadedModel, write: Write, texts: WorkerLine) -> None:
        self._model = model
        self._write = write
        self._texts = texts
        self._passages = PassageAnswers(model, write, texts.note)

    def serve(self, requests: BinaryIO) -> None:
        """Answer requests until the input ends."""
        while len(head := requests.read(frames.FRAME_HEADER.size)) == frames.FRAME_HEADER.size:
            number, kind, length = frames.decode_header(head)
            if kind == frames.PING:
                self._write(head)
                continue
            content = requests.read(length)
            alone = bool(kind & frames.ALONE)
            if kind & ~frames.ALONE == frames.PASSAGE:
                passage = self._passages.expect(number, content, alone=alone)
                self._texts.submit(content, passage, alone=alone)
            else:
                with self._texts.query(content, alone=alone):
                    self._write(self._query(number, content))

    def _query(self, number: int, content: bytes) -> bytes:
        try:
            prefix, text = frames.decode_request(content)
            return frames.encode_frame(number, frames.VECTORS, frames.encode_vectors(self._model.query(text, prefix)))
        except Exception as problem:
            return frames.encode_error(number, problem)
