"""`python -m training.ranking`: fit the weights, write them and a report. `--measure DIR...`: measure recall only.

`--projects`: measure the preference for a project. Nothing is fitted to measured conversations.
`--together` makes one user of all conversations of the folders.
"""

import argparse
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.rules.ranking.features import RankingWeights
from agents.rules.ranking.memory_features import MODEL_VARIANTS, ModelVariant
from training.ranking.conversations import (
    ASSISTANT,
    BETWEEN_PEOPLE,
    OWN,
    Conversation,
    as_one_conversation,
    read_conversations,
)
from training.ranking.embedding import CachedEmbedder
from training.ranking.feature_list import REGIMES, Regime, list_features, regime_features
from training.ranking.fitting import MAX_FITTED_ROWS, FittedRegimes, TrainingTable, data_digest, dump_weights
from training.ranking.guard import format_guard, own_rows, rows_of
from training.ranking.library import load_questions
from training.ranking.measuring import measure_projects, measure_recall
from training.ranking.report import Quality, format_report, format_table
from training.ranking.samples import Sample, compute_sample
from training.ranking.validation import held_out_recalls, question_weights, recall_at_k

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "agents" / "data" / "ranking_weights.json"
REPORT = ROOT / "docs" / "ranking_report.md"
EXPERIMENTS = Path(__file__).parent / "tried.md"

MIXED_USERS = {OWN: 6, ASSISTANT: 3}
"""Users with several conversations each, by folder, added to the training data as larger haystacks."""

MAX_MEASURED_ROWS = 200
"""Rows per question of users that are also measured; of the others as many as are fitted."""

ONE_CONVERSATION_WEIGHT, MIXED_WEIGHT, REMARK_WEIGHT = 0.5, 0.5, 2.0
"""How much a question counts of a chat without its sessions, and of a user with several conversations; and a remark
between people, of which there are few."""


@dataclass(frozen=True, slots=True)
class User:
    """Conversations that are stored as one user's, and how much a question of theirs counts.

    `is_measured`: they are those of one conversation, as it is.
    """

    name: str
    conversations: Sequence[Conversation]
    weight: float = 1.0
    is_measured: bool = False


def main() -> None:
    """Train or measure."""
    parser = argparse.ArgumentParser(prog="python -m training.ranking", description=__doc__)
    parser.add_argument("--measure", type=Path, nargs="+", metavar="DIR", help="folders of conversations to ask")
    parser.add_argument("--guard", type=Path, nargs="*", default=[], metavar="DIR", help="folders to report on as well")
    parser.add_argument("--projects", action="store_true", help="measure the preference for the project asked in")
    parser.add_argument("--together", action="store_true", help="all of them as one user")
    options = parser.parse_args()
    models = Path(os.environ.get("MODESTREAM_MODEL_DIR") or ROOT / ".modestream" / "models")
    models.mkdir(parents=True, exist_ok=True)
    embedder = CachedEmbedder(models)
    if options.measure:
        conversations = [one for folder in options.measure for one in read_conversations(folder)]
        _measure(conversations, embedder, together=options.together)
    elif options.projects:
        _measure_projects(embedder)
    else:
        _train(embedder, [folder for folder in options.guard if folder.exists()])
    embedder.save()


def _train(embedder: CachedEmbedder, others: Sequence[Path]) -> None:
    """Fit all variants; write the weights, and the report with a guard on the conversations of other folders too."""
    own, assistant = read_conversations(OWN), read_conversations(ASSISTANT)
    users = [*_users(own, assistant)]
    measured = _samples([one for one in users if one.is_measured], embedder, MAX_MEASURED_ROWS)
    further = _samples([one for one in users if not one.is_measured], embedder, MAX_FITTED_ROWS)
    qualities, models = [], {}
    for variant in MODEL_VARIANTS:
        tables = _tables(variant, [*measured[variant], *further[variant]], frozenset(one.name for one in assistant))
        people, replies = (tables[regime].fit(question_weights(tables[regime])) for regime in REGIMES)
        fitted = FittedRegimes(people, replies)
        qualities.append(Quality(variant, measured[variant], held_out_recalls(tables, fitted, measured[variant])))
        deviations = {regime: table.deviations for regime, table in tables.items()}
        models[variant] = (fitted, list_features(variant), deviations)
    conversations = [*own, *assistant]
    WEIGHTS.write_text(dump_weights(models, data_digest(conversations)))
    guard = [row for quality in qualities if quality.variant == "tokens" for row in own_rows(quality, assistant)]
    for folder in others:
        users = [User(one.name, [one], is_measured=True) for one in read_conversations(folder)]
        samples = _samples(users, embedder, MAX_MEASURED_ROWS)["tokens"]
        guard += rows_of(folder.name, samples, recall_at_k(samples, models["tokens"][0].sums))
    REPORT.write_text(
        format_report(conversations, qualities, format_guard(guard), WEIGHTS.read_text(), EXPERIMENTS.read_text())
    )
    print("\n\n".join([*(format_table(quality) for quality in qualities), format_guard(guard)]))  # noqa: T201


def _tables(
    variant: ModelVariant, samples: Sequence[Sample], with_assistant: Collection[str]
) -> dict[Regime, TrainingTable]:
    """Return what each regime is fitted to."""
    names = list_features(variant)
    by_regime: dict[Regime, list[Sample]] = {
        "people": [one for one in samples if one.conversation not in with_assistant],
        "replies": [one for one in samples if one.conversation in with_assistant],
    }
    return {
        regime: TrainingTable(chosen, names, regime_features(variant, regime)) for regime, chosen in by_regime.items()
    }


def _users(own: Sequence[Conversation], assistant: Sequence[Conversation]) -> Iterable[User]:
    """Yield the users to which weights are fitted: each conversation alone, without its sessions, and several."""
    yield from (User(one.name, [one], is_measured=True) for one in (*own, *assistant))
    yield from (User(f"{one.name}-one", [as_one_conversation(one)], ONE_CONVERSATION_WEIGHT) for one in assistant)
    for folder, conversations in ((OWN, own), (ASSISTANT, assistant)):
        for place in range(MIXED_USERS[folder]):
            yield User(f"mixed-{folder.name}-{place}", conversations[place :: MIXED_USERS[folder]], MIXED_WEIGHT)


def _samples(users: Iterable[User], embedder: CachedEmbedder, max_rows: int) -> dict[ModelVariant, list[Sample]]:
    found: dict[ModelVariant, list[Sample]] = {variant: [] for variant in MODEL_VARIANTS}
    for user in users:
        for question in load_questions(user.name, user.conversations, embedder):
            weight = user.weight * (REMARK_WEIGHT if question.labelled.kind == BETWEEN_PEOPLE else 1.0)
            for variant in MODEL_VARIANTS:
                found[variant].append(compute_sample(question, variant, list_features(variant), max_rows, weight))
    return found


def _measure_projects(embedder: CachedEmbedder) -> None:
    weights, own = RankingWeights.loads(WEIGHTS.read_text()), read_conversations(OWN)
    users = [own[place :: MIXED_USERS[OWN]] for place in range(MIXED_USERS[OWN])]
    questions = ((each, load_questions(f"projects-{place}", each, embedder)) for place, each in enumerate(users))
    for line in measure_projects(weights, questions):
        print(line)  # noqa: T201


def _measure(conversations: Sequence[Conversation], embedder: CachedEmbedder, *, together: bool) -> None:
    weights = RankingWeights.loads(WEIGHTS.read_text())
    users = [("together", conversations)] if together else [(one.name, [one]) for one in conversations]
    questions = (one for name, each in users for one in load_questions(name, each, embedder))
    for line in measure_recall(weights, questions):
        print(line)  # noqa: T201


if __name__ == "__main__":
    main()
