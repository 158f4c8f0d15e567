"""Questions of a user's own log, made over the client: to look at them, and to ask them of two deployments."""

from collections.abc import Iterable
from datetime import datetime

from modestream_client.answers import Json

from agents.rules.evaluation.questions import LoggedTurn, Question, make_questions

__all__ = ["LoggedTurn", "Question", "logged_turns", "make_questions"]


def logged_turns(memories: Iterable[Json]) -> list[LoggedTurn]:
    """Return the turns among listed memories. Edited ones are left out: their former text is gone."""
    return [
        LoggedTurn(
            memory_id=memory["memory_id"],
            scope=tuple(sorted(memory["scope"].items())),
            conversation_id=memory["conversation_id"],
            mode=memory["mode"],
            role=memory["role"],
            speaker=memory["speaker"],
            text=memory["text"],
            accepted_at=datetime.fromisoformat(memory["accepted_at"]),
        )
        for memory in memories
        if memory["type"] in ("episodic", "working") and memory["turn_id"] is not None and memory["version"] == 1
    ]
