"""Answer the requests of one connection with a model; the model is loaded, and exported where it has to be, here.

A query is answered at once. A passage's tokens are cut when it is read; it has its own run, and its vectors are made in
a batch with others: a run of the model evicts the processor's caches, so the work before and after it takes half as
long in a batch. So the answers of short texts are held back while others wait, and written together. Guaranteed: each
passage is answered once, with the same vectors as alone; an answer is held back only while passages of its connection
wait or short ones run; if the process dies in the work after runs, their texts are noted.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from schemas.failures import ModelMissing
from streams.adapters.embedding.inference.fastembed_model import (
    CrossEncoderModel,
    FastembedModel,
    ModelOutput,
    PreparedText,
)
from streams.adapters.embedding.inference.local_model import LocalModel, ensure_exported, ensure_model_folder
from streams.adapters.embedding.process import frames
from streams.fair_queue import FairQueue

if TYPE_CHECKING:
    from streams.adapters.embedding.inference.catalog_model import CatalogModel

Passage = tuple[bytes, Callable[[], None]]
"""An encoded request, and the function that embeds it."""


# Guaranteed: a passage waits for at most one of each other worker for each own passage, and for the queries before
# its turn; no query waits for a passage, except running ones. While a suspect runs (a text over which the process has
# died before), nothing else does: another death proves it. The texts in progress are in a file that outlives the
# process, so that workers know which may have ended it.
class TurnPool:
    """Runs texts in `threads` own threads, queries in those of their callers, `threads` of them at once."""

    def __init__(self, threads: int, slots: frames.WorkSlots) -> None:
        self._threads = threads
        self._slots = slots
        self._changed = threading.Condition()
        self._passages: FairQueue[Passage] = FairQueue()
        self._suspects: deque[Passage] = deque()
        self._running = 0
        self._is_alone = False
        self._suspect_queries = 0
        self._queries: set[int] = set()
        self._last_query = 0
        for _ in range(threads):
            threading.Thread(target=self._run, daemon=True).start()

    def submit(self, worker: str, content: bytes, passage: Callable[[], None], *, alone: bool) -> None:
        with self._changed:
            if alone:
                self._suspects.append((content, passage))
            else:
                self._passages.put(worker, (content, passage))
            self._changed.notify_all()

    def note(self, content: bytes) -> AbstractContextManager[None]:
        """Note a passage outside of its run, while it is cut into tokens or answered: the process may die over it."""
        return self._slots.at(content)

    @contextmanager
    def query(self, content: bytes, *, alone: bool) -> Iterator[None]:
        """Run a query in this context: no passage begins meanwhile. At most `threads` callers are in it at once."""
        with self._changed:
            self._suspect_queries += alone
            self._changed.wait_for(lambda: self._may_query(alone=alone))
            self._suspect_queries -= alone
            self._last_query = number = self._last_query + 1
            self._queries.add(number)
            self._is_alone = alone
        try:
            with self._slots.at(content):
                yield
        finally:
            with self._changed:
                self._queries.remove(number)
                self._is_alone = self._is_alone and not alone
                self._changed.notify_all()

    def _may_query(self, *, alone: bool) -> bool:
        if alone:
            return not (self._is_alone or self._running or self._queries)
        return not (self._is_alone or self._suspect_queries) and len(self._queries) < self._threads

    def _run(self) -> None:
        while True:
            with self._changed:
                (content, passage), alone = self._next()
            with self._slots.at(content):
                passage()
            with self._changed:
                self._running -= 1
                self._is_alone = self._is_alone and not alone
                if alone or not self._running:
                    self._changed.notify_all()

    def _next(self) -> tuple[Passage, bool]:
        """Wait for a passage whose turn has come, and for the queries in progress by then."""
        while True:
            self._changed.wait_for(self._has_turn)
            self._changed.wait_for(partial(self._have_ended, self._last_query))
            if self._has_turn():
                self._running += 1
                if self._suspects:
                    self._is_alone = True
                    return self._suspects.popleft(), True
                return self._passages.get(), False

    def _have_ended(self, last_query: int) -> bool:
        return min(self._queries, default=last_query + 1) > last_query

    def _has_turn(self) -> bool:
        if self._is_alone or self._suspect_queries:
            return False
        if self._suspects:
            return not self._running and not self._queries
        return bool(len(self._passages))


Write = Callable[[bytes], None]
"""Writes frames; called by several threads."""

MAX_HELD_ANSWERS = 8
"""Answers written together: half of the passages that a worker sends ahead for one thread."""

MAX_HELD_RUN_S = 0.008
"""Processor time of a run up to which its answer may wait for others: about 60 tokens of the smallest model."""

MAX_PREPARED_CHARS = 1000
"""Longer texts are cut into tokens in the thread that runs them, as a query may follow them, and no answer is held back
for their runs."""

MAX_REASON_BYTES = 1000
"""Enough for any reason, and written to a socket in one piece."""

LoadedModel: TypeAlias = "FastembedModel | CatalogModel | CrossEncoderModel"
"""The model for passages: an embedder, or a cross-encoder, for which the prefix is the question."""

NotePassage = Callable[[bytes], AbstractContextManager[None]]
"""Notes the content of a passage: a death of the process inside of the context may be over it."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    number: int
    content: bytes
    result: ModelOutput | Exception


class PassageAnswers:
    """Passages of one connection in, their answers written in any order."""

    def __init__(self, model: LoadedModel, write: Write, note: NotePassage) -> None:
        self._model = model
        self._write = write
        self._note = note
        self._changing = threading.Lock()
        self._waiting = 0
        """Passages that are read but have not begun."""
        self._held: list[FinishedRun] = []

    def expect(self, number: int, content: bytes, *, alone: bool) -> Callable[[], None]:
        """Take a passage that was read; return the function that runs it. `alone`: its answer is not held back."""
        with self._changing:
            self._waiting += 1
        with self._note(content):
            prepared = self._prepared(content) if len(content) <= MAX_PREPARED_CHARS else None
        return partial(self._run, number, content, prepared, alone=alone)

    def _prepared(self, content: bytes) -> PreparedText | Exception:
        try:
            prefix, text = frames.decode_request(content)
            return self._model.prepare_passage(text, prefix)
        except Exception as problem:
            return problem

    def _run(self, number: int, content: bytes, prepared: PreparedText | Exception | None, *, alone: bool) -> None:
        with self._changing:
            self._waiting -= 1
        if prepared is None:
            self._answer(self._taken())
        began = thread_time()
        if prepared is None:
            prepared = self._prepared(content)
        result: ModelOutput | Exception
        try:
            result = prepared if isinstance(prepared, Exception) else self._model.run(prepared)
        except Exception as problem:
            result = problem
        is_long = thread_time() - began > MAX_HELD_RUN_S
        with self._changing:
            self._held.append(FinishedRun(number, content, result))
            if not (alone or is_long) and self._waiting and len(self._held) < MAX_HELD_ANSWERS:
                return
        self._answer(self._taken())

    def _taken(self) -> list[FinishedRun]:
        with self._changing:
            taken, self._held = self._held, []
            return taken

    def _answer(self, due: Sequence[FinishedRun]) -> None:
        if not due:
            return
        outputs = [(run.number, run.result) for run in due if not isinstance(run.result, Exception)]
        failed = [frames.encode_error(run.number, run.result) for run in due if isinstance(run.result, Exception)]
        with ExitStack() as noted:
            # Not before: a text noted while a suspect runs would be suspected in its place.
            for run in due:
                noted.enter_context(self._note(run.content))
            self._write(b"".join(failed + self._answers(outputs)))

    def _answers(self, outputs: Sequence[tuple[int, ModelOutput]]) -> list[bytes]:
        try:
            encoded = self._model.finish_passages([output for _, output in outputs])
            return [
                frames.encode_frame(number, frames.VECTORS, frames.encode_vectors(vectors))
                for (number, _), vectors in zip(outputs, encoded, strict=True)
            ]
        except Exception as problem:
            if len(outputs) == 1:
                return [frames.encode_error(outputs[0][0], problem)]
            # Only the failing one is affected.
            return [answer for output in outputs for answer in self._answers([output])]


def load_model(options: dict[str, Any]) -> LoadedModel:
    """Export the model where the options say so, and load it. Raises ModelMissing."""
    try:
        local = LocalModel(**options["model"] | {"directory": Path(options["model"]["directory"])})
        if options["export"]:
            ensure_exported(local, options["export"])
        local = replace(local, directory=ensure_model_folder(local, options["hub"]))
        if local.fastembed_id:
            # Imported here: fastembed takes 0.6 s and 27 MB, which the other models do without.
            from streams.adapters.embedding.inference.catalog_model import CatalogModel  # noqa: PLC0415

            return CatalogModel.load(local)
        return CrossEncoderModel.load(local) if local.scores_pairs else FastembedModel.load(local)
    except Exception as problem:
        is_reason = isinstance(problem, FileNotFoundError | ModelMissing)
        raise ModelMissing(str(problem) if is_reason else f"{type(problem).__name__}: {problem}") from problem


def hello(model: LoadedModel) -> bytes:
    """Return the first frame of a loaded model: its fingerprint."""
    return frames.encode_frame(0, frames.HELLO, model.fingerprint.model_dump_json().encode())


def refusal(problem: ModelMissing) -> bytes:
    """Return the first frame without a loaded model: the reason."""
    return frames.encode_frame(0, frames.ERROR, str(problem).encode(errors="replace")[:MAX_REASON_BYTES])


class EmbeddingServer:
    """Answers in any order: passages in turns of the workers; a query at once, in the thread that read it."""

    def __init__(self, model: LoadedModel, write: Write, pool: TurnPool, worker: str) -> None:
        self._model = model
        self._write = write
        self._pool = pool
        self._worker = worker
        self._passages = PassageAnswers(model, write, pool.note)

    def serve(self, requests: BinaryIO) -> None:
        while len(head := requests.read(frames.FRAME_HEADER.size)) == frames.FRAME_HEADER.size:
            number, kind, length = frames.decode_header(head)
            if kind == frames.PING:
                self._write(head)
                continue
            content = requests.read(length)
            alone = bool(kind & frames.ALONE)
            if kind & ~frames.ALONE == frames.PASSAGE:
                passage = self._passages.expect(number, content, alone=alone)
                self._pool.submit(self._worker, content, passage, alone=alone)
            else:
                with self._pool.query(content, alone=alone):
                    try:
                        prefix, text = frames.decode_request(content)
                        vectors = frames.encode_vectors(self._model.query(text, prefix))
                        answer = frames.encode_frame(number, frames.VECTORS, vectors)
                    except Exception as problem:
                        answer = frames.encode_error(number, problem)
                    self._write(answer)
