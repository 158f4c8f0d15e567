"""What rules take for safety, a constraint, a correction, an error and its end, and what merely sounds so."""

import pytest

from agents.rules.cues.labels import SentenceLabel
from tests.builders.labels import seen


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
    assert seen(text) & (SentenceLabel.SAFETY | SentenceLabel.CONSTRAINT)
    if "rfen" not in text:
        assert SentenceLabel.SAFETY in seen(text)


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
    assert SentenceLabel.CONSTRAINT in seen(text)


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
    assert not seen(text) & (SentenceLabel.CONSTRAINT | SentenceLabel.SAFETY)


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
    assert SentenceLabel.CORRECTION in seen(text)


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
    assert SentenceLabel.CORRECTION not in seen(text)


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
    assert SentenceLabel.ERROR in seen(text)


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
    assert SentenceLabel.ERROR not in seen(text)


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
    assert SentenceLabel.RESOLVED in seen(text)


@pytest.mark.parametrize(
    "text",
    ["Does it work now?", "It isn't fixed.", "Fixed costs are 7,900 a month.", "$ pytest -q\n1 failed, 211 passed"],
)
def test_what_does_not_work_yet_is_not_resolved(text: str) -> None:
    assert SentenceLabel.RESOLVED not in seen(text)
