"""A pattern of a sentence label, and what the patterns of several labels share. Pure: data.

Each pattern is searched in `Sentence.spaced` if one of its trigger words is in the sentence. Every repetition is
bounded or of one character class, so matching is linear in the sentence.
"""

import re
from typing import NamedTuple


class LabelPattern(NamedTuple):
    """The pattern of a label, searched in sentences with at least one of its trigger words."""

    label: str
    triggers: frozenset[str]
    pattern: re.Pattern[str]


def label_pattern(label: str, triggers: str, pattern: str) -> LabelPattern:
    """Return a pattern; `triggers` are separated by spaces."""
    return LabelPattern(label, frozenset(triggers.split()), re.compile(pattern))


WORD = r"[^ ,:?!]+"
"""One word."""

DAY = (
    r"(?:the |on |at |in |next |this |den |dem |am |el |le |il |a ){0,2}(?:\d|monday|tuesday|wednesday|thursday|"
    r"friday|saturday|sunday|today|tomorrow|tonight|noon|midnight|lunch|january|february|march|april|may |june|july|"
    r"august|september|october|november|december|christmas|easter|week|weekend|month|montag|dienstag|mittwoch|"
    r"donnerstag|freitag|samstag|sonntag)"
)
"""Beginning of a number, a day or a month."""

TASK_OPENING = re.compile(
    r"^ (?:please |pls |can you |could you |ok |now |then |and |so |, )*(?:explain|translate|summari[sz]e|draft|"
    r"describe|generate|create|rewrite|write (?:a|an|the|me|our|my|down|us|one|two|it)|tell (?:me|us)|show (?:me|us)|"
    r"give (?:me|us)|make (?:a|an|the|me|it|us)|send|order|fix|add|remove|catch|wrap|handle|log|raise|throw|return|"
    r"implement|reply to|build|list|find|check|look|here's|help|set|schreib|erklar|ubersetz|escribe|explica|ecris|"
    r"explique) "
)
"""Opening of a request of the moment: what it mentions is neither a rule nor a report."""
