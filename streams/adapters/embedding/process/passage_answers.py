"""Answers the passages of one connection: tokens when a passage is read, one run each, the vectors of several at once.

A run of the model sweeps the processor's caches: what comes before and after it takes twice as long for one text as for
each of several in a row. So the answers of short texts are held back while others wait, and written in one piece.
Guaranteed: each passage is answered once, with the vectors that it has alone; an answer is held back only while
passages of its connection wait or short ones run; where the process dies over what follows runs, their texts are noted.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import Protocol

from schemas.models.vectors import Encoded
from streams.adapters.embedding.inference.fastembed_model import ModelOutput, PreparedText
from streams.adapters.embedding.process import frames

Write = Callable[[bytes], None]
"""Writes frames; called by several threads."""

MAX_HELD_ANSWERS = 8
"""Answers that are written in one piece: half of what one thread's worker sends ahead."""

MAX_HELD_RUN_S = 0.008
"""Processor time of a run whose answer may wait for others: some 60 tokens of the smallest model."""

MAX_PREPARED_CHARS = 1000
"""Longer texts are cut into tokens in the thread that runs them, as a query may be read behind them, and no answer is
held back for their runs."""

NotePassage = Callable[[bytes], AbstractContextManager[None]]
"""Notes the content of a passage: if the process dies inside of the context, it may be over it."""


class PassageModel(Protocol):
    """What reads passages: an embedder, or a cross-encoder, for which the prefix is the question."""

    def prepare_passage(self, text: str, prefix: str | None = None) -> PreparedText:
        """Do what comes before the run."""

    def run(self, prepared: PreparedText) -> ModelOutput:
        """Run the model."""

    def finish_passages(self, outputs: Sequence[ModelOutput]) -> list[Encoded]:
        """Make the vectors of several, those of each as if it were alone."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A passage, and what its run gave."""

    number: int
    content: bytes
    result: ModelOutput | Exception


class PassageAnswers:
    """Passages of one connection in, their answers written in any order."""

    def __init__(self, model: PassageModel, write: Write, note: NotePassage) -> None:
        self._model = model
        self._write = write
        self._note = note
        self._changing = threading.Lock()
        self._waiting = 0
        """Passages that are read and have not begun."""
        self._held: list[FinishedRun] = []

    def expect(self, number: int, content: bytes, *, alone: bool) -> Callable[[], None]:
        """Take a passage that was read; return what runs it. `alone`: its answer is not held back."""
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
        result = self._result(self._prepared(content) if prepared is None else prepared)
        is_long = thread_time() - began > MAX_HELD_RUN_S
        self._answer(self._due(FinishedRun(number, content, result), at_once=alone or is_long))

    def _result(self, given: PreparedText | Exception) -> ModelOutput | Exception:
        if isinstance(given, Exception):
            return given
        try:
            return self._model.run(given)
        except Exception as problem:
            return problem

    def _due(self, finished: FinishedRun, *, at_once: bool) -> list[FinishedRun]:
        """Hold a result back; return those that are to be answered now."""
        with self._changing:
            self._held.append(finished)
            if not at_once and self._waiting and len(self._held) < MAX_HELD_ANSWERS:
                return []
        return self._taken()

    def _taken(self) -> list[FinishedRun]:
        with self._changing:
            taken, self._held = self._held, []
            return taken

    def _answer(self, due: Sequence[FinishedRun]) -> None:
        if not due:
            return
        outputs = [(one.number, one.result) for one in due if not isinstance(one.result, Exception)]
        failed = [frames.encode_error(one.number, one.result) for one in due if isinstance(one.result, Exception)]
        with ExitStack() as noted:
            # Now alone: a text that is noted while a suspect runs would be suspected in its place.
            for one in due:
                noted.enter_context(self._note(one.content))
            self._write(b"".join(failed + self._answers(outputs)))

    def _answers(self, outputs: Sequence[tuple[int, ModelOutput]]) -> list[bytes]:
        try:
            return self._vectors(outputs)
        except Exception as problem:
            if len(outputs) == 1:
                return [frames.encode_error(outputs[0][0], problem)]
            # One of them can't be finished: the others are not concerned.
            return [answer for one in outputs for answer in self._answers([one])]

    def _vectors(self, outputs: Sequence[tuple[int, ModelOutput]]) -> list[bytes]:
        encoded = self._model.finish_passages([output for _, output in outputs])
        return [
            frames.encode_frame(number, frames.VECTORS, frames.encode_vectors(vectors))
            for (number, _), vectors in zip(outputs, encoded, strict=True)
        ]
