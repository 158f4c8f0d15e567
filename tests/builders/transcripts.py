"""Lines of transcripts of coding agents, and files of them."""

import json
from pathlib import Path
from typing import Any


def line(number: int, role: str = "user", content: Any = None, at: str | None = None) -> str:
    """A line of a session of Claude Code."""
    told = {"role": role, "content": content or f"Message {number}."}
    timestamp = f"2026-03-05T{at or f'08:01:{number:02}.000'}Z"
    line = {"type": role, "uuid": f"m{number}", "sessionId": "s1", "timestamp": timestamp}
    return json.dumps(line | {"cwd": "/src/boats", "message": told}) + "\n"


def codex_line(number: int, content: str = "hello", at: str | None = None) -> str:
    """A line of a session of Codex; before the first one its header."""
    timestamp = f"2026-03-05T{at or f'08:01:{number:02}.000'}Z"
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": content}]}
    item = json.dumps({"type": "response_item", "timestamp": timestamp, "payload": said}) + "\n"
    start = {"type": "session_meta", "timestamp": "2026-03-05T08:01:00.000Z", "payload": {"id": "thread-1"}}
    return item if number else json.dumps(start) + "\n" + item


def written_session(folder: Path, *lines: str) -> Path:
    """Write a session; return its file."""
    transcript = folder / "session.jsonl"
    transcript.write_text("".join(lines))
    return transcript
