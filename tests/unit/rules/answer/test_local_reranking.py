"""What a cross-encoder reads of a hit, and the order and scores that follow from it."""

import math
from itertools import pairwise

import pytest
from modestream_client.hits import Hit, Passage

from agents.rules.answer.hits import hit_of
from agents.rules.answer.local_reranking import CONTRIBUTION, MAX_READ_CHARS, ReadHits, text_to_read
from tests.builders.memories import made

HITS = [hit_of(made(f"tea {number}", number), 0.9 - 0.2 * number) for number in range(4)]
IDS = [hit.memory_id for hit in HITS]


def ids(hits: list[Hit]) -> list[str]:
    return [hit.memory_id for hit in hits]


def test_best_passage_of_a_long_text_is_read() -> None:
    passages = (Passage(start=11, end=15, score=0.9), Passage(start=0, end=4, score=0.1))
    hit = HITS[0].model_copy(update={"text": "head of it tail", "passages": passages, "speaker": None})
    assert text_to_read(hit) == "tail"


def test_head_of_a_text_without_passages_is_read() -> None:
    assert text_to_read(HITS[0].model_copy(update={"text": "x" * 5000, "speaker": None})) == "x" * MAX_READ_CHARS


def test_speaker_is_read_before_the_text() -> None:
    assert text_to_read(HITS[0].model_copy(update={"text": "I like tea.", "speaker": "Ana"})) == "Ana: I like tea."


def test_equal_readings_leave_the_order() -> None:
    assert ids(ReadHits(dict.fromkeys(IDS, 3.0)).arranged(HITS)) == IDS


def test_a_much_better_reading_comes_first() -> None:
    assert ids(ReadHits(dict(zip(IDS, (-11, -11, 60, -11), strict=True))).arranged(HITS))[0] == IDS[2]


def test_private_hit_is_read_as_others_are() -> None:
    hits = [*HITS[:2], HITS[2].model_copy(update={"private": True})]
    assert ids(ReadHits(dict(zip(IDS, (-11, -11, 60), strict=False))).arranged(hits))[0] == IDS[2]


def test_hits_that_were_not_read_follow_with_their_scores() -> None:
    arranged = ReadHits({IDS[3]: -11.0, IDS[2]: -11.0}).arranged(HITS)
    assert ids(arranged) == [IDS[2], IDS[3], IDS[0], IDS[1]]
    assert [hit.score for hit in arranged[2:]] == [HITS[0].score, HITS[1].score]


@pytest.mark.parametrize("score", [0.0, 1e-6, 0.5, 1.0])
@pytest.mark.parametrize("reading", [-1e4, -11.0, 0.0, 11.0, 1e4])
def test_score_stays_a_probability(score: float, reading: float) -> None:
    [hit] = ReadHits({IDS[0]: reading}).arranged([HITS[0].model_copy(update={"score": score})])
    assert 0.0 <= hit.score <= 1.0


def test_scores_fall_along_the_hits_that_were_read() -> None:
    arranged = ReadHits(dict(zip(IDS, (-8.0, 5.0, -11.0, 9.0), strict=True))).arranged(HITS)
    assert all(first.score >= second.score for first, second in pairwise(arranged))


def test_contributions_still_sum_to_the_log_odds() -> None:
    log_odds = math.log(HITS[0].score / (1 - HITS[0].score))
    explained = HITS[0].model_copy(update={"contributions": {"its meaning as a whole": log_odds}})
    [hit] = ReadHits({IDS[0]: 4.0}).arranged([explained])
    assert hit.contributions is not None
    assert CONTRIBUTION in hit.contributions
    assert sum(hit.contributions.values()) == pytest.approx(math.log(hit.score / (1 - hit.score)), abs=1e-4)
