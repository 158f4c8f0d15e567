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
