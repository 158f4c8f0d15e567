"""Memories and modes as commands return them. Pure."""

from typing import Any

from schemas.moments import iso
from schemas.state.memories import Item, Memory
from schemas.state.modes import Mode, ModeDeclarations

_INTERNAL = {
    "boundary",
    "source",
    "latest",
    "latest_at",
    "versions",
    "dropped_versions",
    "current",
    "reading",
    "item",
    "superseded_in",
    "visibility",
    "own_visibility",
}
"""Fields of a record that are internal, or are returned in another form."""


def build_memory_view(memory: Memory) -> dict[str, Any]:
    """Return the record as `get_memory` shows it, its understanding and versions flattened into it.

    A turn with items has their ids in `items`; extracted and distilled memories have the fields of `Item`.
    """
    view = memory.model_dump(mode="json", exclude=_INTERNAL)
    if not memory.items:
        view.pop("items")
    if memory.item is not None:
        view |= _item_view(memory.item)
    reading = memory.reading.model_dump(
        mode="json",
        exclude={"status", "text_hash", "interaction", "is_corrected", "aims", "revision", "tried", "refreshed"},
    )
    interaction = memory.reading.interaction
    current = memory.versions[memory.current]
    versions = [
        {"version": number, "current": version is current, **version.model_dump(mode="json")}
        for number, version in enumerate(memory.versions, memory.dropped_versions + 1)
    ]
    understanding = {
        **reading,
        "understanding": memory.reading.status,
        "interaction_mode": interaction and interaction.mode,
        "interaction_confidence": interaction and round(interaction.confidence, 3),
        "interaction_corrected": memory.reading.is_corrected,
        **({"understood_by_revision": memory.reading.revision} if memory.reading.revision else {}),
    }
    own = memory.own_visibility
    visibility = {
        "searchable": memory.visibility.searchable,
        "private": memory.visibility.private,
        "own_visibility": {"searchable": own.searchable, "private": own.private},
    }
    version = {"version": memory.version, "versions": versions, "occurred_at": iso(memory.occurred_at)}
    return view | understanding | visibility | version


def _item_view(item: Item) -> dict[str, Any]:
    return item.model_dump(mode="json", exclude={"supports", "claim", "run"}) | {
        "valid_from": item.valid_from and iso(item.valid_from),
        "valid_until": item.valid_until and iso(item.valid_until),
    }


def build_mode_view(mode: Mode, declared: ModeDeclarations, project: str) -> dict[str, Any]:
    """Return a mode as `declare_mode` and `list_modes` show it; `is_default`: the default of this project's turns."""
    return mode.model_dump(mode="json", exclude={"formerly", "embedded_since", "filtered_since", "former"}) | {
        "is_default": declared.default(project)[0] == mode.name,
        "former_embedder": mode.former.embedder if mode.former else None,
    }
