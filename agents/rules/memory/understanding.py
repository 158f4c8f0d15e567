"""What a turn was understood as: first by the rules alone, then with what a model adds. Pure."""

from schemas.aims import IntentionUpdate
from schemas.events import Understood
from schemas.interaction import Interaction
from schemas.memories import Memory, TurnUnderstanding

MAX_MEMORY_ENTITIES = 64
"""Entities of one memory: those of the rules first, then the model's."""


def current_text_hash(memory: Memory) -> str:
    """The hash of the text that stands."""
    return memory.versions[memory.current].text_hash


def needs_understanding(memory: Memory) -> bool:
    """Whether nobody has said yet what the text that stands is for."""
    return memory.role == "user" and memory.type == "episodic" and memory.reading.interaction is None


def is_about_current_text(memory: Memory, event: Understood) -> bool:
    """Whether an event is about the text that stands; another one was replaced meanwhile."""
    return event.text_hash == current_text_hash(memory)


def with_interaction(memory: Memory, interaction: Interaction | None) -> Memory:
    """The memory with what the rules say it is for; a model's answer has counted their vote already."""
    if interaction is None or memory.reading.status == "model":
        return memory
    reading = memory.reading.model_copy(update={"interaction": interaction})
    return memory.model_copy(update={"reading": reading})


def with_understanding(memory: Memory, event: Understood) -> Memory:
    """The memory with what a model understood. It adds to what the rules found, and takes nothing of it away."""
    before, found = memory.reading, event.found
    if found is None and before.status == "model":
        return memory  # It was asked twice, and answered once.
    if found is None:
        # It answers, but not validly: asked again it would do the same.
        reading = before.model_copy(update={"status": "rules", "model": event.profile, "prompt": event.prompt})
        return memory.model_copy(update={"reading": reading})
    reading = TurnUnderstanding(
        status="model",
        text_hash=event.text_hash,
        topic=found.topic or before.topic,
        intent=found.intent or before.intent,
        operation=found.operation or before.operation,
        times=before.times,
        interaction=event.interaction or before.interaction,
        model=event.profile,
        prompt=event.prompt,
        aims=found.intention if found.intention != IntentionUpdate() else None,
    )
    known = {entity.casefold() for entity in memory.entities}
    added = [one for one in dict.fromkeys(found.entities) if one.strip() and one.casefold() not in known]
    entities = (*memory.entities, *added)[:MAX_MEMORY_ENTITIES]
    return memory.model_copy(update={"reading": reading, "entities": entities})
