"""Detection of question types."""

import pytest

from agents.rules.query.questions import QUESTION_TYPES, detect_question_types


@pytest.mark.parametrize(
    ("question", "trait"),
    [
        ("When did Ana move?", "when"),
        ("What year did she start?", "when"),
        ("Wann ist der Termin?", "when"),
        ("¿Cuándo llegó el pedido?", "when"),
        ("Quand est-ce qu'on joue ?", "when"),
        ("Quando abbiamo aperto?", "when"),
        ("How many hives are there?", "how_many"),
        ("Wie viel Euro kostet die Box?", "how_many"),
        ("¿Cuántas cajas quedan?", "how_many"),
        ("Combien de projecteurs ?", "how_many"),
        ("Where does he live?", "where"),
        ("Wo liegt der Schlüssel?", "where"),
        ("Who chose the name?", "who"),
        ("Quem fez as portas?", "who"),
        ("Why was it late?", "why"),
        ("¿Por qué cambiamos?", "why"),
        ("Did she like it?", "yes_no"),
        ("Would Ana enjoy a concert?", "would"),
        ("What hobbies has she taken up?", "several"),
        ("What kind of car is it?", "what_kind"),
        ("What did I buy?", "own"),
        ("What did you suggest?", "yours"),
    ],
)
def test_question_has_type(question: str, trait: str) -> None:
    assert trait in detect_question_types(question)


@pytest.mark.parametrize(
    ("question", "trait"),
    [
        ("What did she say?", "when"),
        ("The deploy target", "what"),
        ("Who is it?", "how_many"),
        ("How did it go?", "how_many"),
        ("What is it like where she lives?", "yes_no"),
    ],
)
def test_question_does_not_have_type(question: str, trait: str) -> None:
    assert trait not in detect_question_types(question)


def test_long_text_yields_only_known_types() -> None:
    assert detect_question_types("when, why and who? " * 100_000) <= QUESTION_TYPES


@pytest.mark.parametrize(
    "question",
    [
        "Which hotel did you recommend for the first night?",
        "what did you tell me about the glaze",
        "Welchen Handwerker hattest du empfohlen?",
        "Quel livre m'avais-tu conseill\u00e9 ?",
        "\u00bfQu\u00e9 crema me recomendaste?",
    ],
)
def test_a_question_for_advice_is_recognised(question: str) -> None:
    assert "advised" in detect_question_types(question)


@pytest.mark.parametrize(
    "remark",
    [
        "They asked if I'd organise the summer party as well, and I said sure.",
        "ok back to the brochure, write the intro now for our regular customers",
        "Heute morgen stand der Nachbar schon wieder mit der S\u00e4ge im Garten.",
    ],
)
def test_a_sentence_that_asks_nothing_is_a_remark(remark: str) -> None:
    assert "remark" in detect_question_types(remark)


@pytest.mark.parametrize(
    "words",
    [
        "salty soup",
        "PostgreSQL for the ledger, and to run the release",
        "where does ana live",
        "the name of our dentist?",
    ],
)
def test_words_to_look_for_are_no_remark(words: str) -> None:
    assert "remark" not in detect_question_types(words)
