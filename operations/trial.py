"""`modestream compare`, `promote` and `drop`: a user and its fork, asked the same; the fork's choices taken; its end.

Enters: two boundaries and questions. Leaves: which hits differ, at which rank the evidence is, and sums with their
intervals. Guaranteed: `compare` changes nothing; `drop` ends forks alone.
"""

import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from modestream_client import MemoryClient, MemoryServiceError
from modestream_client.hits import Hit, ListedMemory, MemoryFields
from modestream_client.vocabulary import Moment
from pydantic import BaseModel, ValidationError

from agents.rules.evaluation.questions import ONE_MS, make_questions
from agents.rules.memory.versions import normalise_text
from operations.change_model import ChangeModel, ModelChange
from operations.compare import logged_turns
from operations.deployment import Progress, client_of, deployment_at, run_command, until_embedded
from operations.fork import FORKED_FROM, Branch, open_user_logs
from schemas.scopes import ANY_VALUE, PROJECT_FIELD
from schemas.state.memories import derive_memory_id
from streams.settings import Settings

TOP_K = 10
"""Hits of a question that are compared."""

MAX_QUESTIONS = 50
"""Turns of the fork that are asked as questions where no file has any."""

MAX_QUESTION_CHARS = 500

CONFIDENCE_95 = 1.96
"""Standard errors of the 95 % interval of a mean."""

MAX_NAMED_CHARS = 60


class Question(BaseModel, extra="ignore"):
    """A line of the file of questions. `evidence` are ids of memories or turns of the user that answer it.

    It is asked as of `asked_at`, in a project or in all, in a mode or as a client without one asks.
    """

    question: str
    mode: str | None = None
    asked_at: Moment | None = None
    evidence: tuple[str, ...] = ()
    project_id: str = ANY_VALUE


def read_questions(path: Path) -> list[Question]:
    """Return the questions of a file. Raises ValueError that names the line, OSError."""
    questions = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            questions.append(Question.model_validate_json(line))
        except ValidationError as problem:
            raise ValueError(f"{path}, line {number}: {problem.errors()[0]['msg']}") from None
    return questions


@dataclass(frozen=True, slots=True)
class Found:
    """A hit, by the same key in both boundaries; `ids` are those that a question's evidence may name."""

    key: str
    ids: frozenset[str]
    text: str

    @classmethod
    def of(cls, hit: MemoryFields, user: Branch) -> "Found":
        """Return a hit of the user or of its fork: a turn has the id of the user's memory, others their text."""
        if hit.turn_id is None or hit.conversation_id is None:
            return cls(f"{hit.type} {normalise_text(hit.text)}", frozenset({str(hit.memory_id)}), hit.text)
        key = derive_memory_id({**hit.scope, **user.fields}, hit.conversation_id, hit.turn_id)
        return cls(key, frozenset({key, hit.turn_id}), hit.text)


@dataclass(frozen=True, slots=True)
class Compared:
    """The hits of a question in the user's memory and in the fork's, best first."""

    question: Question
    before: Sequence[Found]
    after: Sequence[Found]

    @property
    def is_same(self) -> bool:
        """True if both have the same hits in the same order."""
        return [hit.key for hit in self.before] == [hit.key for hit in self.after]

    @property
    def overlap(self) -> float:
        """The share of hits that both have, 0 to 1; 1 where neither has any."""
        keys = [{hit.key for hit in hits} for hits in (self.before, self.after)]
        return len(keys[0] & keys[1]) / len(keys[0] | keys[1]) if keys[0] | keys[1] else 1.0

    def missing(self, hits: Sequence[Found], others: Sequence[Found]) -> list[Found]:
        """Return the hits that the others lack."""
        keys = {hit.key for hit in others}
        return [hit for hit in hits if hit.key not in keys]

    def rank(self, hits: Sequence[Found]) -> int | None:
        """Return the rank of the first evidence, from 1; None if it is not among the hits."""
        evidence = frozenset(self.question.evidence)
        return next((number for number, hit in enumerate(hits, 1) if hit.ids & evidence), None)

    def reciprocal_rank(self, hits: Sequence[Found]) -> float:
        """Return 1 divided by the rank of the first evidence, 0 without any."""
        rank = self.rank(hits)
        return 0.0 if rank is None else 1 / rank

    def recall(self, hits: Sequence[Found]) -> float:
        """Return the share of the evidence that is among the hits."""
        ids = frozenset[str]().union(*[hit.ids for hit in hits])
        return len(ids & set(self.question.evidence)) / len(set(self.question.evidence))


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with the half width of its 95 % interval; infinite for fewer than two values."""

    value: float
    within: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        """Return the mean of at least one value."""
        if len(values) < 2:
            return cls(values[0], float("inf"))
        return cls(statistics.fmean(values), CONFIDENCE_95 * statistics.stdev(values) / len(values) ** 0.5)

    def __str__(self) -> str:
        return f"{self.value:+.3f} ± {self.within:.3f}"


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The user, its fork, and a file of questions; None: turns of the fork are asked."""

    user: str
    fork: str
    questions: Path | None = None
    principal: str | None = None


async def compare(options: CompareOptions, settings: Settings) -> int:
    """Ask both the same, print the differences; return 1 if the fork finds significantly less evidence, else 0.

    Raises ValueError for a file that has no questions, MemoryClientError, Unavailable.
    """
    asked = None if options.questions is None else read_questions(options.questions)
    settings = await deployment_at(settings)
    user, fork = Branch(options.user, settings), Branch(options.fork, settings)
    async with client_of(settings, options.principal) as client:
        for branch in (user, fork):
            if not await until_embedded(partial(run_command, client, "health", branch.scope)):
                raise MemoryServiceError("timeout", f"{branch.name} has vectors that are not made yet")
        questions = questions_in(await fork.memories(client), user) if asked is None else asked
        if not questions:
            raise ValueError("there are no questions to ask")
        compared = []
        with Progress("compare", len(questions), "questions") as progress:
            for question in questions:
                hits = [await _asked(client, branch, question) for branch in (user, fork)]
                found = [[Found.of(hit, user) for hit in several] for several in hits]
                compared.append(Compared(question, *found))
                progress.advance()
    for line in lines_of(compared, options):
        sys.stdout.write(f"{line}\n")
    return 1 if is_worse(compared) else 0


async def _asked(client: MemoryClient, branch: Branch, question: Question) -> Sequence[Hit]:
    others = {name: value for name, value in branch.selector.items() if name != PROJECT_FIELD}
    answer = await client.retrieve(
        question.question,
        user_id=branch.name,
        projects=question.project_id,
        scope=branch.settings.scope_model.boundary_fields.others(others),
        mode=question.mode,
        as_of=question.asked_at,
        top_k=TOP_K,
    )
    return answer.hits


def questions_in(memories: Sequence[ListedMemory], user: Branch) -> list[Question]:
    """Return at most `MAX_QUESTIONS` of a fork: turns that come back to old ones, then the newest turns of people.

    Evidence are ids of the user's memories. Each is asked just before its turn was accepted, in its project and mode.
    """
    turns = {memory.memory_id: memory for memory in memories if memory.turn_id is not None}
    made = make_questions(logged_turns(memory.model_dump() for memory in turns.values()))[-MAX_QUESTIONS:]
    ids = {memory_id: Found.of(memory, user).key for memory_id, memory in turns.items()}
    evidence = {each.memory_id: (each.text, tuple(ids[memory_id] for memory_id in each.evidence)) for each in made}
    newest = sorted(turns.values(), key=lambda turn: turn.accepted_at, reverse=True)
    others = [turn.memory_id for turn in newest if turn.role == "user" and turn.memory_id not in evidence]
    return [
        Question(
            question=text[:MAX_QUESTION_CHARS],
            mode=turns[memory_id].mode,
            asked_at=datetime.fromisoformat(turns[memory_id].accepted_at) - ONE_MS,
            project_id=turns[memory_id].scope.get(PROJECT_FIELD, ANY_VALUE),
            evidence=named,
        )
        for memory_id in [*evidence, *others][:MAX_QUESTIONS]
        for text, named in [evidence.get(memory_id, (turns[memory_id].text, ()))]
    ]


def is_worse(compared: Iterable[Compared]) -> bool:
    """True if the fork finds less of the evidence, and the interval of the difference is below zero."""
    differences = [each.recall(each.after) - each.recall(each.before) for each in compared if each.question.evidence]
    if not differences:
        return False
    mean = Mean.of(differences)
    return mean.value + mean.within < 0


def lines_of(compared: Sequence[Compared], options: CompareOptions) -> list[str]:
    """Return the questions whose hits differ, each with the hits that only one side has, then the sums."""
    lines = []
    for number, each in enumerate(compared, 1):
        sides = ((options.user, each.before, each.after), (options.fork, each.after, each.before))
        if each.is_same:
            continue
        at = ", ".join(f"{name} {each.rank(hits) or 'none'}" for name, hits, _ in sides)
        ranks = f"; evidence at {at}" if each.question.evidence else ""
        lines.append(f"{number}. {_short(each.question.question)}: overlap {each.overlap:.2f}{ranks}")
        lines += [
            f"   only {name}: {_short(hit.text)}" for name, hits, others in sides for hit in each.missing(hits, others)
        ]
    same = sum(each.is_same for each in compared)
    lines.append(f"compare: {len(compared)} questions, {same} with the same hits in the same order")
    lines.append(f"overlap of the first {TOP_K} hits: {Mean.of([each.overlap for each in compared])}")
    with_evidence = [each for each in compared if each.question.evidence]
    if with_evidence:
        recalls = [(each.recall(each.before), each.recall(each.after)) for each in with_evidence]
        reciprocal = [(each.reciprocal_rank(each.before), each.reciprocal_rank(each.after)) for each in with_evidence]
        for title, pairs in (("evidence found", recalls), ("reciprocal rank of evidence", reciprocal)):
            before, after = (statistics.fmean(values) for values in zip(*pairs, strict=True))
            difference = Mean.of([later - earlier for earlier, later in pairs])
            lines.append(f"{title}: {options.user} {before:.3f}, {options.fork} {after:.3f}, difference {difference}")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_NAMED_CHARS else f"{line[: MAX_NAMED_CHARS - 1]}…"


async def promote(user_name: str, fork_name: str, principal: str | None, settings: Settings) -> int:
    """Give the user's modes the embedders that they have in the fork, and wait for the vectors; return 0.

    Questions are answered by the former vectors until all are there. Raises MemoryClientError, Unavailable.
    """
    settings = await deployment_at(settings)
    user, fork = Branch(user_name, settings), Branch(fork_name, settings)
    changed = 0
    async with client_of(settings, principal) as client:
        await _require_fork(fork)

        async def call(name: str, scope: dict[str, str], arguments: dict[str, Any]) -> Any:
            return await run_command(client, name, scope, arguments)

        for mode in (await call("list_modes", fork.scope, {}))["modes"]:
            changing = ChangeModel(call, ModelChange(mode["name"], mode["embedder"], mode["project"]))
            done = await changing({**user.scope, PROJECT_FIELD: mode["project"] or "default"})
            changed += not (done.skipped or changing.unchanged)
    sys.stdout.write(f"promote: {user_name} has the choices of {fork_name}: {changed} modes with another embedder\n")
    return 0


async def drop(fork_name: str, principal: str | None, settings: Settings) -> int:
    """Forget everything of a fork, and print the receipt; return 0. Raises ValueError for a user that is no fork."""
    settings = await deployment_at(settings)
    fork = Branch(fork_name, settings)
    await _require_fork(fork)
    async with client_of(settings, principal) as client:
        forgotten = await run_command(client, "forget", fork.scope, {"user": True})
    receipt = forgotten["receipt"]["receipt_id"]
    sys.stdout.write(f"drop: {forgotten['forgotten']} memories of {fork_name} forgotten, receipt {receipt}\n")
    return 0


async def _require_fork(branch: Branch) -> None:
    """Raise ValueError unless `fork` has made this boundary."""
    async with open_user_logs(branch) as logs:
        if not any(record.header(FORKED_FROM) for _, record in await logs.all_records()):
            raise ValueError(f"{branch.name} is no fork")
