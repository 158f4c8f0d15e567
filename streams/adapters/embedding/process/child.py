"""The embedder's own process: `python -m streams.adapters.embedding.process.child OPTIONS`, started by `ProcessEmbedder`.

Frames with texts come in on standard input, frames with vectors leave on standard output, each as soon as it is
done; logs go to standard error. The first frame says what was loaded, or why nothing could be. It ends when its input
ends, which is when its worker does, however that dies, and in the middle of a download too.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from agents.rules.interaction.classifier import InteractionClassifier
from schemas.failures import ModelMissing
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.inference.model_folder import ensure_exported, ensure_model_folder
from streams.adapters.embedding.process.frames import (
    ERROR,
    FRAME_HEADER,
    HELLO,
    PASSAGE,
    VECTORS,
    decode_header,
    decode_request,
    encode_frame,
    encode_vectors,
)
from streams.adapters.parent_watch import exit_with_parent

MAX_REASON_BYTES = 1000
"""No reason needs more, and a pipe takes as much in one piece."""


def main() -> None:
    """Load the model, make or fetch it first where that is asked for, and serve."""
    options: dict[str, Any] = json.loads(sys.argv[1])
    # The worker is told to stop, and stops this process when it is done with it.
    for order in (signal.SIGINT, signal.SIGTERM):
        signal.signal(order, signal.SIG_IGN)
    exit_with_parent()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    try:
        model = FastembedModel.load(ensure_model(options))
    except Exception as problem:
        is_reason = isinstance(problem, FileNotFoundError | ModelMissing)
        said = str(problem) if is_reason else f"{type(problem).__name__}: {problem}"
        answers.write(encode_frame(0, ERROR, said.encode(errors="replace")[:MAX_REASON_BYTES]))
        os._exit(1)
    reads = InteractionClassifier.loads(Path(options["reader"]).read_bytes()) if options["reader"] else None
    EmbeddingServer(model, answers, options["threads"], reads).serve(sys.stdin.buffer)
    os._exit(0)


def ensure_model(options: dict[str, Any]) -> LocalModel:
    """The model in a folder that has its files: as it is, exported, or downloaded."""
    local = LocalModel(**options["model"] | {"directory": Path(options["model"]["directory"])})
    if options["export"]:
        ensure_exported(local, options["export"])
    return replace(local, directory=ensure_model_folder(local, options["hub"]))


class EmbeddingServer:
    """Answers in any order: passages on as many threads as told; a query at once, by the thread that read it."""

    def __init__(
        self,
        model: FastembedModel,
        answers: BinaryIO,
        threads: int,
        reads: InteractionClassifier | None = None,
    ) -> None:
        self._model = model
        self._reads = reads
        self._answers = answers
        self._writing = threading.Lock()
        self._passages = ThreadPoolExecutor(threads)

    def serve(self, questions: BinaryIO) -> None:
        """Say hello, then answer until the input ends."""
        self._write(encode_frame(0, HELLO, self._model.fingerprint.model_dump_json().encode()))
        while len(head := questions.read(FRAME_HEADER.size)) == FRAME_HEADER.size:
            number, kind, length = decode_header(head)
            prefix, text = decode_request(questions.read(length))
            if kind == PASSAGE:
                self._passages.submit(self._answer, number, prefix, text, self._passage)
            else:
                self._answer(number, prefix, text, self._query)

    def _answer(self, number: int, prefix: str, text: str, made: Callable[[str, str], bytes]) -> None:
        try:
            answer = encode_frame(number, VECTORS, made(prefix, text))
        except Exception as problem:
            answer = encode_frame(number, ERROR, f"{type(problem).__name__}: {problem}".encode(errors="replace"))
        self._write(answer)

    def _passage(self, prefix: str, text: str) -> bytes:
        encoded = self._model.passage(text, prefix)
        if self._reads is not None:
            # Here, as the worker's event loop has less time to spare than the threads that wait for a core.
            encoded = replace(
                encoded, interaction_probabilities=self._reads.probabilities(text, encoded.pooled).astype(np.float32)
            )
        return encode_vectors(encoded)

    def _query(self, prefix: str, text: str) -> bytes:
        return encode_vectors(self._model.query(text, prefix))

    def _write(self, data: bytes) -> None:
        with self._writing:
            while data:
                data = data[self._answers.write(data) :]


if __name__ == "__main__":
    main()
