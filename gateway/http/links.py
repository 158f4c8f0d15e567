"""Links of the OpenAPI document: what of an answer goes into which next request. Programs and tests follow them."""

from typing import Any, NamedTuple

USER = {"user_id": "$request.path.user_id"}


class Link(NamedTuple):
    """From an answer to an operation: its parameters come from these places."""

    operation: str
    status: str
    target: str
    parameters: dict[str, str]


def _to(operation: str, status: str, parameters: dict[str, str], *targets: str) -> list[Link]:
    return [Link(operation, status, target, USER | parameters) for target in targets]


STORED = {"memory_id": "$response.body#/memory_id"}
FIRST_HIT = {"memory_id": "$response.body#/hits/0/memory_id"}
FIRST_LISTED = {"memory_id": "$response.body#/items/0/memory_id"}
NAMED = {"name": "$request.path.name"}
JOB = {"job_id": "$response.body#/job_id"}
OF_MEMORY = ("get_memory", "change_memory", "forget_memory")

LINKS = (
    *_to("add_turns", "201", STORED, *OF_MEMORY),
    *_to("add_turns", "201", {"read_after": "$response.body#/read_after"}, "list_memories"),
    *_to("search_memories", "200", FIRST_HIT, *OF_MEMORY),
    *_to("list_memories", "200", FIRST_LISTED, *OF_MEMORY),
    *_to("list_memories", "200", {"cursor": "$response.body#/next"}, "list_memories"),
    *_to("forget_memory", "200", {"memory_id": "$request.path.memory_id"}, "get_memory"),
    *_to("declare_mode", "200", NAMED, "rename_mode", "delete_mode"),
    *_to("declare_category", "200", NAMED, "get_category", "delete_category"),
    *_to("delete_category", "200", NAMED, "get_category"),
    *(link for name in ("backfill", "rebuild", "reconcile", "retry_failed", "refresh")
      for link in _to(f"run_{name}", "202", JOB, "get_job")),
    *_to("consolidate", "202", JOB, "get_job"),
)  # fmt: skip
"""In the order of the document."""


def add_links(name: str, responses: dict[str, Any]) -> None:
    """Add the links of an operation to its answers."""
    for link in LINKS:
        if link.operation == name:
            links = responses[link.status].setdefault("links", {})
            links[link.target] = {"operationId": link.target, "parameters": link.parameters}
