"""The project's conversations with questions, as texts and the places of their evidence, in a stated order."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.rules.query.questions import parse_question
from agents.rules.text.embedding_text import MAX_CAPTION_CHARS, MAX_CONTENT_CHARS

CONVERSATIONS = Path(__file__).parents[1] / "ranking" / "conversations"

_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question without the speakers' names, and which turns answer it."""

    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns as they are embedded, each with the number of its session, and the questions about them."""

    name: str
    turns: tuple[str, ...]
    sessions: tuple[int, ...]
    questions: tuple[Asked, ...]


def read_all(folder: Path = CONVERSATIONS) -> list[Conversation]:
    """All conversations, by name. Raises OSError, or KeyError for evidence that no turn has."""
    return [_conversation(json.loads(file.read_text(encoding="utf-8"))) for file in sorted(folder.glob("*.json"))]


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk = sample["conversation"]
    numbers = sorted(int(match[1]) for key in talk if (match := _SESSION.fullmatch(key)))
    said = [(number, turn) for number in numbers for turn in talk[f"session_{number}"]]
    places = {turn["dia_id"]: place for place, (_, turn) in enumerate(said)}
    speakers = sorted({turn["speaker"] for _, turn in said})
    return Conversation(
        sample["sample_id"],
        tuple(_embedded(turn) for _, turn in said),
        tuple(number for number, _ in said),
        tuple(_asked(entry, speakers, places) for entry in sample["qa"] if entry["evidence"]),
    )


def _embedded(turn: dict[str, Any]) -> str:
    """As `agents.rules.text.embedding_text` words a turn and the caption of its image."""
    caption = turn.get("blip_caption")
    return str(turn["text"])[:MAX_CONTENT_CHARS] + (f" [image: {caption[:MAX_CAPTION_CHARS]}]" if caption else "")


def _asked(entry: dict[str, Any], speakers: Sequence[str], places: dict[str, int]) -> Asked:
    return Asked(parse_question(entry["question"], speakers).text, tuple(places[one] for one in entry["evidence"]))
