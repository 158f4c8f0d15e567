"""Memories as lists and `get_memory` answer them."""

from typing import Any

Record = dict[str, Any]


def listed_memory(memory_id: str = "m1", text: str = "We moved to Kent.", **fields: Any) -> Record:
    """Return a turn's memory as `list.v1` shows it."""
    return {
        "memory_id": memory_id,
        "turn_id": f"t-{memory_id}",
        "conversation_id": "c1",
        "scope": {"user_id": "ana", "project_id": "home"},
        "type": "episodic",
        "mode": "journal",
        "mode_source": "caller",
        "role": "user",
        "speaker": "Ana",
        "text": text,
        "occurred_at": "2026-03-01T09:30:00Z",
        "evidence": [{"turn_id": f"t-{memory_id}", "start": 0, "end": len(text)}],
        "version": 1,
        "embedding_status": "ready",
        "importance": None,
        "metadata": {},
        "superseded_by": None,
    } | fields


def memory_record(memory_id: str = "m1", text: str = "We moved to Kent.", **fields: Any) -> Record:
    listed = listed_memory(memory_id, text)
    listed.pop("embedding_status")
    return {
        **listed,
        "resources": [],
        "entities": [],
        "decay": "medium",
        "content_hash": "h",
        "embedding": {"status": "ready", "place": None, "content_hash": "h", "embedded_at": None, "error": None},
        "origin": "said",
        "topic": None,
        "intent": None,
        "operation": None,
        "times": [],
        "model": None,
        "prompt": None,
        "understanding": "rules",
        "interaction_mode": "TASK",
        "interaction_confidence": 0.93,
        "interaction_corrected": False,
        "versions": [
            {"version": 1, "current": True, "text_hash": f"hash-{len(text)}", "first_seen": "2026-03-01T09:30:01Z"}
        ],
    } | fields


def item_record(memory_id: str, text: str, evidence: list[Record], **fields: Any) -> Record:
    item = {
        "origin": "extracted",
        "type": "semantic",
        "kind": "fact",
        "confidence": 0.8,
        "stability": 0.7,
        "categories": [],
        "valid_from": "2026-03-01T09:30:00Z",
        "valid_until": None,
        "interaction_mode": None,
        "interaction_confidence": None,
    }
    return memory_record(memory_id, text, **item, evidence=evidence) | fields
