"""The job `evaluate`: questions from a user's own log, asked of one or two revisions of the pipelines.

Enters: a job. Leaves: its answer, None if the partition has left meanwhile: the worker that has it now runs it again.
Guaranteed: both revisions are asked the same questions one after the other, as of the time before each was written;
nothing is stored or published, and no model orders hits. The answer has ids and numbers, and no texts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from modestream_client.arguments import RunEvaluation

from agents.context.assemble import Assemble
from agents.ports.indexes import LexicalIndex
from agents.ports.pipelines import ActivePipelines
from agents.ports.stores import Memories
from agents.retrieval.retrieve import Retrieve
from agents.rules.evaluation.questions import (
    LoggedTurn,
    Outcome,
    Question,
    Shares,
    make_questions,
    report,
    sample_questions,
    shares_found,
)
from agents.rules.memory.visibility import list_ids_of_job
from agents.rules.pipelines.validation import apply_edits
from agents.understanding.word_questions import WordQuestions
from schemas.failures import Rejected, Unavailable
from schemas.internal.changes import Job, JobProgress
from schemas.messages.assemble import AssembleRequest
from schemas.messages.retrieval import RetrieveRequest
from schemas.scopes import Selector
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.pipelines.custom_step import writing_nothing
from streams.flow.pipelines.in_force import Pipelines
from streams.flow.worker_context import WorkerContext

TOP_K = 10
"""Hits of a question: recall@10."""

READ_AT_ONCE = 500
"""Memories that are read before others have a turn."""

WORDED_AT_ONCE = 4
"""Questions that a language model words at the same time."""

MAX_MODEL_WAIT_S = 60.0
"""Seconds that the job waits for a language model that does not answer."""

Answering = Callable[[ActivePipelines], tuple[Retrieve, Assemble]]


@dataclass(frozen=True, slots=True)
class EvaluateRevisions:
    """Makes the questions of one partition's users, and asks them."""

    memories: Memories
    words: LexicalIndex
    selector: type[Selector]
    pipelines: Pipelines
    answering: Answering
    wording: WordQuestions

    async def sides(self, arguments: RunEvaluation) -> tuple[list[tuple[Retrieve, Assemble]], dict[str, Any]]:
        """Return what answers by the revision in force and by the other one, and how the answer names them.

        Raises Rejected with the rule that the edits break, or `not_found`.
        """
        active, current = self.pipelines.current, self.pipelines.history.current()
        named: dict[str, Any] = {"revision": active.number}
        if arguments.edits is None and arguments.revision is None:
            return [self.answering(active)], named
        if arguments.edits is not None:
            topology = apply_edits(current.topology, arguments.edits)
            other = {"edits_of": current.number}
        else:
            revision = self.pipelines.history.find(arguments.revision or 0)
            if revision is None:
                raise Rejected("not_found", f"there is no revision {arguments.revision}", "arguments.revision")
            topology, other = revision.topology, {"revision": revision.number}
        drafted = await self.pipelines.draft(topology)
        named["other"] = {**other, "hash": topology.digest}
        return [self.answering(active), self.answering(drafted)], named

    async def questions(self, job: Job) -> list[Question]:
        """Return the questions of a job's scope and mode, by rules, at most as many as it asks for."""
        turns: list[LoggedTurn] = []
        for page in batches(list_ids_of_job(self.words.memory_columns(job.scope.boundary), job), READ_AT_ONCE):
            turns += [turn for memory_id in page if (turn := self._turn(memory_id)) is not None]
            await asyncio.sleep(0)
        # A log of 50,000 turns takes some seconds.
        made = await asyncio.to_thread(make_questions, turns)
        return sample_questions(made, _arguments(job).limit)

    def _turn(self, memory_id: str) -> LoggedTurn | None:
        """Return a turn as it was written; None for a distilled memory, and for an edited turn: that text is gone."""
        memory = self.memories.get(memory_id)
        if memory is None or memory.origin != "said" or memory.version > 1:
            return None
        return LoggedTurn(
            memory_id,
            tuple(sorted(memory.scope.items())),
            memory.conversation_id or "",
            memory.mode,
            memory.role or "",
            memory.speaker,
            memory.text,
            memory.accepted_at,
        )

    async def ask(self, question: Question, side: tuple[Retrieve, Assemble], budget_tokens: int) -> tuple[Shares, bool]:
        """Return what one revision finds, and True if it was by words alone. Raises Unavailable."""
        retrieve, assemble = side
        asked: dict[str, Any] = {
            "scope": self.selector.model_validate(dict(question.scope)),
            "query": question.text,
            "mode": question.mode,
            "as_of": question.asked_at,
        }
        try:
            request, _ = await retrieve.receive(RetrieveRequest(**asked, top_k=TOP_K))
            found, warnings = await retrieve.answer(request)
            hits, _ = await retrieve.ordered(request, found)
            context, _ = await assemble.answer(AssembleRequest(**asked, budget_tokens=budget_tokens))
        except Rejected:
            # A custom step refuses the question: nothing is found by it.
            return Shares(0, 0, 0), False
        shares = shares_found(question.evidence, [hit.memory_id for hit in hits], context.references)
        return shares, any(code == "degraded" for code, _ in warnings)


async def run_evaluation(
    job: Job, tally: JobProgress, agent: EvaluateRevisions, partition: int, ctx: WorkerContext
) -> dict[str, Any] | None:
    """Run the job; progress counts questions."""
    arguments = _arguments(job)
    sides, named = await agent.sides(arguments)
    questions = await agent.questions(job)
    tally.total = len(questions)
    by_model = agent.wording.is_asked(arguments.by_model)
    if by_model:
        questions = await _worded(questions, agent.wording, ctx)
        tally.skipped = tally.total - len(questions)
    outcomes: list[Outcome] = []
    degraded = 0
    with writing_nothing():
        for question in questions:
            if not ctx.is_assigned(partition):
                return None
            async with ctx.foreground.slice():
                asked = [partial(agent.ask, question, side, arguments.budget_tokens) for side in sides]
                answers = [await until_available(ask, "vector index", ctx.meters) for ask in asked]
                shares = [share for share, _ in answers]
                degraded += any(is_degraded for _, is_degraded in answers)
                other = shares[1] if len(shares) > 1 else None
                outcome = Outcome(memory_id=question.memory_id, mode=question.mode, current=shares[0], other=other)
                outcomes.append(outcome)
                tally.processed += 1
    return {
        "job_id": job.job_id,
        **named,
        "by": "model" if by_model else "rules",
        "budget_tokens": arguments.budget_tokens,
        "degraded": degraded,
        **report(outcomes),
        "outcomes": [outcome.model_dump(mode="json", exclude_none=True) for outcome in outcomes],
    }


def _arguments(job: Job) -> RunEvaluation:
    return job.evaluation or RunEvaluation()


async def _worded(questions: Sequence[Question], wording: WordQuestions, ctx: WorkerContext) -> list[Question]:
    """Return the questions that a language model words. Raises Rejected `unavailable` if it does not answer."""
    if questions and not wording.is_available():
        message = "no language model can be asked now: see LLM_PROFILES and `health`, or have rules make the questions"
        raise Rejected("unavailable", message, "arguments.by_model")

    def word(question: Question) -> Awaitable[Question | None]:
        call = partial(wording.word, question)
        return until_available(call, "language model", ctx.meters, at_most_s=MAX_MODEL_WAIT_S)

    worded: list[Question] = []
    try:
        for page in batches(questions, WORDED_AT_ONCE):
            worded += [each for each in await asyncio.gather(*map(word, page)) if each is not None]
    except Unavailable as problem:
        raise Rejected("unavailable", str(problem), "arguments.by_model") from problem
    return worded
