"""The same question as it is ranked by fewer signals."""

from dataclasses import replace

from agents.rules.ranking.heads import HeadName
from agents.rules.ranking.query_features import Clues


def without(clues: Clues, head: HeadName) -> Clues:
    """What is left where there are no token vectors, or no vectors."""
    return replace(clues, late=clues.late if head == "tokens" else None, dense=None if head == "words" else clues.dense)
