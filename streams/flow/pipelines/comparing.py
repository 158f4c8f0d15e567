"""Compare a draft of the pipelines with those in force, on the last recorded requests of a user.

Enters: runs of questions, contexts and turns. Leaves: those that come out otherwise, by ids and counts, without texts.
Guaranteed: nothing is stored or published, and no built-in step asks a language model; a request that a custom step
refuses is a difference, not an error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from modestream_client.runs import Run

from agents.context.assemble import Assemble
from agents.ports.commands import RunLog
from agents.ports.pipelines import ActivePipelines
from agents.ports.stores import Memories
from agents.retrieval.retrieve import Retrieve
from agents.rules.items.analysis import AnalysedText
from agents.rules.pipelines.validation import in_this_release, shipped_revision
from schemas.failures import Rejected, Unavailable
from schemas.messages.assemble import AssembleRequest
from schemas.messages.decoding import decode
from schemas.messages.retrieval import RetrieveRequest
from schemas.scopes import Selector
from schemas.state.memories import Memory
from schemas.state.pipelines import Revision
from streams.flow.pipelines.custom_step import writing_nothing

# Workers that have read the same records of the topic `pipelines` have the same revision: of two records with one
# number the first counts.

log = structlog.get_logger()

MAX_APPEND_S = 15.0
"""Maximum wait for a written revision to be read back from Kafka, which normally takes milliseconds."""

Write = Callable[[Revision], Awaitable[None]]
"""Writes a revision to the topic; returns when Kafka has it."""

OnChanged = Callable[[Revision], Awaitable[None]]
"""Awaited when another revision counts, before the edit that has made it is answered."""


async def _leave(_revision: Revision) -> None:
    """Nothing is to be done yet."""


class PipelineHistory:
    """Implements `agents.ports.pipelines.Revisions`."""

    def __init__(self, write: Write, on_changed: OnChanged = _leave) -> None:
        self.on_changed = on_changed
        self._write = write
        self._revisions = [shipped_revision()]
        self._by_request: dict[str, Revision] = {}
        self._read: set[tuple[int, str]] = set()
        self._news = asyncio.Condition()

    def current(self) -> Revision:
        return self._revisions[-1]

    def find(self, number: int) -> Revision | None:
        return self._revisions[number] if 0 <= number < len(self._revisions) else None

    def latest(self, limit: int) -> Sequence[Revision]:
        return self._revisions[::-1][:limit]

    def made_by(self, request: str) -> Revision | None:
        return self._by_request.get(request)

    async def append(self, revision: Revision) -> bool:
        wanted = (revision.number, revision.request)
        try:
            async with asyncio.timeout(MAX_APPEND_S):
                await self._write(revision)
                async with self._news:
                    await self._news.wait_for(lambda: wanted in self._read)
        except TimeoutError as late:
            raise Unavailable("the revision is not read back from Kafka yet; look whether it counts") from late
        counts = self.find(revision.number)
        return counts is not None and counts.request == revision.request

    async def take(self, value: bytes | None) -> None:
        """Read one record; what is no next revision is left out."""
        revision = _decoded(value)
        if revision is None:
            return
        self._read.add((revision.number, revision.request))
        if revision.number == len(self._revisions):
            topology = in_this_release(revision.topology)
            self._revisions.append(revision.model_copy(update={"topology": topology}))
            self._by_request[revision.request] = self._revisions[-1]
            await self.on_changed(self._revisions[-1])
        async with self._news:
            self._news.notify_all()


RETRIEVE, ASSEMBLE = "retrieve.v1", "assemble.v1"

MAX_COMPARING_S = 6.0
"""Time for all requests: callers over HTTP wait 10 s by default, and the edit is checked before."""

QUESTION_FIELDS = ("mode", "conversation_id", "top_k", "depth")

CONTEXT_FIELDS = ("mode", "conversation_id", "budget_tokens", "format", "interaction_mode")
"""Fields of a run's input from which its request is rebuilt."""

Outcome = tuple[list[str], list[str]]
"""Ids of what came out, in order, and codes of warnings or of the error."""


@dataclass(frozen=True, slots=True)
class CompareRevisions:
    """Implements `agents.ports.pipelines.RequestComparison` for one partition."""

    partition: int
    run_log: RunLog
    memories: Memories
    selector: type[Selector]
    answering: Callable[[ActivePipelines], tuple[Retrieve, Assemble]]
    analyse: Callable[[Memory, ActivePipelines], Awaitable[AnalysedText]]

    async def __call__(
        self, boundary: str, before: ActivePipelines, after: ActivePipelines, last: int
    ) -> dict[str, Any]:
        """Return the differences of the last requests of a user. Raises Unavailable."""
        page = await self.run_log.newest(self.partition, boundary, _is_comparable, last)
        pairs = [(pipelines, *self.answering(pipelines)) for pipelines in (before, after)]
        changed: list[dict[str, Any]] = []
        compared, ends = 0, asyncio.get_running_loop().time() + MAX_COMPARING_S
        with writing_nothing():
            for run in page.runs:
                if asyncio.get_running_loop().time() > ends:
                    break
                outcomes = [await self._outcome(run, *pair) for pair in pairs]
                if None in outcomes:
                    continue
                compared += 1
                if outcomes[0] != outcomes[1]:
                    changed.append(_difference(run, *[outcome for outcome in outcomes if outcome is not None]))
        counts = {"requests": len(page.runs), "compared": compared, "changed": len(changed)}
        return {**counts, "differences": changed}

    async def _outcome(
        self, run: Run, pipelines: ActivePipelines, retrieve: Retrieve, assemble: Assemble
    ) -> Outcome | None:
        """Return the result of a request with these pipelines; None for a forgotten turn."""
        try:
            if run.pipeline == "memorize":
                memory = self.memories.get(run.memory_id or "")
                if memory is None:
                    return None
                text = await self.analyse(memory, pipelines)
                return [f"{item.kind} {item.start}-{item.end}" for item in text.items], []
            scope = self.selector.model_validate(run.scope)
            if run.kind == ASSEMBLE:
                fields = {name: run.input[name] for name in CONTEXT_FIELDS if name in run.input}
                asked = AssembleRequest(scope=scope, query=run.input["query"], **fields)
                context, warnings = await assemble.answer(asked)
                return list(context.references), [code for code, _ in warnings]
            fields = {name: run.input[name] for name in QUESTION_FIELDS if name in run.input}
            request, received = await retrieve.receive(RetrieveRequest(scope=scope, query=run.input["query"], **fields))
            found, warnings = await retrieve.answer(request)
            ordered, more = await retrieve.ordered(request, found)
            return [hit.memory_id for hit in ordered], [code for code, _ in (*received, *warnings, *more)]
        except Rejected as refused:
            return [], [refused.code]


def _is_comparable(run: Run) -> bool:
    """True for a turn, and for a question or a context whose text was recorded."""
    is_turn = run.pipeline == "memorize" and run.part == "accept" and run.memory_id is not None
    return is_turn or (run.kind in (RETRIEVE, ASSEMBLE) and bool(run.input.get("query")))


def _difference(run: Run, before: Outcome, after: Outcome) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "at": run.at.isoformat(),
        "kind": run.kind,
        "memory_id": run.memory_id,
        "added": [name for name in after[0] if name not in before[0]],
        "removed": [name for name in before[0] if name not in after[0]],
        "reordered": _common(before[0], after[0]) != _common(after[0], before[0]),
        "warnings": {"before": before[1], "after": after[1]},
    }


def _common(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return [name for name in names if name in others]


def _decoded(value: bytes | None) -> Revision | None:
    try:
        return decode(value, {"pipeline.v1": Revision})
    except Rejected as problem:
        log.warning("a record of the topic of pipelines can't be read", problem=problem.code)
        return None
