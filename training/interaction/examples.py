"""Read labelled conversations as single user turns, in deterministic order."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from modestream_client.vocabulary import InteractionMode

from schemas.state.interaction import INTERACTION_MODES

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"
HELD_OUT = HERE / "held_out.jsonl"
HELD_OUT_CONVERSATIONS = HERE / "held_out_conversations.jsonl"
HELD_OUT_SESSIONS = HERE / "held_out_sessions.jsonl"
HELD_OUT_HARD = HERE / "held_out_hard.jsonl"
CUES = HERE / "cues.txt"


@dataclass(frozen=True, slots=True)
class Turn:
    """A user's turn; `before` are the modes of the user's earlier turns in the conversation, oldest first."""

    conversation: str
    language: str
    source: str
    text: str
    mode: InteractionMode
    before: tuple[InteractionMode, ...]


def read_turns(files: Iterable[Path]) -> list[Turn]:
    """Return all user turns, sorted by file name and conversation id.

    Raises ValueError for an unknown mode and for a duplicate id.
    """
    turns: list[Turn] = []
    seen: set[str] = set()
    for file in sorted(files):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        for row in sorted(rows, key=lambda row: str(row["id"])):
            if row["id"] in seen:
                raise ValueError(f"two conversations have the id {row['id']}")
            seen.add(row["id"])
            turns.extend(_user_turns(row, file.stem))
    return turns


def training_turns() -> list[Turn]:
    """Return the training examples, without the held-out ones."""
    return read_turns(EXAMPLES.glob("*.jsonl"))


def digest(turns: Sequence[Turn], cues: str) -> str:
    """Return the SHA-256 of the training data, as hexadecimal."""
    rows = [[turn.conversation, turn.text, turn.mode] for turn in turns]
    return hashlib.sha256(json.dumps([rows, cues], ensure_ascii=False).encode()).hexdigest()


def _user_turns(row: dict[str, object], source: str) -> Iterable[Turn]:
    turns = row["turns"]
    assert isinstance(turns, list)
    before: tuple[InteractionMode, ...] = ()
    for one in turns:
        if one["role"] != "user":
            continue
        if one["mode"] not in INTERACTION_MODES:
            raise ValueError(f"{row['id']} has the unknown mode {one['mode']!r}")
        yield Turn(str(row["id"]), str(row["language"]), source, one["text"], one["mode"], before)
        before = (*before, one["mode"])
