"""Intentions after events, for tests of their transitions."""

from datetime import timedelta
from functools import reduce

from agents.rules.intentions.transitions import apply_learned
from schemas.internal.events import Learned
from schemas.state.intention import Intention, IntentionPart
from tests.builders.events import learned
from tests.builders.memories import START

NOTHING = Intention()
LATER = START + timedelta(days=1)
GOAL = learned("We want to ship the beta in May.", 1, "goal")
SHIPPED = learned("We shipped the beta.", 3)
LOGIN = learned("The login fails with a 500.", 2, "error")


def after(*events: Learned, start: Intention = NOTHING) -> Intention:
    return reduce(apply_learned, events, start)


def texts(intention: Intention, part: IntentionPart) -> list[str]:
    return [entry.text for entry in intention.open_entries(part)]
