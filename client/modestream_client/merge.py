"""Merge the answers of several users into one. Pure.

Ranks are compared, not scores: a score is relative to one user's memories.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, islice, zip_longest

from modestream_client.answers import Answer, Notice
from modestream_client.failures import MemoryClientError, MemoryServiceError, MemoryTimeout
from modestream_client.hits import Hit

MIXED = "mixed"
"""The strategy of an answer that merges answers of different strategies."""


def merge_answers(outcomes: Mapping[str, Answer | BaseException], top_k: int, *, partial: bool) -> Answer:
    """Merge outcomes by user id; the answer of a single user is returned unchanged.

    Raises the first failure, in the order of the users. With `partial` a `MemoryClientError` becomes a warning instead
    as long as any user has an answer.
    """
    answers = {user: outcome for user, outcome in outcomes.items() if isinstance(outcome, Answer)}
    failures = {user: outcome for user, outcome in outcomes.items() if isinstance(outcome, MemoryClientError)}
    for outcome in outcomes.values():
        tolerated = partial and answers and isinstance(outcome, MemoryClientError)
        if isinstance(outcome, BaseException) and not tolerated:
            raise outcome
    return _merged(answers, failures, top_k) if len(outcomes) > 1 else next(iter(answers.values()))


def _merged(answers: Mapping[str, Answer], failures: Mapping[str, MemoryClientError], top_k: int) -> Answer:
    parts = list(answers.values())
    strategies = {answer.strategy for answer in parts}
    return Answer(
        hits=merge_by_rank([answer.hits for answer in parts], top_k),
        warnings=(*_distinct(parts), *(_failed(user, failure) for user, failure in failures.items())),
        modes=tuple(dict.fromkeys(mode for answer in parts for mode in answer.modes)),
        strategy=strategies.pop() if len(strategies) == 1 else MIXED,
        categories=tuple(category for answer in parts for category in answer.categories),
        diagnostics={user: answer.diagnostics for user, answer in answers.items()},
    )


def merge_by_rank(rankings: Sequence[Sequence[Hit]], top_k: int) -> tuple[Hit, ...]:
    """Interleave rankings to `top_k` hits: all first ones in the order of `rankings`, then all second ones, and so on.

    This is reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) with stable ties: a memory belongs to
    one user, so each hit has one rank, and 1 / (k + rank) falls with it for every k.
    """
    return tuple(islice((hit for hit in chain(*zip_longest(*rankings)) if hit is not None), top_k))


def _distinct(answers: Sequence[Answer]) -> tuple[Notice, ...]:
    return tuple(dict.fromkeys(notice for answer in answers for notice in answer.warnings))


def _failed(user: str, failure: MemoryClientError) -> Notice:
    return Notice(_code(failure), f"no answer for the user {user}: {failure}")


def _code(failure: MemoryClientError) -> str:
    if isinstance(failure, MemoryServiceError):
        return failure.code
    return "timeout" if isinstance(failure, MemoryTimeout) else "unavailable"
