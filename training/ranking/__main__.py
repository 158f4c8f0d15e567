"""`python -m training.ranking`: fit the weights, write them and a report. `--measure DIR...`: measure recall only.

Nothing is fitted to measured conversations. `--together` makes one user of all conversations of the folders.
"""

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agents.rules.ranking.query_features import MODEL_VARIANTS, ModelVariant
from agents.rules.ranking.weights import RankingWeights
from training.ranking.conversations import Conversation, read_conversations
from training.ranking.embedding import CachedEmbedder
from training.ranking.feature_list import list_features
from training.ranking.fitting import TrainingTable, data_digest, dump_weights
from training.ranking.library import Question, load_questions
from training.ranking.measuring import measure_recall
from training.ranking.report import Quality, format_report, format_table
from training.ranking.samples import Sample, compute_sample
from training.ranking.validation import held_out_recalls, question_weights

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "agents" / "data" / "ranking_weights.json"
REPORT = ROOT / "docs" / "ranking_report.md"
EXPERIMENTS = Path(__file__).parent / "tried.md"

MIXED_USERS = 6
"""Users with several conversations each, added to the training data as larger haystacks."""

MAX_OWN_ROWS, MAX_MIXED_ROWS = 200, 80
"""Rows per question: for users with one conversation, which are also measured, and for mixed users, only fitted."""


def main() -> None:
    """Train or measure."""
    parser = argparse.ArgumentParser(prog="python -m training.ranking", description=__doc__)
    parser.add_argument("--measure", type=Path, nargs="+", metavar="DIR", help="folders of conversations to ask")
    parser.add_argument("--together", action="store_true", help="all of them as one user")
    options = parser.parse_args()
    models = Path(os.environ.get("MODESTREAM_MODEL_DIR") or ROOT / ".modestream" / "models")
    models.mkdir(parents=True, exist_ok=True)
    embedder = CachedEmbedder(models)
    if options.measure:
        conversations = [one for folder in options.measure for one in read_conversations(folder)]
        _measure(conversations, embedder, together=options.together)
    else:
        _train(read_conversations(), embedder)
    embedder.save()


def _train(conversations: Sequence[Conversation], embedder: CachedEmbedder) -> None:
    own = _samples(_separate_users(conversations, embedder), MAX_OWN_ROWS)
    mixed = _samples(_mixed_users(conversations, embedder), MAX_MIXED_ROWS)
    qualities, models = [], {}
    for variant in MODEL_VARIANTS:
        table = TrainingTable([*own[variant], *mixed[variant]], list_features(variant))
        fitted = table.fit(question_weights(table))
        qualities.append(Quality(variant, own[variant], held_out_recalls(table, fitted, own[variant])))
        models[variant] = (fitted, table.names, table.deviations)
    WEIGHTS.write_text(dump_weights(models, data_digest(conversations)))
    REPORT.write_text(format_report(conversations, qualities, WEIGHTS.read_text(), EXPERIMENTS.read_text()))
    print("\n\n".join(format_table(quality) for quality in qualities))  # noqa: T201


def _samples(questions: Iterable[Question], max_rows: int) -> dict[ModelVariant, list[Sample]]:

    found: dict[ModelVariant, list[Sample]] = {variant: [] for variant in MODEL_VARIANTS}
    for question in questions:
        for variant in MODEL_VARIANTS:
            found[variant].append(compute_sample(question, variant, list_features(variant), max_rows))
    return found


def _separate_users(conversations: Sequence[Conversation], embedder: CachedEmbedder) -> Iterable[Question]:
    """Yield the questions of each conversation, stored as a user of its own."""
    for one in conversations:
        yield from load_questions(one.name, [one], embedder)


def _mixed_users(conversations: Sequence[Conversation], embedder: CachedEmbedder) -> Iterable[Question]:
    """Yield the questions of users with several conversations each."""
    for place in range(MIXED_USERS):
        yield from load_questions(f"mixed-{place}", conversations[place::MIXED_USERS], embedder)


def _measure(conversations: Sequence[Conversation], embedder: CachedEmbedder, *, together: bool) -> None:
    weights = RankingWeights.loads(WEIGHTS.read_text())
    questions = (
        load_questions("together", conversations, embedder) if together else _separate_users(conversations, embedder)
    )
    for line in measure_recall(weights, questions):
        print(line)  # noqa: T201


if __name__ == "__main__":
    main()
