"""A context, taken apart for a person: which memory stands in which section, and what its tokens went to. Pure."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from modestream_client.assembled import SECTIONS

from gateway.pages.bars import Bar, stacked_bars
from gateway.service.wire import Json

TITLES = {
    "rules": "Rules and safety",
    "task_state": "State of the task",
    "recent_window": "Recent turns",
    "retrieved_evidence": "Found for the question",
    "relevant_decisions": "Decisions",
    "capsules": "Summaries",
    "frame": "Instructions and frame",
}
"""What people call the sections."""


class Entry(NamedTuple):
    """A memory of a section, as the prompt has it."""

    memory_id: str
    text: str
    is_sticky: bool


class SectionShown(NamedTuple):
    """A section with what was planned for it and what it took, in tokens."""

    name: str
    title: str
    budget: int
    tokens: int
    entries: Sequence[Entry]


class PackedContext:
    """What `assemble.v1` answered, by section."""

    def __init__(self, context: Json, budget_tokens: int) -> None:
        self._lines = _lines_of(context)
        self._sticky = frozenset(context["sticky"])
        self.total = int(context["tokens"]["total"])
        self.budget = budget_tokens
        self.sections = [self._section(context, name) for name in SECTIONS]

    @property
    def bars(self) -> list[Bar]:
        """The tokens of all sections, and of the frame around them, as shares of the budget."""
        used = [(one.name, float(one.tokens)) for one in self.sections if one.tokens]
        frame = self.total - sum(one.tokens for one in self.sections)
        return stacked_bars([*used, ("frame", float(max(0, frame)))], float(max(self.budget, self.total)))

    def title(self, name: str) -> str:
        """Return what people call a section."""
        return TITLES[name]

    def _section(self, context: Json, name: str) -> SectionShown:
        entries = [
            Entry(one, self._lines.get(one, ""), one in self._sticky) for one in context["sections"].get(name, ())
        ]
        budget, tokens = int(context["budget"].get(name, 0)), int(context["tokens"].get(name, 0))
        return SectionShown(name, TITLES[name], budget, tokens, entries)


def _lines_of(context: Json) -> dict[str, str]:
    """Return the lines of a compact context by memory: `[n]` is the place in the references, from 1."""
    found: dict[str, str] = {}
    for day, lines in _memories_in(context["messages"]).items():
        for line in lines:
            number, _, text = line.removeprefix("[").partition("] ")
            if number.isdecimal() and 0 < int(number) <= len(context["references"]):
                found[context["references"][int(number) - 1]] = f"{day} {text}"
    return found


def _memories_in(messages: Sequence[Json]) -> dict[str, list[str]]:
    """Return the lines by day of the user message that has them; empty for a context without memories."""
    for message in messages:
        start = message["content"].find('{"about"')
        if message["role"] != "user" or start < 0:
            continue
        try:
            found, _ = json.JSONDecoder().raw_decode(message["content"], start)
        except ValueError:
            continue
        if isinstance(memories := found.get("memories"), dict):
            return memories
    return {}
