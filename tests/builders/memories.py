import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from modestream_client.vocabulary import EmbeddingStatus

from schemas.state.memories import Embedding, Memory, TextVersion, VectorLocation

START = datetime(2026, 2, 1, 10, tzinfo=UTC)
"""The time of the first turn."""


def made(text: str, number: int = 0, *, user: str = "ana", project: str = "default", **fields: Any) -> Memory:
    """Return the memory of a turn `number` minutes after the start; `fields` replace any field."""
    when = START + timedelta(minutes=number)
    identity = "/".join((user, project, str(fields.get("conversation_id", "c1")), str(number)))
    known: dict[str, Any] = {
        "memory_id": str(uuid.uuid5(uuid.NAMESPACE_URL, identity)),
        "turn_id": f"t-{number}",
        "conversation_id": "c1",
        "scope": {"user_id": user, "project_id": project},
        "boundary": user,
        "mode": "general",
        "mode_source": "fallback",
        "role": "user",
        "text": text,
        "occurred_at": when,
        "source": number,
        "latest": number,
        "latest_at": when,
        "versions": (TextVersion(text_hash="hash", first_seen=when),),
        "content_hash": "hash",
    }
    return Memory(**(known | fields))


def embedded_in(space: str, mode: str = "general", status: EmbeddingStatus = "ready") -> Embedding:
    return Embedding(
        status=status, place=VectorLocation(mode=mode, space=space), content_hash="hash", embedded_at=START
    )
