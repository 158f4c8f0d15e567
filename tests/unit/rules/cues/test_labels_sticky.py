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
        "Yes, and it must be there before Saturday.",
        "The tickets must be paid by Monday.",
        "It must be Tuesday today.",
        "Your boots must have a lot of miles behind them.",
        "The lantern must give so much warmth to the hall!",
        "The kids must be asleep by now.",
        "Maman says he must eat walnuts.",
        "Explain why the pond must not be fed with bread.",
        "Please translate this, but don't change what I say.",
        "At least 20 people came.",
        "Don't drop it.",
        "No changes since last week.",
        "I have to finish this tonight.",
        "He's allergic to hard work.",
        "What does it mean to be allergic?",
        "I forgot my password.",
    ],
)
def test_what_is_due_once_guessed_or_told_is_no_rule(text: str) -> None:
    assert not labels_of(text) & (SentenceLabel.CONSTRAINT | SentenceLabel.SAFETY)


@pytest.mark.parametrize(
    "text",
    [
        "Please be brief.",
        'Stop using the word "delve".',
        "Call me Jo, not Johanna.",
        "I'd rather you asked before changing files.",
        "I prefer metric units.",
        "I don't eat meat.",
        "When I ask for code, just give me the code.",
        "Bitte duze mich.",
    ],
)
def test_wish_for_good_is_a_rule_for_answers_or_things(text: str) -> None:
    assert labels_of(text) & (SentenceLabel.STANDING_PREFERENCE | SentenceLabel.INSTRUCTION)


@pytest.mark.parametrize(
    "text",
    [
        "Please write a poem about rain.",
        "My favourite film is Amarcord.",
        "I hate this man, and I've never met him.",
        "I'd rather have good cores than many.",
        "I'll keep it short.",
        "Call me when you land.",
        "I want a refund.",
        "I prefer not to think about it.",
    ],
)
def test_wish_of_the_moment_or_liking_is_no_rule(text: str) -> None:
    assert not labels_of(text) & (SentenceLabel.STANDING_PREFERENCE | SentenceLabel.INSTRUCTION)


@pytest.mark.parametrize(
    "text", ["The Friday deploy ban is lifted.", "It no longer has to run offline.", "Forget the two-page limit."]
)
def test_statement_that_takes_back_a_rule_is_none(text: str) -> None:
    assert SentenceLabel.WITHDRAWAL in labels_of(text)
    assert not labels_of(text) & (SentenceLabel.CONSTRAINT | SentenceLabel.SAFETY)


@pytest.mark.parametrize(
    "text",
    [
        "OK, Postgres it is.",
        "Agreed on Lindqvist.",
        "We're switching to weekly releases.",
        "The heifers stay: it's the one picture they'll remember.",
        "It's every six weeks from now on.",
        "We won't renew the contract.",
        "Final call: no mobile app this year.",
        "Minijob bleibt es.",
        "Hemos decidido alquilar.",
        "On a choisi le parquet.",
    ],
)
def test_choice_is_a_decision(text: str) -> None:
    assert SentenceLabel.DECISION in labels_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "We haven't decided anything yet.",
        "I'd go with the smaller one if I were you.",
        "Let's see how bad it is.",
        "Let's use the afternoon to rest.",
        "I'm going for a run.",
        "I chose my words badly.",
        "She agreed that it was late.",
        "Maybe we'll go with Azure.",
        "Write two sentences on why we chose Kafka.",
        "That's how it is.",
    ],
)
def test_open_choice_or_idiom_is_no_decision(text: str) -> None:
    assert SentenceLabel.DECISION not in labels_of(text)


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
        "Not 40, 14.",
        "I said Tuesday but it's Wednesday.",
        "You misunderstood me, I want fewer columns.",
        "98 pages, not 105.",
        "Nicht Köln, sondern Bonn.",
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
        "No, not yet.",
        "It's not the cold, it's the wind that gets me.",
        "I was wrong to worry.",
        "That's not what worries me.",
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
        "FAILED tests/holds/test_expiry.py::test_sweep",
        "3 failed, 412 passed, 2 skipped in 108.41s",
        "pg_restore: error: could not execute query",
        "I keep getting a 502.",
        "Die App stürzt beim Start ab.",
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
        "It crashed last year but that's long fixed.",
        "2 failed marriages, 3 kids.",
        "My husband doesn't work.",
        "Write a function that raises an exception on empty input.",
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
