"""Numbers of users, as the gateway knows them."""

import json

from gateway.service.boundaries import Boundaries


def told(
    boundaries: Boundaries,
    user: str,
    memories: int = 4,
    modes: tuple[str, ...] = ("general", "code"),
    embedder: str = "general",
) -> None:
    """Have the numbers of a user known, as the topic of boundaries tells them."""
    boundary = {
        "schema": "boundary.v1",
        "boundary": user,
        "scope": {"user_id": user},
        "projects": 1,
        "conversations": 2,
        "memories": memories,
        "modes": {name: {"memories": memories // len(modes), "embedder": embedder} for name in modes},
        "embedding": {"ready": memories, "pending": 0, "stale": 0, "failed": 0},
        "corrections": 1,
        "first": "2026-03-01T09:30:00Z",
        "last": "2026-03-04T09:30:00Z",
    }
    boundaries.apply(user.encode(), json.dumps(boundary).encode())
