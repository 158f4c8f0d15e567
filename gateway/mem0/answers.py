"""Memories as mem0 shows them. Pure."""

from collections.abc import Mapping
from typing import Any

from gateway.mem0.ids import Places
from gateway.service.wire import Json


def memory_of(places: Places, memory: Mapping[str, Any]) -> Json:
    """Return a listed or whole memory."""
    versions = memory.get("versions") or ()
    changed = [one["first_seen"] for one in versions if one["current"] and one["version"] > 1]
    return {
        "id": memory["memory_id"],
        "memory": memory["text"],
        **places.ids(memory),
        "actor_id": memory["speaker"],
        "role": memory["role"],
        "metadata": memory.get("metadata") or {},
        "created_at": memory["occurred_at"],
        "updated_at": changed[0] if changed else memory["occurred_at"],
    }


def history_of(memory: Mapping[str, Any]) -> list[Json]:
    """Return the versions of a memory, oldest first; replaced texts are not kept, so they are null."""
    return [
        {
            "id": f"{memory['memory_id']}.{one['version']}",
            "memory_id": memory["memory_id"],
            "old_memory": None,
            "new_memory": memory["text"] if one["current"] else None,
            "event": "ADD" if one["version"] == 1 else "UPDATE",
            "created_at": one["first_seen"],
            "updated_at": one["first_seen"],
            "is_deleted": False,
        }
        for one in memory["versions"]
    ]


def added(content: str, stored: Mapping[str, Any]) -> Json:
    """Return what became of a message."""
    return {"id": stored["memory_id"], "memory": content, "event": "NONE" if stored["duplicate"] else "ADD"}
