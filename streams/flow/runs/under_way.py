"""What is noted of a request while it runs."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from modestream_client.runs import Pipeline

from agents.ports.run_timer import RunTimer, step
from schemas.failures import Rejected
from schemas.messages.records import Record
from schemas.messages.replies import SuccessReply

FIRST_STEPS: dict[Pipeline, str] = {
    "memorize": "memorize.ingest",
    "retrieve": "retrieve.receive",
    "evolve": "evolve.receive",
}
"""The step before a request's own work: its record is read, checked and authorised."""


class EndRun(Protocol):
    """What becomes of a run that ends."""

    def end(self, run: "RunUnderWay", answer: SuccessReply) -> None:
        """End an answered run."""

    def fail(self, run: "RunUnderWay", code: str, refused: Rejected | None = None, *, is_dead_letter: bool) -> None:
        """End a failed run."""


class RunUnderWay:
    """One run. `timer` is to be current while its code runs."""

    __slots__ = ("_ending", "message", "pipeline", "record", "revision", "timer")

    def __init__(self, ending: EndRun, pipeline: Pipeline, record: Record, revision: tuple[int, str]) -> None:
        self._ending = ending
        self.pipeline: Pipeline = pipeline
        self.record = record
        self.revision = revision
        self.message: Any = None
        """The decoded message; None until then."""
        self.timer = RunTimer()

    def receiving(self) -> AbstractContextManager[None]:
        """Time the first step."""
        return step(FIRST_STEPS[self.pipeline])

    def note_message(self, message: Any) -> None:
        """Note what was asked."""
        self.message = message

    def answered(self, answer: SuccessReply | None) -> None:
        """End the run. One without an answer goes on elsewhere, or is past its deadline."""
        if answer is not None:
            self._ending.end(self, answer)
        elif self.pipeline == "retrieve":
            self.failed("expired")

    def refused(self, error: Rejected, *, is_dead_letter: bool) -> None:
        """End the run by an error of its request."""
        self._ending.fail(self, error.dead_letter_code, error, is_dead_letter=is_dead_letter)

    def failed(self, code: str) -> None:
        """End the run by something that is answered by no error."""
        self._ending.fail(self, code, is_dead_letter=False)


class NoRun:
    """Stands for the run of a record that has none."""

    timer: AbstractContextManager[None] = nullcontext()

    def receiving(self) -> AbstractContextManager[None]:
        """Time nothing."""
        return self.timer

    def note_message(self, message: Any) -> None:
        """Note nothing."""

    def answered(self, answer: SuccessReply | None) -> None:
        """Note nothing."""

    def refused(self, error: Rejected, *, is_dead_letter: bool) -> None:
        """Note nothing."""

    def failed(self, code: str) -> None:
        """Note nothing."""


RunNotes = RunUnderWay | NoRun

NO_RUN = NoRun()
