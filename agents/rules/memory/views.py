"""Records and modes as commands show them. Pure."""

from typing import Any

from schemas.memories import Item, Memory
from schemas.modes import Mode, ModeDeclarations
from schemas.moments import iso

INTERNAL_FIELDS = {
    "boundary",
    "source",
    "latest",
    "latest_at",
    "versions",
    "current",
    "reading",
    "item",
    "superseded_in",
}
"""Fields of a record that are ours, or are shown in another form."""


def shown_memory(memory: Memory) -> dict[str, Any]:
    """The whole record as `get_memory` shows it, with what it was understood as, or says of its turns, beside the rest.

    A turn has the ids of its `items`, if any; an item and what was distilled have what is known of them.
    """
    whole = memory.model_dump(mode="json", exclude=INTERNAL_FIELDS)
    if not memory.items:
        whole.pop("items")
    if memory.item is not None:
        whole |= _known(memory.item)
    reading = memory.reading.model_dump(mode="json", exclude={"status", "text_hash", "interaction", "aims"})
    interaction = memory.reading.interaction
    versions = [
        {"version": number, "current": number == memory.current + 1, **version.model_dump(mode="json")}
        for number, version in enumerate(memory.versions, 1)
    ]
    understood = {
        **reading,
        "understanding": memory.reading.status,
        "interaction_mode": interaction and interaction.mode,
        "interaction_confidence": interaction and round(interaction.confidence, 3),
    }
    return (
        whole | understood | {"version": memory.version, "versions": versions, "occurred_at": iso(memory.occurred_at)}
    )


def _known(item: Item) -> dict[str, Any]:
    return item.model_dump(mode="json", exclude={"supports", "claim", "run"}) | {
        "valid_from": item.valid_from and iso(item.valid_from),
        "valid_until": item.valid_until and iso(item.valid_until),
    }


def shown_mode(mode: Mode, declared: ModeDeclarations, project: str) -> dict[str, Any]:
    """A mode as `declare_mode` and `list_modes` show it; `is_default`: turns of this project get it by default."""
    return mode.model_dump(mode="json", exclude={"formerly", "embedded_since"}) | {
        "is_default": declared.default(project)[0] == mode.name
    }
