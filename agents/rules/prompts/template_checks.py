"""Check a prompt template before it is used: a mistake in it shows at the start and not in an answer. Pure."""

import re
from collections.abc import Collection

from agents.rules.prompts.prompting import PLACEHOLDER, Template, split_template

MARK = "mark"
FENCE_START = re.compile(r"^<<< \{\{mark\}\}")
FENCE_END = re.compile(r"^>>> \{\{mark\}\}")


def check_template(template: Template, *, filled: Collection[str], required: Collection[str]) -> None:
    """Raise ValueError, with the reason, for a template that a step can't use.

    `filled` are the placeholders that the step fills, `required` those without which it has nothing to ask about. Each
    stands between two lines of fences with `{{mark}}`, because a stored text outside could be taken for an instruction.
    """
    system, user = split_template(template.text)
    if placed := sorted(set(PLACEHOLDER.findall(system))):
        raise ValueError(f"placeholders are filled under `# User` alone, and {placed} are under `# System`")
    used = set(PLACEHOLDER.findall(user)) - {MARK}
    if unknown := sorted(used - set(filled)):
        raise ValueError(f"unknown placeholders {unknown}: there are {sorted(filled)}")
    if missing := sorted(set(required) - used):
        raise ValueError(f"it has no placeholder {missing}, and so nothing to ask about")
    if outside := sorted(_outside_fences(user)):
        raise ValueError(f"the placeholders {outside} are not between `<<< {{{{mark}}}}` and `>>> {{{{mark}}}}`")


def _outside_fences(user: str) -> set[str]:
    """Return the placeholders of stored texts that no pair of fences encloses."""
    fenced, outside, waiting = False, set[str](), set[str]()
    for line in user.splitlines():
        if FENCE_START.match(line) or FENCE_END.match(line):
            # A fence that is not closed encloses nothing.
            outside |= waiting if FENCE_START.match(line) else set()
            waiting, fenced = set(), FENCE_START.match(line) is not None
        found = set(PLACEHOLDER.findall(line)) - {MARK}
        if fenced and not FENCE_START.match(line):
            waiting |= found
        else:
            outside |= found
    return outside | waiting
