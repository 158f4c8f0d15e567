"""`python -m training.ranking`: fits the weights, and writes them and a report. `--measure DIR...`: measures them.

What is measured is never fitted to. `--together` makes one user of all conversations of the folders.
"""

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agents.rules.ranking.query_features import MODEL_VARIANTS, ModelVariant
from agents.rules.ranking.weights import RankingWeights
from training.ranking.conversations import Conversation, read
from training.ranking.embedding import KeptEmbedder
from training.ranking.feature_list import features_for
from training.ranking.fitting import Table, dumps
from training.ranking.library import Question, questions_of
from training.ranking.measuring import found_by
from training.ranking.report import Quality, document, table_of
from training.ranking.samples import Sample, sample_of
from training.ranking.validation import counts_of, left_out

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "agents" / "data" / "ranking_weights.json"
REPORT = ROOT / "docs" / "ranking_report.md"
TRIED = Path(__file__).parent / "tried.md"

MIXED_USERS = 6
"""Users that the conversations are dealt out to once more, so that large haystacks are trained for, too."""

MOST_OWN, MOST_MIXED = 200, 80
"""Memories of a question that are kept for measuring, and for fitting."""


def main() -> None:
    """Train and write, or measure."""
    parser = argparse.ArgumentParser(prog="python -m training.ranking", description=__doc__)
    parser.add_argument("--measure", type=Path, nargs="+", metavar="DIR", help="folders of conversations to ask")
    parser.add_argument("--together", action="store_true", help="all of them as one user")
    options = parser.parse_args()
    models = Path(os.environ.get("MODESTREAM_MODEL_DIR") or ROOT / ".modestream" / "models")
    models.mkdir(parents=True, exist_ok=True)
    embedder = KeptEmbedder(models)
    if options.measure:
        _measure([one for folder in options.measure for one in read(folder)], embedder, together=options.together)
    else:
        _train(read(), embedder)
    embedder.keep()


def _train(conversations: Sequence[Conversation], embedder: KeptEmbedder) -> None:
    own = _samples(_alone(conversations, embedder), MOST_OWN)
    mixed = _samples(_dealt_out(conversations, embedder), MOST_MIXED)
    qualities, heads = [], {}
    for head in MODEL_VARIANTS:
        table = Table([*own[head], *mixed[head]], features_for(head))
        fitted = table.fit(counts_of(table))
        qualities.append(Quality(head, own[head], left_out(table, fitted, own[head])))
        heads[head] = (fitted, table.names, table.deviations)
    WEIGHTS.write_text(dumps(heads))
    REPORT.write_text(document(conversations, qualities, WEIGHTS.read_text(), TRIED.read_text()))
    print("\n\n".join(table_of(quality) for quality in qualities))  # noqa: T201


def _samples(questions: Iterable[Question], most: int) -> dict[ModelVariant, list[Sample]]:
    """The signals of the questions, as each head sees them."""
    found: dict[ModelVariant, list[Sample]] = {head: [] for head in MODEL_VARIANTS}
    for question in questions:
        for head in MODEL_VARIANTS:
            found[head].append(sample_of(question, head, features_for(head), most))
    return found


def _alone(conversations: Sequence[Conversation], embedder: KeptEmbedder) -> Iterable[Question]:
    """Every conversation as a user of its own."""
    for one in conversations:
        yield from questions_of(one.name, [one], embedder)


def _dealt_out(conversations: Sequence[Conversation], embedder: KeptEmbedder) -> Iterable[Question]:
    """A few users with several conversations each."""
    for place in range(MIXED_USERS):
        yield from questions_of(f"mixed-{place}", conversations[place::MIXED_USERS], embedder)


def _measure(conversations: Sequence[Conversation], embedder: KeptEmbedder, *, together: bool) -> None:
    weights = RankingWeights.loads(WEIGHTS.read_text())
    questions = questions_of("together", conversations, embedder) if together else _alone(conversations, embedder)
    for line in found_by(weights, questions):
        print(line)  # noqa: T201


if __name__ == "__main__":
    main()
