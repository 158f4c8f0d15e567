"""The embedder's process, started by `ProcessEmbedder`: `python -m streams.adapters.embedding.process.child OPTIONS`.

Requests come in on standard input, responses leave on standard output, each as soon as it is done; logs go to standard
error. The first frame has the fingerprint of the loaded model, or why it could not be loaded. The process ends when its
input is closed, which is when the worker ends, however it dies, also in the middle of a download. With the arguments
of `serve_shared` as well it serves all workers of a data directory.
"""

import gc
import json
import os
import signal
import sys
import threading
from typing import Any, BinaryIO

from streams.importing import exempt_from_collection

with exempt_from_collection():
    from schemas.failures import ModelMissing
    from streams.adapters.embedding.process.embedding_server import EmbeddingServer, hello, load_models, refusal
    from streams.adapters.embedding.process.passage_pool import PassagePool
    from streams.adapters.embedding.process.shared_server import serve_shared
    from streams.adapters.parent_watch import exit_with_parent


def main() -> None:
    """Load the model, and serve."""
    options: dict[str, Any] = json.loads(sys.argv[1])
    # The worker handles these signals, and ends this process when it no longer needs it.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)
    if shared := sys.argv[2:]:
        serve_shared(options, *shared)
    else:
        _serve_parent(options)


def _serve_parent(options: dict[str, Any]) -> None:
    exit_with_parent()
    answers = PipedAnswers(os.fdopen(os.dup(1), "wb", buffering=0))
    os.dup2(2, 1)
    try:
        model, classifier = load_models(options)
    except ModelMissing as problem:
        answers.write(refusal(problem))
        os._exit(1)
    answers.write(hello(model))
    gc.freeze()  # What is loaded stays: no collection looks at it again.
    EmbeddingServer(model, answers.write, PassagePool(options["threads"]), classifier).serve(sys.stdin.buffer)
    os._exit(0)


class PipedAnswers:
    """Writes frames to the one worker."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._writing = threading.Lock()

    def write(self, data: bytes) -> None:
        """Write a frame, after those of other threads."""
        with self._writing:
            while data:
                data = data[self._pipe.write(data) :]


if __name__ == "__main__":
    main()
