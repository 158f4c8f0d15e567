"""Read conversations as texts, with questions and the places of their evidence, in deterministic order."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.rules.query.questions import parse_question
from agents.rules.text.passages import MAX_CAPTION_CHARS, MAX_CONTENT_CHARS

CONVERSATIONS = Path(__file__).parents[1] / "ranking" / "conversations"

_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question without speaker names, and the places of the answering turns."""

    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns as embedded, the session number of each, and the questions."""

    name: str
    turns: tuple[str, ...]
    sessions: tuple[int, ...]
    questions: tuple[LabelledQuestion, ...]


def read_conversations(folder: Path = CONVERSATIONS) -> list[Conversation]:
    """Return all conversations, sorted by file name. Raises OSError, and KeyError for evidence without a turn."""
    return [_conversation(json.loads(file.read_text(encoding="utf-8"))) for file in sorted(folder.glob("*.json"))]


def _conversation(sample: dict[str, Any]) -> Conversation:
    sessions = sample["conversation"]
    numbers = sorted(int(match[1]) for key in sessions if (match := _SESSION.fullmatch(key)))
    turns = [(number, turn) for number in numbers for turn in sessions[f"session_{number}"]]
    places = {turn["dia_id"]: place for place, (_, turn) in enumerate(turns)}
    speakers = sorted({turn["speaker"] for _, turn in turns})
    return Conversation(
        sample["sample_id"],
        tuple(_embedded_text(turn) for _, turn in turns),
        tuple(number for number, _ in turns),
        tuple(_question(entry, speakers, places) for entry in sample["qa"] if entry["evidence"]),
    )


def _embedded_text(turn: dict[str, Any]) -> str:
    """Return the text of a turn and its image caption as `agents.rules.text.passages` formats it."""
    caption = turn.get("blip_caption")
    return str(turn["text"])[:MAX_CONTENT_CHARS] + (f" [image: {caption[:MAX_CAPTION_CHARS]}]" if caption else "")


def _question(entry: dict[str, Any], speakers: Sequence[str], places: dict[str, int]) -> LabelledQuestion:
    return LabelledQuestion(
        parse_question(entry["question"], speakers).text, tuple(places[one] for one in entry["evidence"])
    )
