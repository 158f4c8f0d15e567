"""Parsing of questions; speaker names are separated from the text."""

from agents.rules.query.questions import MAX_QUESTION_TERMS, parse_question

SPEAKERS = ["Caroline Smith", "Ana", "Will"]


def test_speaker_names_are_extracted() -> None:
    question = parse_question("When did Caroline's dog run away?", SPEAKERS)
    assert (question.text, question.named) == ("When did dog run away?", frozenset({"Caroline Smith"}))
    assert question.terms == ("dog", "run")


def test_lower_case_question_can_name_a_speaker() -> None:
    assert parse_question("where does ana live", SPEAKERS).named == frozenset({"Ana"})


def test_lower_case_word_equal_to_a_name_is_kept() -> None:
    question = parse_question("What will Ana build?", SPEAKERS)
    assert (question.text, question.named) == ("What will build?", frozenset({"Ana"}))


def test_names_are_kept_if_nothing_else_is_left() -> None:
    question = parse_question("What did Ana say?", SPEAKERS)
    assert question.text == "What did Ana say?"
    assert question.terms == ("ana",)
    assert question.named == frozenset({"Ana"})


def test_shared_first_name_means_both_speakers() -> None:
    assert parse_question("Ana's bike", ["Ana Lima", "Ana Roth"]).named == frozenset({"Ana Lima", "Ana Roth"})


def test_without_speakers_the_text_is_unchanged() -> None:
    assert parse_question("Ana's bike", []).text == "Ana's bike"


def test_terms_of_a_pasted_page_are_limited() -> None:
    assert len(parse_question(" ".join(f"word{n}" for n in range(5000)), []).terms) == MAX_QUESTION_TERMS
