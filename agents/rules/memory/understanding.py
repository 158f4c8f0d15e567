"""Merge a language model's understanding of a turn into what the rules found. Pure."""

from modestream_client.vocabulary import InteractionMode

from schemas.internal.events import Understood
from schemas.state.aims import IntentionUpdate
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, TurnUnderstanding

MAX_MEMORY_ENTITIES = 64
"""Entities of one memory: those found by rules first, then the model's."""


def current_text_hash(memory: Memory) -> str:
    """Return the hash of the memory's current text."""
    return memory.versions[memory.current].text_hash


def needs_understanding(memory: Memory) -> bool:
    """True if the current text of a user's turn has no interaction mode yet."""
    return memory.role == "user" and memory.type == "episodic" and memory.reading.interaction is None


def is_about_current_text(memory: Memory, event: Understood) -> bool:
    """True if the event is about the memory's current text, not about a replaced one."""
    return event.text_hash == current_text_hash(memory)


def with_interaction(memory: Memory, interaction: Interaction | None) -> Memory:
    """Set the interaction mode found by rules, unless a user has corrected it or a model has answered.

    A model's answer includes the rules' vote.
    """
    if interaction is None or memory.reading.status == "model" or memory.reading.is_corrected:
        return memory
    reading = memory.reading.model_copy(update={"interaction": interaction})
    return memory.model_copy(update={"reading": reading})


def is_misclassified(memory: Memory, mode: InteractionMode) -> bool:
    """True if a classifier has found another interaction mode than the right one."""
    found = memory.reading.interaction
    return found is not None and found.mode != mode and not memory.reading.is_corrected


def with_correction(memory: Memory, mode: InteractionMode) -> Memory:
    """Set the interaction mode that a user says is right; it stays until the text changes."""
    interaction = Interaction(mode=mode, confidence=1.0)
    reading = memory.reading.model_copy(update={"interaction": interaction, "is_corrected": True})
    return memory.model_copy(update={"reading": reading})


def with_understanding(memory: Memory, event: Understood) -> Memory:
    """Add a model's answer to the memory. What the rules found stays where the model says nothing."""
    before, found = memory.reading, event.found
    if found is None and before.status == "model":
        return memory  # Asked twice, answered once: keep the valid answer.
    if found is None:
        # The answer is invalid, and asking again would give the same: stop waiting for the model.
        reading = before.model_copy(update={"status": "rules", "model": event.profile, "prompt": event.prompt})
        return memory.model_copy(update={"reading": reading})
    reading = TurnUnderstanding(
        status="model",
        text_hash=event.text_hash,
        topic=found.topic or before.topic,
        intent=found.intent or before.intent,
        operation=found.operation or before.operation,
        times=before.times,
        interaction=before.interaction if before.is_corrected else event.interaction or before.interaction,
        is_corrected=before.is_corrected,
        model=event.profile,
        prompt=event.prompt,
        aims=found.intention if found.intention != IntentionUpdate() else None,
        revision=event.revision,
    )
    known = {entity.casefold() for entity in memory.entities}
    added = [one for one in dict.fromkeys(found.entities) if one.strip() and one.casefold() not in known]
    entities = (*memory.entities, *added)[:MAX_MEMORY_ENTITIES]
    return memory.model_copy(update={"reading": reading, "entities": entities})
