"""What rules see in a memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.entities import entities
from agents.rules.marks import NO_MARK, Mark, marked_parts, marks_of
from tests.made_memories import made


def seen(text: str, role: str = "user") -> Mark:
    return marks_of(made(text, role=role, entities=entities(text)))


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Must validate all user input", Mark.SAFETY),
        ("No, use LDAP not OAuth", Mark.CORRECTION),
        ("Must support 10,000 concurrent users", Mark.CONSTRAINT),
        ("Stack trace: Authentication failing", Mark.ERROR),
    ],
    ids=lambda value: str(value)[:12],
)
def test_the_seeds_own_examples_are_what_the_seed_says(text: str, mark: Mark) -> None:
    assert mark in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        "Never log passwords.",
        "We must not store credentials in plain text.",
        "My son is allergic to peanuts.",
        "Passwords must be hashed before they are saved.",
        "Passwörter dürfen nicht gespeichert werden, das muss unbedingt verschlüsselt sein.",
        "Soy alérgica a la penicilina.",
        "Je suis allergique aux noix.",
        "Ich bin allergisch gegen Nüsse.",
    ],
)
def test_a_rule_whose_breach_does_harm_is_about_safety(text: str) -> None:
    assert seen(text) & (Mark.SAFETY | Mark.CONSTRAINT)
    if "rfen" not in text:
        assert Mark.SAFETY in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        "The export must finish within an hour.",
        "It must run on Postgres 15.",
        "Don't touch the billing module.",
        "And never deploy on a Friday!",
        "The bill mustn't exceed 400 euros.",
        "It can't exceed 12 pages.",
        "From Monday the 4th nothing is deployed until the Monday after.",
        "No deploys on Fridays, please.",
        "Die Antwort darf nicht länger als eine Seite sein.",
        "Das Budget muss unbedingt eingehalten werden.",
        "El informe no debe superar las diez páginas.",
        "Le rapport ne doit pas dépasser dix pages.",
    ],
)
def test_what_must_or_must_not_be_is_a_constraint(text: str) -> None:
    assert Mark.CONSTRAINT in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        "You must be tired after that trip.",
        "She must have left already.",
        "I must say, that was good.",
        "It must be nice in June.",
        "You must try the cake.",
        "Must it support Windows?",
        "She must be furious.",
        "I mustn't laugh.",
        "I thought public labs must pay in 30 days.",
        "What if it must run offline?",
        "Don't worry about it.",
        "Don't tell anyone.",
        "Never mind.",
        "I always use the stairs.",
        "Ich muss jetzt los.",
        "That was a must-have in the eighties.",
    ],
)
def test_what_guesses_asks_or_invites_is_no_rule(text: str) -> None:
    assert not seen(text) & (Mark.CONSTRAINT | Mark.SAFETY)


@pytest.mark.parametrize(
    "text",
    [
        "Actually, make it three.",
        "No, I meant the red one.",
        "That's not what I meant.",
        "Scratch that, we start on Monday.",
        "It's on the 14th, not on the 12th.",
        "I was wrong about the port.",
        "Nein, nimm LDAP.",
        "Ich meinte den Dienstag.",
        "No, quise decir el martes.",
        "Non, je voulais dire mardi.",
    ],
)
def test_what_takes_back_is_a_correction(text: str) -> None:
    assert Mark.CORRECTION in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        "No, I haven't been there.",
        "No, the rain kept us in.",
        "Actually the weather is nice.",
        "No thanks.",
        "Am I wrong?",
        "No sé, la verdad.",
    ],
)
def test_a_mere_no_is_no_correction(text: str) -> None:
    assert Mark.CORRECTION not in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm getting a 500 error on the login page.",
        "The build fails with exit status 2.",
        "My laptop won't start.",
        "It doesn't work.",
        "Traceback (most recent call last):\n  File x\nKeyError: 'a'",
        "Die Anmeldung funktioniert nicht mehr.",
        "La página no funciona.",
        "Le site ne marche plus.",
    ],
)
def test_what_fails_is_an_error(text: str) -> None:
    assert Mark.ERROR in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        "What happens if the upload fails?",
        "No errors so far.",
        "There is a log in case the login fails.",
        "If the build fails, tell me.",
        "We need better error handling.",
        "Would it crash without the lock?",
        "My arm was broken in 1994.",
    ],
)
def test_what_only_speaks_of_errors_reports_none(text: str) -> None:
    assert Mark.ERROR not in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        "It works now, thanks!",
        "That fixed it.",
        "Fixed.",
        "All tests pass.",
        "$ pytest -q\n212 passed in 3.1s",
        "Es funktioniert jetzt.",
        "Ya funciona.",
        "Ça marche maintenant.",
    ],
)
def test_what_works_again_is_resolved(text: str) -> None:
    assert Mark.RESOLVED in seen(text)


@pytest.mark.parametrize(
    "text",
    ["Does it work now?", "It isn't fixed.", "Fixed costs are 7,900 a month.", "$ pytest -q\n1 failed, 211 passed"],
)
def test_what_does_not_work_yet_is_not_resolved(text: str) -> None:
    assert Mark.RESOLVED not in seen(text)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("We decided to go with Postgres.", Mark.DECISION),
        ("Let's go with the blue one.", Mark.DECISION),
        ("Wir haben uns für Postgres entschieden.", Mark.DECISION),
        ("Decidimos usar Postgres.", Mark.DECISION),
        ("On a décidé de partir en mai.", Mark.DECISION),
        ("The goal is a site that loads in a second.", Mark.GOAL),
        ("I'm trying to replace the old scheduler.", Mark.GOAL),
        ("Done, the report is sent.", Mark.DONE),
        ("We still need to write the docs.", Mark.PENDING),
        ("I updated the driver yesterday.", Mark.CHANGE),
        ("A rule of thumb: measure twice.", Mark.PRINCIPLE),
        ("For example, a queue with two readers.", Mark.EXAMPLE),
        ("The retry pattern has three steps.", Mark.PATTERN),
        ("It turns out that the cache was cold.", Mark.INSIGHT),
        ("I'm not sure whether we need it.", Mark.OPEN_QUESTION),
        ("I prefer tea.", Mark.PREFERENCE),
        ("Please always answer in German.", Mark.INSTRUCTION),
        ("I love the sea.", Mark.LIKING),
        ("Maybe we could use Redis.", Mark.SPECULATION),
        ("Because the line was cut.", Mark.REASON),
        ("Where is it?", Mark.QUESTION),
        ("It was 12 metres.", Mark.NUMBER),
        ("On 3 March 2026.", Mark.DATE),
        ("At 9:30 then.", Mark.TIME),
        ("It took three weeks.", Mark.DURATION),
        ("That's 40 euros.", Mark.MONEY),
        ("I met Ana Ruiz there.", Mark.NAME),
        ("See https://example.com/x", Mark.LINK),
        ("```\nx = 1\n```", Mark.CODE),
        ("Thanks!", Mark.COURTESY),
        ("We live by the river.", Mark.FIRST_PERSON),
    ],
    ids=lambda value: str(value)[:14],
)
def test_each_mark_is_seen(text: str, mark: Mark) -> None:
    assert mark in seen(text)


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_a_mark_says_who_speaks(role: str) -> None:
    roles = Mark.USER | Mark.ASSISTANT | Mark.SYSTEM | Mark.TOOL
    assert (seen("Hello there", role) & roles).name == role.upper()


def test_what_was_distilled_is_said_by_nobody() -> None:
    assert marks_of(made("plain words", role=None)) == NO_MARK


def test_the_sentences_that_have_a_mark_are_found_as_they_were_written() -> None:
    text = "Hello! The Export must finish within an hour. Tea? Never deploy on a Friday."
    assert marked_parts(text, Mark.CONSTRAINT) == [
        "The Export must finish within an hour.",
        "Never deploy on a Friday.",
    ]


@given(st.text(max_size=400))
def test_any_text_has_marks_that_fit_an_integer(text: str) -> None:
    marks = seen(text or " ")
    assert 0 <= marks.value < 2**62
    assert marks == seen(text or " ")


@pytest.mark.parametrize(
    "piece", ["no, ", "must not ", "a ", "never use ", "- ", "it's ", "12:", "i'm getting the same "]
)
def test_a_long_text_of_one_piece_is_read_in_no_time_to_speak_of(piece: str) -> None:
    seen(piece * (32_768 // len(piece)))


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("We ship on 12 May.", Mark.DATE),
        ("The fair is in March.", Mark.DATE),
        ("It ends May 12.", Mark.DATE),
        ("We picked Postgres.", Mark.DECISION),
        ("We dropped the second design.", Mark.DECISION),
        ("Let's keep the old port.", Mark.DECISION),
        ("My son is allergic to peanuts.", Mark.SAFETY),
        ("Tengo una alergia.", Mark.SAFETY),
        ("She has a bad allergy to bees.", Mark.SAFETY),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_is_said_so_has_the_mark(text: str, mark: Mark) -> None:
    assert mark in seen(text)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("All 4 may need help.", Mark.DATE),
        ("You may call at 12.", Mark.DATE),
        ("I picked up the parcel.", Mark.DECISION),
        ("We dropped off the kids.", Mark.DECISION),
        ("Let's keep trying.", Mark.DECISION),
        ("That must be awesome!", Mark.CONSTRAINT),
        ("It must be amazing to live there.", Mark.CONSTRAINT),
        ("I'm not allergic to nuts.", Mark.SAFETY),
        ("No es alérgico a las nueces.", Mark.SAFETY),
        ("She has no allergy.", Mark.SAFETY),
        ("Ich bin nicht allergisch.", Mark.SAFETY),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_merely_sounds_so_has_not(text: str, mark: Mark) -> None:
    assert mark not in seen(text)
