"""The same question as it is ranked by fewer signals."""

from dataclasses import replace

from agents.rules.ranking.heads import ModelVariant
from agents.rules.ranking.query_features import QueryFeatures


def without(clues: QueryFeatures, head: ModelVariant) -> QueryFeatures:
    """What is left where there are no token vectors, or no vectors."""
    return replace(
        clues, maxsim=clues.maxsim if head == "tokens" else None, dense=None if head == "words" else clues.dense
    )
