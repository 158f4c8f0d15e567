"""Read long conversations with questions and evidence from `conv-*.json` files in LoCoMo's format.

A file with further questions about one of our conversations has that conversation's name in place of the turns.
Evidence that names no turn is dropped. Deterministic.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from schemas.messages.turns import MAX_CONTENT_LENGTH, Turn
from schemas.scopes import Scope
from schemas.state.memories import Resource

OWN = Path(__file__).parent / "conversations"
"""Conversations of this project: between people, and with an assistant that answers shortly."""

ASSISTANT = Path(__file__).parent / "assistant"
"""Conversations of this project with an assistant, whose replies have the length of real ones."""

REMARKS = Path(__file__).parent / "remarks.json"
"""Remarks in conversations between people, by the name of the conversation; the others have theirs in their files."""

CROSSING = Path(__file__).parent / "crossing"
"""Questions about some of them in another language. No weights are fitted to these."""

BETWEEN_PEOPLE = "remark between people"
"""The kind of the remarks of `REMARKS`."""

REMARK = 6
"""The category of remarks."""

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial", REMARK: "remark"}
"""LoCoMo's categories of questions, and remarks: messages that ask nothing, and for which earlier turns matter."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, the ids of the answering turns, and the number of turns that its author named.

    `kind` says what it asks for, where its author said so.
    """

    text: str
    evidence: tuple[str, ...]
    named: int
    category: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order, with questions."""

    name: str
    turns: Sequence[Turn]
    questions: Sequence[LabelledQuestion]


def read_conversations(path: Path = OWN) -> list[Conversation]:
    """Return all conversations of a folder, sorted by name, or of a file with a list of them, as LoCoMo's."""
    if path.is_file():
        return [_conversation(sample["sample_id"], sample) for sample in json.loads(path.read_text())]
    remarks = json.loads(REMARKS.read_text()) if path == OWN else {}
    for each in remarks.values():
        for remark in each:
            remark["kind"] = BETWEEN_PEOPLE
    samples = [(one.stem, _sample(one)) for one in sorted(path.glob("conv-*.json"))]
    return [_conversation(name, {"remarks": remarks.get(name, [])} | sample) for name, sample in samples]


def training_conversations() -> list[Conversation]:
    """Return all conversations to which weights are fitted."""
    return [*read_conversations(OWN), *read_conversations(ASSISTANT)]


def as_one_conversation(conversation: Conversation) -> Conversation:
    """Return the same turns as those of a single conversation, as programs send them that never begin a new one."""
    turns = [turn.model_copy(update={"conversation_id": conversation.name}) for turn in conversation.turns]
    return replace(conversation, turns=turns)


def _sample(path: Path) -> Json:
    """Read a file; turns may come from another one."""
    sample: Json = json.loads(path.read_text())
    turns = sample["conversation"]
    if isinstance(turns, str):
        return sample | {"conversation": _sample(OWN / f"{turns}.json")["conversation"]}
    return sample


def _conversation(name: str, sample: Json) -> Conversation:
    turns = [turn for number in _sessions(sample["conversation"]) for turn in _session(name, sample, number)]
    known = {turn.turn_id for turn in turns}
    remarks = [
        {"question": one["text"], "category": REMARK, "kind": "remark", **one} for one in sample.get("remarks", ())
    ]
    asked = [_question(name, one, known) for one in (*sample["qa"], *remarks) if one.get("evidence")]
    return Conversation(name, turns, asked)


def _sessions(sessions: Json) -> list[int]:
    return sorted(
        int(key[8:]) for key, turns in sessions.items() if re.fullmatch(r"session_\d+", key) and isinstance(turns, list)
    )


def _session(name: str, sample: Json, number: int) -> list[Turn]:
    """Return the turns of a session, a second apart."""
    sessions = sample["conversation"]
    start = datetime.strptime(sessions[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    conversation = f"{name}/session_{number}"
    return [
        _turn(name, conversation, one, sessions["speaker_a"], start + timedelta(seconds=second))
        for second, one in enumerate(sessions[f"session_{number}"])
    ]


def _turn(name: str, conversation: str, said: Json, first_speaker: str, when: datetime) -> Turn:
    caption = said.get("blip_caption")
    image = Resource(uri=f"image:{name}/{said['dia_id']}", media_type="image/jpeg", text=caption)
    return Turn(
        turn_id=f"{name}/{said['dia_id']}",
        scope=Scope.model_validate({"user_id": name}),
        conversation_id=conversation,
        role=said.get("role") or ("user" if said["speaker"] == first_speaker else "assistant"),
        speaker=said["speaker"],
        content=said["text"][:MAX_CONTENT_LENGTH],
        occurred_at=when,
        resources=(image,) if caption else (),
    )


def _question(name: str, qa: Json, known: set[str | None]) -> LabelledQuestion:
    named = [f"{name}/{one}" for one in _evidence(qa["evidence"])]
    evidence = tuple(one for one in named if one in known)
    return LabelledQuestion(qa["question"], evidence, len(named), qa["category"], qa.get("kind") or "")


def _evidence(strings: Sequence[str]) -> list[str]:
    """Return evidence ids such as `D3:11`; several in one string are split, malformed ones dropped."""
    parts = [part.strip() for text in strings for part in re.split(r"[;\s]+", text)]
    matches = [re.fullmatch(r"D:?(\d+):0*(\d+)", part) for part in parts]
    return [f"D{match[1]}:{int(match[2])}" for match in matches if match]
