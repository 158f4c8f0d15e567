"""`modestream evaluate`: how much two revisions of the pipelines find, on questions from users' own logs.

Enters: the job `evaluate` of each user. Leaves: figures over all of their questions. `pipeline edit --guard` refuses by
the same figures.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from modestream_client import MemoryClient, MemoryClientError
from pydantic_core import from_json

from agents.rules.evaluation.questions import DECIDING, MEASURES, MIN_QUESTIONS, Outcome, make_questions, report
from operations.compare import UserListing, logged_turns
from operations.deployment import Progress, at_most, client_of, deployment_at, list_boundaries, run_command, scope_of
from schemas.messages.published import Boundary
from streams.settings import Settings

USERS_AT_ONCE = 2
"""Users evaluated at the same time: each has the models to itself for some seconds."""

USER_TIMEOUT_S = 1800.0

NAMES = dict(zip(MEASURES, ("recall@5", "recall@10", "coverage"), strict=True))
"""The measures as they are printed."""


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Users, or a `sample` of all, and the arguments of the job. `project` None: all of each user."""

    users: frozenset[str] | None = None
    sample: int | None = None
    project: str | None = None
    principal: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    as_json: bool = False
    only_questions: bool = False


@dataclass(slots=True)
class Evaluation:
    """The answers of users, and why others failed."""

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """Return the figures over the questions of all users."""
        outcomes = [
            Outcome.model_validate(outcome) for answer in self.answers.values() for outcome in answer["outcomes"]
        ]
        first = next(iter(self.answers.values()), {})
        fields: tuple[str, ...] = ("revision", "other", "by", "budget_tokens")
        named = {name: first[name] for name in fields if name in first}
        degraded = sum(answer["degraded"] for answer in self.answers.values())
        return {"users": len(self.answers), **named, "degraded": degraded, **report(outcomes)}


def edits_in(path: Path) -> list[Any]:
    """Return the edits of a file as `pipeline edit` takes it. Raises OSError or ValueError."""
    edits: list[Any] = from_json(path.read_bytes(), allow_inf_nan=False)["edits"]
    return edits


async def evaluate(options: EvaluateOptions, settings: Settings) -> int:
    """Evaluate and print; return 0, or 1 if a user failed or the other revision is worse."""
    settings = await deployment_at(settings)
    if options.only_questions:
        return await _print_questions(options, settings)
    evaluation = await evaluate_users(options, settings)
    for user, reason in sorted(evaluation.failures.items()):
        sys.stderr.write(f"{user}: {reason}\n")
    figures = evaluation.report()
    sys.stdout.write(json.dumps(figures, indent=2) + "\n" if options.as_json else printed(figures))
    return 1 if evaluation.failures or figures.get("verdict") == "worse" else 0


async def evaluate_users(options: EvaluateOptions, settings: Settings) -> Evaluation:
    """Run the job for each user. Raises Unavailable, ValueError for unknown users."""
    boundaries = await _chosen(options, settings)
    evaluation = Evaluation()
    arguments = {**options.arguments, "all_projects": options.project is None}
    async with client_of(settings, options.principal) as memory:
        with Progress("evaluate", len(boundaries), "users") as progress:

            async def work(boundary: Boundary) -> None:
                try:
                    scope = await scope_of(memory, settings, boundary, options.project)
                    answer = await run_command(memory, "evaluate", scope, arguments, timeout=USER_TIMEOUT_S)
                    evaluation.answers[boundary.boundary] = answer
                except MemoryClientError as problem:
                    evaluation.failures[boundary.boundary] = str(problem)
                progress.advance()

            await at_most(USERS_AT_ONCE, boundaries, work)
    return evaluation


async def _chosen(options: EvaluateOptions, settings: Settings) -> Sequence[Boundary]:
    """Return the users; of a sample always the same ones while there are no others."""
    boundaries = await list_boundaries(settings, options.users)
    if options.sample is None:
        return boundaries
    return sorted(boundaries, key=lambda boundary: crc32(boundary.boundary.encode()))[: options.sample]


async def _print_questions(options: EvaluateOptions, settings: Settings) -> int:
    """Print the questions that rules make, with the texts of their evidence, a line of JSON each."""
    async with client_of(settings, options.principal) as memory:
        for boundary in await _chosen(options, settings):
            for line in await _questions_of(memory, boundary, settings):
                sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    return 0


async def _questions_of(memory: MemoryClient, boundary: Boundary, settings: Settings) -> list[dict[str, Any]]:
    listed = await UserListing(memory, boundary, settings.scope_model).memories()
    texts = {each["memory_id"]: each["text"] for each in listed}
    return [
        {
            "user": boundary.boundary,
            "mode": question.mode,
            "asked_at": question.asked_at.isoformat(),
            "question": question.text,
            "evidence": [texts[each] for each in question.evidence],
        }
        for question in make_questions(logged_turns(listed))
    ]


def printed(figures: Mapping[str, Any]) -> str:
    """Return the figures as lines for people."""
    head = f"{figures['questions']} questions of {figures['users']} users, made by {figures.get('by', 'rules')}"
    lines = [f"{head}; contexts of {figures.get('budget_tokens', 0)} tokens", _row("", "questions", *NAMES.values())]
    rows = {**figures["modes"], "all": figures["all"]}
    lines += [_row(name, str(means["questions"]), *map(_cell(means), MEASURES)) for name, means in rows.items()]
    if "difference" in figures:
        lines.append(_row("difference", "", *(interval_of(figures["difference"][name]) for name in MEASURES)))
        lines.append(f"{figures['verdict'].replace('_', ' ')}: {figures['sentence']}")
    if figures["degraded"]:
        lines.append(f"{figures['degraded']} questions were answered by words alone: `health` says why")
    return "\n".join(lines) + "\n"


def interval_of(difference: Mapping[str, float]) -> str:
    """Return a difference with its interval.

    >>> interval_of({"mean": -0.1, "low": -0.2, "high": 0.0})
    '-0.100 (-0.200 to +0.000)'
    """
    return f"{difference['mean']:+.3f} ({difference['low']:+.3f} to {difference['high']:+.3f})"


def refusal_of(figures: Mapping[str, Any], *, allow_unjudged: bool = False) -> str | None:
    """Return why a guard refuses the other revision; None if it does not.

    `allow_unjudged`: a revision with fewer than MIN_QUESTIONS questions is accepted.
    """
    asked = f"{figures['questions']} questions of {figures['users']} users"
    # Without any question there is no verdict at all.
    if figures.get("verdict", "too_few_questions") == "too_few_questions":
        needed = f"too_few_questions: {asked}, a verdict needs {MIN_QUESTIONS}; nothing was changed"
        return None if allow_unjudged else f"{needed}. Guard by more users, or add --allow-unjudged"
    if figures["verdict"] != "worse":
        return None
    fell = [name for name in DECIDING if figures["difference"][name]["high"] < 0]
    by = ", ".join(f"{NAMES[name]} by {interval_of(figures['difference'][name])}" for name in fell)
    figures_by_mode = "`modestream evaluate` has the figures by mode; without --guard the change counts"
    return f"worse_revision: {by}, on {asked}; nothing was changed. {figures_by_mode}"


def _cell(means: Mapping[str, Any]) -> Any:
    def cell(name: str) -> str:
        sides = [f"{means[side][name]:.3f}" for side in ("current", "other") if side in means]
        return " → ".join(sides) or "-"

    return cell


def _row(*cells: str) -> str:
    name, questions, *measures = cells
    return f"{name:<16} {questions:>9}  " + "  ".join(f"{cell:<27}" for cell in measures).rstrip()
