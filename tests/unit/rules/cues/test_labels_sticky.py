"""Labels of safety, constraints, corrections, errors and fixes, and phrases that merely sound similar."""

import pytest

from agents.rules.cues.labels import SentenceLabel
from tests.builders.labels import labels_of


@pytest.mark.parametrize(
    "text",
    [
        "Never log passwords.",
        "We must not store credentials in plain text.",
        "My son is allergic to peanuts.",
        "Passwords must be hashed before they are saved.",
        "Soy alérgica a la penicilina.",
        "Je suis allergique aux noix.",
        "Ich bin allergisch gegen Nüsse.",
        "Passwörter dürfen nicht gespeichert werden, das muss unbedingt verschlüsselt sein.",
    ],
)
def test_rule_that_prevents_harm_is_safety(text: str) -> None:
    assert SentenceLabel.SAFETY in labels_of(text)


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
def test_obligation_is_a_constraint(text: str) -> None:
    assert SentenceLabel.CONSTRAINT in labels_of(text)


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
def test_guess_question_or_invitation_is_no_rule(text: str) -> None:
    assert not labels_of(text) & (SentenceLabel.CONSTRAINT | SentenceLabel.SAFETY)


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
def test_correction(text: str) -> None:
    assert SentenceLabel.CORRECTION in labels_of(text)


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
def test_mere_no_is_no_correction(text: str) -> None:
    assert SentenceLabel.CORRECTION not in labels_of(text)


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
def test_report_of_a_failure_is_an_error(text: str) -> None:
    assert SentenceLabel.ERROR in labels_of(text)


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
def test_mention_of_errors_is_no_report(text: str) -> None:
    assert SentenceLabel.ERROR not in labels_of(text)


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
def test_report_of_a_fix_is_resolved(text: str) -> None:
    assert SentenceLabel.RESOLVED in labels_of(text)


@pytest.mark.parametrize(
    "text",
    ["Does it work now?", "It isn't fixed.", "Fixed costs are 7,900 a month.", "$ pytest -q\n1 failed, 211 passed"],
)
def test_open_problem_is_not_resolved(text: str) -> None:
    assert SentenceLabel.RESOLVED not in labels_of(text)
