"""The embedder's process, started by `ProcessEmbedder`: `python -m streams.adapters.embedding.process.child OPTIONS`.

Requests come in on standard input, responses leave on standard output, each as soon as it is done; logs go to standard
error. The first frame has the fingerprint of the loaded model, or why it could not be loaded. The process ends when its
input is closed, which is when the worker ends, however it dies, also in the middle of a download.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from agents.rules.interaction.classifier import InteractionClassifier
from schemas.failures import ModelMissing
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel, ensure_exported, ensure_model_folder
from streams.adapters.embedding.process import frames
from streams.adapters.embedding.process.passage_pool import PassagePool
from streams.adapters.parent_watch import exit_with_parent

MAX_REASON_BYTES = 1000
"""Enough for any reason, and written to a pipe in one piece."""


def main() -> None:
    """Export or download the model where the options say so, load it, and serve."""
    options: dict[str, Any] = json.loads(sys.argv[1])
    # The worker handles these signals, and ends this process when it no longer needs it.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)
    exit_with_parent()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    try:
        model = FastembedModel.load(ensure_model(options))
    except Exception as problem:
        is_reason = isinstance(problem, FileNotFoundError | ModelMissing)
        reason = str(problem) if is_reason else f"{type(problem).__name__}: {problem}"
        answers.write(frames.encode_frame(0, frames.ERROR, reason.encode(errors="replace")[:MAX_REASON_BYTES]))
        os._exit(1)
    file = options["classifier"]
    classifier = InteractionClassifier.loads(Path(file).read_bytes()) if file else None
    EmbeddingServer(model, answers, options["threads"], classifier).serve(sys.stdin.buffer)
    os._exit(0)


def ensure_model(options: dict[str, Any]) -> LocalModel:
    """Return the model with a folder that has its files: found, exported or downloaded."""
    local = LocalModel(**options["model"] | {"directory": Path(options["model"]["directory"])})
    if options["export"]:
        ensure_exported(local, options["export"])
    return replace(local, directory=ensure_model_folder(local, options["hub"]))


class EmbeddingServer:
    """Answers in any order: passages in a pool of `threads`; a query at once, in the thread that read it.

    No passage begins while a query is under way.
    """

    def __init__(
        self, model: FastembedModel, answers: BinaryIO, threads: int, classifier: InteractionClassifier | None = None
    ) -> None:
        self._model = model
        self._classifier = classifier
        self._answers = answers
        self._writing = threading.Lock()
        self._passages = PassagePool(threads)

    def serve(self, requests: BinaryIO) -> None:
        """Send the fingerprint, then answer requests until the input ends."""
        self._write(frames.encode_frame(0, frames.HELLO, self._model.fingerprint.model_dump_json().encode()))
        while len(head := requests.read(frames.FRAME_HEADER.size)) == frames.FRAME_HEADER.size:
            number, kind, length = frames.decode_header(head)
            if kind == frames.PING:
                self._write(head)
                continue
            prefix, text = frames.decode_request(requests.read(length))
            if kind == frames.PASSAGE:
                self._passages.submit(partial(self._answer, number, prefix, text, self._passage))
            else:
                with self._passages.query():
                    self._answer(number, prefix, text, self._query)

    def _answer(self, number: int, prefix: str, text: str, embed: Callable[[str, str], bytes]) -> None:
        try:
            answer = frames.encode_frame(number, frames.VECTORS, embed(prefix, text))
        except Exception as problem:
            answer = frames.encode_frame(
                number, frames.ERROR, f"{type(problem).__name__}: {problem}".encode(errors="replace")
            )
        self._write(answer)

    def _passage(self, prefix: str, text: str) -> bytes:
        encoded = self._model.passage(text, prefix)
        if self._classifier is not None:
            # Here, not in the worker: its event loop has less time to spare than these threads.
            encoded = replace(
                encoded,
                interaction_probabilities=self._classifier.probabilities(text, encoded.pooled).astype(np.float32),
            )
        return frames.encode_vectors(encoded)

    def _query(self, prefix: str, text: str) -> bytes:
        return frames.encode_vectors(self._model.query(text, prefix))

    def _write(self, data: bytes) -> None:
        with self._writing:
            while data:
                data = data[self._answers.write(data) :]


if __name__ == "__main__":
    main()
