"""Requests that are answered from what is there: retrieval, which may wait for the asker's own writes, and commands."""

from agents.govern import Govern
from agents.retrieve import Retrieve
from schemas.commands import Command
from schemas.records import Record
from schemas.replies import Answer, Warned
from schemas.retrieval import RetrieveRequest
from streams.flow.requests import Asked, Handled
from streams.flow.surroundings import Surroundings

LONGEST_WAIT_SECONDS = 5.0
"""How long `read_after` is waited for without a deadline (CONTRACT §5)."""

TIME_TO_ANSWER_SECONDS = 0.25
"""What is kept of the time until a deadline, so that the answer still arrives before it."""


class AnswerRetrieve:
    """Answers `retrieve.v1` over the memories of this worker."""

    def __init__(self, retrieve: Retrieve, around: Surroundings) -> None:
        self._retrieve = retrieve
        self._around = around

    async def __call__(self, request: RetrieveRequest, record: Record, asked: Asked) -> Handled:
        """Wait for what the asker has written, then look."""
        with self._around.meters.retrieve_seconds.time():
            caught_up = await self._caught_up(request, record.partition, asked)
            result, warnings = await self._retrieve.answer(request, record.partition)
        warned = tuple(Warned(code, message) for code, message in warnings)
        if not caught_up:
            message = f"offset {request.read_after} of partition {record.partition} is not applied yet"
            warned = (Warned("not_caught_up", message), *warned)
        return Handled(Answer(result, warned))

    async def _caught_up(self, request: RetrieveRequest, partition: int, asked: Asked) -> bool:
        if request.read_after is None:
            return True
        within = LONGEST_WAIT_SECONDS
        if asked.deadline_ms is not None:
            left = asked.deadline_ms / 1000 - self._around.clock.now().timestamp()
            within = max(0.0, min(within, left - TIME_TO_ANSWER_SECONDS))
        return await self._around.progress.reached(partition, request.read_after, within)


class AnswerCommand:
    """Answers `command.v1`."""

    def __init__(self, govern: Govern) -> None:
        self._govern = govern

    async def __call__(self, command: Command, record: Record, _asked: Asked) -> Handled:
        """Carry the command out."""
        return Handled(Answer(await self._govern.command(command, record.partition)))
