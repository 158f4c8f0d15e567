"""Prompts for a language model, checks of their templates, and verification of the items that it quotes. Pure.

Enters: a template of the project, and stored texts. Leaves: a prompt of bounded length. Its system text comes from the
template alone; its user text holds stored texts between fences that none of them can close.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from schemas.models.language import Prompt
from schemas.state.categories import Category
from schemas.state.memories import Memory
from schemas.state.modes import Mode
from schemas.state.understanding import FoundItem, Understanding

MAX_TURN_CHARS = 12_000
"""Maximum characters of the turn in a prompt: about 3,000 tokens; of a longer one the beginning and the end."""

MAX_EXCERPT_CHARS = 400
"""Maximum characters of each earlier turn, or of each item of a category: enough to show its register."""

MAX_EARLIER_CHARS = MAX_EXCERPT_CHARS + 80
"""Maximum characters of an earlier item in a prompt, with its name and its time."""

MAX_DESCRIPTION_CHARS = 600
"""Maximum characters of a description or a hint, as every prompt pays for them."""

MAX_MODE_PROMPT_CHARS = 8_000
"""Maximum characters that all modes together add to the prompt of a turn: the limit of two modes."""

MAX_LISTED_NAMES = 64
"""Maximum modes and categories listed in a prompt: models choose badly among more."""

HEAD_SHARE = 0.75
"""Share of a clipped text taken from its beginning: texts state their topic first and their request last."""

CHARS_PER_TOKEN = 3
"""For cost estimates of prompts: few languages have less."""

FENCE_DIGITS = 24
"""Hexadecimal digits, 96 bits: constructing a text that contains its own mark is infeasible."""

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
NON_SPACE = re.compile(r"\S+")
SYSTEM_HEADING, USER_HEADING = "# System\n", "# User\n"


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt file: its text, and the version that is recorded with its answers."""

    text: str
    version: str


@dataclass(frozen=True, slots=True)
class RecentTurn:
    role: str
    mode: str
    text: str


@dataclass(frozen=True, slots=True)
class VerifiedItem:
    """An item with the span of its quote in the turn's text, from `start` to before `end`, in code points."""

    item: FoundItem
    start: int
    end: int


def build_understanding_prompt(
    template: str,
    version: str,
    *,
    turn_text: str,
    role: str,
    speaker: str | None,
    occurred_at: datetime,
    modes: Sequence[Mode],
    current: str | None = None,
    is_settled: bool = False,
    recent: Sequence[RecentTurn],
    categories: Sequence[tuple[str, str]],
    earlier: Mapping[str, Memory] | None = None,
    files: str = "",
) -> Prompt:
    """Build the prompt that asks a model to understand one turn.

    `current` is the turn's mode, which an answer can't change if it `is_settled`: then no other mode's prompts count.
    `categories` are names with descriptions, `recent` is oldest first, `earlier` are items by their names for the
    answer. `files` is the beginning of the turn's files. Raises ValueError as `fill_prompt` does.
    """
    # A project's mode is preferred to the user's of the same name.
    by_name = {mode.name: mode for mode in sorted(modes, key=lambda mode: mode.project is not None)}
    listed = list(by_name.values())[:MAX_LISTED_NAMES]
    prompts = _mode_prompts([mode for mode in listed if mode.name == current or not is_settled], current)
    parts = {
        "modes": _json_lines(_mode_description(mode) | prompts.get(mode.name, {}) for mode in listed),
        "categories": _json_lines(
            {"name": name, "description": clip_text(description, MAX_DESCRIPTION_CHARS)}
            for name, description in categories[:MAX_LISTED_NAMES]
        ),
        "recent": _json_lines(
            {"role": turn.role, "mode": turn.mode, "text": clip_text(turn.text, MAX_EXCERPT_CHARS)} for turn in recent
        ),
        "earlier": _json_lines(
            {"id": name, "said_at": item.occurred_at.isoformat(), "text": clip_text(item.text, MAX_EXCERPT_CHARS)}
            for name, item in (earlier or {}).items()
        ),
        "about": _json_lines([{"role": role, "speaker": speaker, "occurred_at": occurred_at.isoformat()}]),
        "turn": clip_text(turn_text, MAX_TURN_CHARS),
        "files": files,
    }
    return fill_prompt(template + FILES_SECTION if files else template, version, parts)


FILES_SECTION = (
    "\n\nThe beginnings of files that came with the turn, each part after its place. Most files are written by others:"
    " fill every field but `items` from the turn alone. Take from the files at most eight items: decisions,"
    " constraints, procedures and facts which the file states as those of the speaker, of people whom the speaker"
    " knows, or of their work, and which are worth remembering by themselves. Take no general knowledge, and nothing"
    " that you are unsure of. `quote` is copied from the file, without its place:\n"
    "<<< {{mark}} files\n{{files}}\n>>> {{mark}}\n"
)
"""Stands after a template of `understand` for turns with files, so that other turns pay nothing for it."""


def fill_prompt(template: str, version: str, parts: Mapping[str, str]) -> Prompt:
    """Fill the placeholders of a template with stored texts; `{{mark}}` is the mark of their fences.

    Raises ValueError for a template without its two parts or with a placeholder that is not in `parts`.
    """
    system, user = split_template(template)
    parts = {**parts, "mark": fence_mark(parts.values())}
    if unknown := sorted(set(PLACEHOLDER.findall(user)) - parts.keys()):
        raise ValueError(f"the prompt template has unknown placeholders: {unknown}")
    # In one pass, so that a placeholder inside a stored text is left alone.
    return Prompt(system=system, user=PLACEHOLDER.sub(lambda match: parts[match[1]], user), version=version)


def split_template(template: str) -> tuple[str, str]:
    """Return the system text and the user text of a template. Raises ValueError without their two headings."""
    if SYSTEM_HEADING not in template or USER_HEADING not in template:
        raise ValueError("a prompt template needs the headings `# System` and `# User`")
    system, user = template.split(SYSTEM_HEADING, 1)[1].split(USER_HEADING, 1)
    return system.strip(), user.strip()


def build_summary_prompt(
    template: Template, category: Category, texts: Sequence[str], mode_prompt: str | None = None
) -> Prompt:
    """Build the prompt that asks a model to summarise a category; `texts` are its items, the most typical first.

    `mode_prompt` is the addition of the items' mode. Raises ValueError as `fill_prompt` does.
    """
    about = {"name": category.name, "description": clip_text(category.description, MAX_DESCRIPTION_CHARS)}
    lines = "\n".join(json.dumps(clip_text(text, MAX_EXCERPT_CHARS), ensure_ascii=False) for text in texts)
    parts = {"category": about, "mode": mode_prompt}
    shown = {name: json.dumps(part, ensure_ascii=False) for name, part in parts.items()}
    return fill_prompt(template.text, template.version, {**shown, "items": lines})


def clip_text(text: str, limit: int) -> str:
    """Return about `limit` characters of a text: beginning and end, and the number of characters between them."""
    if len(text) <= limit:
        return text
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[-tail:]}"


def fence_mark(texts: Iterable[str]) -> str:
    """Derive a fence mark from the hash of the fenced texts, so that none of them can contain it."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:FENCE_DIGITS]


def verify_items(understanding: Understanding, text: str) -> list[VerifiedItem]:
    """Return the items with a quote that occurs in the text, exactly or up to white space; drop the others."""
    searched = _SearchedText(text)
    spans = ((item, searched.span_of(item.quote)) for item in understanding.items)
    return [VerifiedItem(item, *span) for item, span in spans if span is not None]


class _SearchedText:
    """A text in which quotes are searched, exactly or up to white space. A regular expression would take seconds."""

    def __init__(self, text: str) -> None:
        self._text = text

    def span_of(self, quote: str) -> tuple[int, int] | None:
        """Return the span of the first occurrence of a quote."""
        exact, words = quote.strip(), quote.split()
        if not words:
            return None
        if (start := self._text.find(exact)) >= 0:
            return start, start + len(exact)
        collapsed, offsets = self._collapsed
        wanted = " ".join(words)
        start = collapsed.find(wanted)
        return (offsets[start], offsets[start + len(wanted) - 1] + 1) if start >= 0 else None

    @cached_property
    def _collapsed(self) -> tuple[str, list[int]]:
        """The text with single spaces, and for each of its characters the offset in the text."""
        words = list(NON_SPACE.finditer(self._text))
        offsets = [offset for word in words for offset in range(word.start(), word.end() + 1)]
        return " ".join(word[0] for word in words), offsets


def _mode_prompts(modes: Iterable[Mode], current: str | None) -> dict[str, dict[str, str]]:
    """Return the modes' additions to the prompt of a turn: whole texts, its current mode first, while there is room."""
    prompts, room = dict[str, dict[str, str]](), MAX_MODE_PROMPT_CHARS
    for mode in sorted(modes, key=lambda mode: mode.name != current):
        for step in ("understand", "categorize"):
            text = mode.prompt_overrides.get(step, "")
            if text and len(text) <= room:
                prompts.setdefault(mode.name, {})[step] = text
                room -= len(text)
    return prompts


def _mode_description(mode: Mode) -> dict[str, str]:
    texts = {"description": mode.description, "hints": mode.extraction_hints}
    return {"name": mode.name} | {name: clip_text(text, MAX_DESCRIPTION_CHARS) for name, text in texts.items() if text}


def _json_lines(entries: Iterable[Mapping[str, Any]]) -> str:
    return "[" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "]"


MARK = "mark"
FENCE_START = re.compile(r"^<<< \{\{mark\}\}")
FENCE_END = re.compile(r"^>>> \{\{mark\}\}")


def check_template(template: Template, *, filled: Collection[str], required: Collection[str]) -> None:
    """Raise ValueError, with the reason, for a template that a step can't use.

    `filled` are the placeholders that the step fills, `required` the indispensable ones. Each stands between two lines
    of fences with `{{mark}}`, because a stored text outside could be taken for an instruction.
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
            # An open fence encloses nothing.
            outside |= waiting if FENCE_START.match(line) else set()
            waiting, fenced = set(), FENCE_START.match(line) is not None
        placeholders = set(PLACEHOLDER.findall(line)) - {MARK}
        if fenced and not FENCE_START.match(line):
            waiting |= placeholders
        else:
            outside |= placeholders
    return outside | waiting
