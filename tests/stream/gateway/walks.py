"""What every route and every tool needs: a permission, and a request that its owner may make.

A test compares these tables with the routes of the app and the list of tools: a new one needs its line here.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Needs = Literal["open", "any", "read", "write", "manage", "operate"]
"""`open`: no key; `any`: any key, which sees what it may; else a permission."""

Json = dict[str, Any]

TURN = {"conversation_id": "c1", "role": "user", "content": "The deploy target is fly.io now."}

LINE = {"schema": "turn.v1", "scope": {}} | TURN
"""An export of one turn."""


@dataclass(frozen=True)
class Visit:
    """A request to a route: `how` are its parts, as the HTTP client takes them."""

    needs: Needs
    how: Json = field(default_factory=dict)


def _json(needs: Needs, **body: Any) -> Visit:
    return Visit(needs, {"json": body})


def _query(needs: Needs, **query: Any) -> Visit:
    return Visit(needs, {"params": query})


USER = "/v1/users/{user_id}"

ROUTES: dict[str, Visit] = {
    "GET /live": Visit("open"),
    "GET /ready": Visit("open"),
    "GET /openapi.json": Visit("open"),
    "HEAD /openapi.json": Visit("open"),
    "GET /v1/me": Visit("any"),
    "GET /v1/users": Visit("any"),
    "GET /v1/deployment": Visit("any"),
    "GET /v1/pipelines": Visit("operate"),
    "GET /v1/pipelines/revisions": Visit("operate"),
    "POST /v1/pipelines/edits": _json("operate", edits=[{"op": "config", "step_id": "retrieve.rerank"}]),
    "POST /v1/pipelines/rollback": _json("operate", revision=0),
    f"POST {USER}/turns": _json("write", **TURN),
    f"POST {USER}/memories/search": _json("read", query="deploy target"),
    f"POST {USER}/contexts": _json("read", query="deploy target"),
    f"GET {USER}/contexts/{{context_id}}": Visit("read"),
    f"POST {USER}/contexts/{{context_id}}/ratings": _json("write", useful=[], not_useful=[]),
    "GET /v1/receipts/{receipt_id}": Visit("any"),
    f"POST {USER}/answers": _json("read", query="deploy target", store=False),
    f"POST {USER}/files": Visit("write", {"files": {"file": ("a.txt", b"Notes.")}, "data": {"conversation_id": "c1"}}),
    f"GET {USER}/files": Visit("read"),
    f"GET {USER}/files/{{sha256}}": Visit("read"),
    f"GET {USER}/memories/{{memory_id}}/file": Visit("read"),
    f"POST {USER}/imports": Visit("write", {"params": {"format": "jsonl"}, "content": json.dumps(LINE)}),
    f"GET {USER}/memories": Visit("read"),
    f"GET {USER}/conversations": Visit("read"),
    f"GET {USER}/projects": Visit("read"),
    f"GET {USER}/map": Visit("read"),
    f"GET {USER}/memories/{{memory_id}}": Visit("read"),
    f"PATCH {USER}/memories/{{memory_id}}": _json("manage", interaction_mode="TASK"),
    f"GET {USER}/modes": Visit("read"),
    f"PUT {USER}/modes/{{name}}": _json("manage", embedder="general"),
    f"POST {USER}/modes/{{name}}/rename": _json("manage", new_name="diary"),
    f"DELETE {USER}/modes/{{name}}": _query("manage", memories="forget"),
    f"PUT {USER}/default-mode": _json("manage", name="general"),
    f"GET {USER}/mode-suggestions": Visit("read"),
    f"GET {USER}/categories": Visit("read"),
    f"PUT {USER}/categories/{{name}}": _json("manage", description="servers"),
    f"GET {USER}/categories/{{name}}": Visit("read"),
    f"DELETE {USER}/categories/{{name}}": Visit("manage"),
    f"GET {USER}/category-suggestions": Visit("read"),
    f"GET {USER}/intention": Visit("read"),
    f"PUT {USER}/intention": _json("manage", goals=["ship the beta"]),
    f"GET {USER}/health": Visit("read"),
    f"GET {USER}/runs": Visit("read"),
    f"GET {USER}/export": Visit("read"),
    f"GET {USER}/events": Visit("read"),
    f"POST {USER}/consolidations": Visit("manage"),
    f"POST {USER}/jobs/backfill": Visit("manage"),
    f"POST {USER}/jobs/rebuild": Visit("manage"),
    f"POST {USER}/jobs/reconcile": Visit("manage"),
    f"POST {USER}/jobs/compare_embedders": Visit("manage", {"headers": {"Prefer": "respond-async"}}),
    f"POST {USER}/jobs/refresh": Visit("manage", {"headers": {"Prefer": "respond-async"}}),
    f"POST {USER}/jobs/evaluate": Visit("operate", {"headers": {"Prefer": "respond-async"}}),
    f"POST {USER}/jobs/retry_failed": Visit("manage", {"headers": {"Prefer": "respond-async"}}),
    f"GET {USER}/jobs/{{job_id}}": Visit("read"),
    f"POST {USER}/forget": _json("manage", user=True, dry_run=True),
    f"DELETE {USER}/memories/{{memory_id}}": Visit("manage"),
    f"DELETE {USER}/conversations/{{conversation_id}}": _query("manage", confirm="c1"),
    f"DELETE {USER}/projects/{{project_id}}": _query("manage", confirm="default"),
    f"DELETE {USER}": _query("manage", confirm="u1"),
}
"""In an order in which the owner's requests succeed one after another; what forgets comes last."""

NAMES = {
    f"POST {USER}/modes/{{name}}/rename": "journal",
    f"PUT {USER}/modes/{{name}}": "journal",
    f"DELETE {USER}/modes/{{name}}": "diary",
}
"""The `name` in these paths; elsewhere it is `hosting`."""

PROTOCOL_PATHS = {"/mcp", "/mcp/users/{user_id}"}
"""Paths of the protocol: their tools are walked."""

TOOLS: dict[str, tuple[Needs, Json]] = {
    "add_memory": ("write", {"text": "The deploy target is fly.io now."}),
    "search_memory": ("read", {"query": "deploy target"}),
    "list_memories": ("read", {}),
    "get_memory": ("read", {"memory_id": "{memory_id}"}),
    "list_modes": ("read", {}),
    "assemble_context": ("read", {"query": "deploy target"}),
    "ask_memory": ("read", {"query": "deploy target"}),
    "get_context": ("read", {"context_id": "{context_id}"}),
    "rate_memories": ("write", {"context_id": "{context_id}", "useful": []}),
    "declare_mode": ("manage", {"name": "journal"}),
    "set_memory_mode": ("manage", {"memory_id": "{memory_id}", "mode": "journal"}),
    "get_intention": ("read", {}),
    "set_intention": ("manage", {"goals": ["ship the beta"]}),
    "health": ("read", {}),
    "delete_memory": ("manage", {"memory_id": "{memory_id}"}),
}
"""What each tool needs, and arguments with which its owner's call succeeds; what forgets comes last."""
