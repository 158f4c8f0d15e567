import json
from pathlib import Path

import pytest
from modestream_client.hits import Hit, ListedMemory

from operations.fork import Branch
from operations.trial import (
    MAX_QUESTIONS,
    Compared,
    CompareOptions,
    Found,
    Mean,
    Question,
    is_worse,
    lines_of,
    questions_in,
    read_questions,
)
from schemas.state.memories import derive_memory_id
from streams.settings import Settings

OPTIONS = CompareOptions("ana", "ana-trial")
ANA = Branch("ana", Settings(partitions=4))


def hit(user: str, turn_id: str | None, text: str = "The kettle is blue.", type_: str = "episodic") -> Hit:
    scope = {"user_id": user, "project_id": "p"}
    fields = {"memory_id": f"{user}-{turn_id}", "turn_id": turn_id, "conversation_id": turn_id and "c", "scope": scope}
    more = {"type": type_, "text": text, "mode": "general", "mode_source": "fallback", "role": "user", "speaker": None}
    times = {"occurred_at": "2026-01-01T00:00:00Z", "evidence": [], "version": 1, "embedding_status": "ready"}
    return Hit.model_validate({**fields, **more, **times, "score": 0.5})


def found(*names: str) -> list[Found]:
    return [Found(name, frozenset({name}), f"text of {name}") for name in names]


def compared(before: str, after: str, *evidence: str) -> Compared:
    return Compared(Question(question="which?", evidence=evidence), found(*before), found(*after))


def test_turn_of_the_fork_has_the_key_of_the_users_turn() -> None:
    assert Found.of(hit("ana-trial", "t"), ANA).key == Found.of(hit("ana", "t"), ANA).key


def test_key_of_a_turn_is_the_id_of_the_users_memory() -> None:
    memory_id = derive_memory_id({"user_id": "ana", "project_id": "p"}, "c", "t")
    assert Found.of(hit("ana-trial", "t"), ANA).key == memory_id


def test_memories_without_a_turn_are_the_same_by_type_and_text() -> None:
    pair = [Found.of(hit(user, None, "Ana likes TEA", "semantic"), ANA) for user in ("ana", "ana-trial")]
    assert pair[0].key == pair[1].key


@pytest.mark.parametrize(("before", "after", "overlap"), [("ab", "ba", 1.0), ("ab", "bc", 1 / 3), ("", "", 1.0)])
def test_overlap_is_the_share_of_hits_that_both_have(before: str, after: str, overlap: float) -> None:
    assert compared(before, after).overlap == overlap


def test_rank_is_that_of_the_first_evidence() -> None:
    question = compared("abc", "", "c", "b")
    assert question.rank(question.before) == 2


def test_evidence_that_is_not_found_has_no_rank() -> None:
    question = compared("abc", "", "x")
    assert question.rank(question.before) is None


def test_recall_is_the_share_of_evidence_among_the_hits() -> None:
    question = compared("abc", "", "a", "x")
    assert question.recall(question.before) == 0.5


def test_mean_has_the_half_width_of_its_interval() -> None:
    assert Mean.of([0.0, 1.0]).within == pytest.approx(0.98)


def test_mean_of_a_single_value_proves_nothing() -> None:
    assert Mean.of([1.0]).within == float("inf")


def test_fork_that_finds_less_each_time_is_worse() -> None:
    assert is_worse([compared("a", "b", "a"), compared("c", "d", "c")])


def test_fork_that_finds_less_once_is_not_worse() -> None:
    assert not is_worse([compared("a", "b", "a"), compared("c", "c", "c")])


def test_comparison_without_evidence_finds_nothing_worse() -> None:
    assert not is_worse([compared("a", "b"), compared("c", "d")])


def test_question_with_other_hits_is_shown_with_the_ranks_of_its_evidence() -> None:
    lines = lines_of([compared("ab", "bc", "b")], OPTIONS)
    assert lines[0] == "1. which?: overlap 0.33; evidence at ana 2, ana-trial 1"


def test_hits_of_one_side_are_shown() -> None:
    lines = lines_of([compared("ab", "bc", "b")], OPTIONS)
    assert lines[1:3] == ["   only ana: text of a", "   only ana-trial: text of c"]


def test_question_with_the_same_hits_is_counted_alone() -> None:
    lines = lines_of([compared("ab", "ab")], OPTIONS)
    assert lines[0] == "compare: 1 questions, 1 with the same hits in the same order"


def test_sums_have_the_evidence_of_both() -> None:
    lines = lines_of([compared("ab", "cb", "a"), compared("ab", "ab", "a")], OPTIONS)
    assert "evidence found: ana 1.000, ana-trial 0.500, difference -0.500 ± 0.980" in lines


def test_questions_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps({"question": "where?", "evidence": ["t"], "further": 1}) + "\n\n")
    assert read_questions(file) == [Question(question="where?", evidence=("t",))]


def test_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "where?"}\n{"query": "where?"}\n')
    with pytest.raises(ValueError, match="line 2"):
        read_questions(file)


TURNS = [
    "My sister Clara keeps her violin at the workshop of Madame Pichon.",
    *(f"Note {number}: nothing happened." for number in range(60)),
    "Do you know when Madame Pichon opens her shop on Saturdays?",
]


def listed(number: int) -> ListedMemory:
    fields = hit("ana-trial", f"t-{number}", TURNS[number]).model_dump(by_alias=True)
    accepted_at = f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z"
    return ListedMemory.model_validate(
        {**fields, "accepted_at": accepted_at, "importance": None, "superseded_by": None}
    )


QUESTIONS = questions_in([listed(number) for number in range(len(TURNS))], ANA)


def test_a_turn_that_comes_back_to_an_old_one_is_asked_first() -> None:
    assert QUESTIONS[0].question == TURNS[-1]


def test_its_evidence_is_the_memory_of_the_user() -> None:
    scope = {"user_id": "ana", "project_id": "p"}
    assert QUESTIONS[0].evidence == (derive_memory_id(scope, "c", "t-0"),)


def test_the_newest_turns_are_asked_too() -> None:
    assert QUESTIONS[1].question == TURNS[-2]


def test_no_turn_is_asked_twice() -> None:
    assert len({question.question for question in QUESTIONS}) == MAX_QUESTIONS
