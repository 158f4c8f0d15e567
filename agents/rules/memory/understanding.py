"""A language model's understanding of a turn: merge it with the rules' results, supersede, decide when due. Pure."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from modestream_client.vocabulary import InteractionMode

from agents.rules.cues.intents import intent_of
from agents.rules.text.dates import find_dates
from agents.rules.text.tokenizer import extract_entities
from schemas.internal.changes import Job
from schemas.internal.consolidation import Distilled
from schemas.internal.events import Reread, Understood
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, Refreshed, TurnUnderstanding
from schemas.state.understanding import IntentionUpdate

MAX_MEMORY_ENTITIES = 64
"""Entities of one memory: those found by rules first, then the model's."""

UNANSWERABLE_PROFILE = "unanswerable"
"""Recorded in place of a profile if no answer is valid."""


def current_text_hash(memory: Memory) -> str:
    return memory.versions[memory.current].text_hash


def needs_understanding(memory: Memory) -> bool:
    """True if the current text of a user's turn has no interaction mode yet."""
    return memory.role == "user" and memory.type == "episodic" and memory.reading.interaction is None


def is_about_current_text(memory: Memory, event: Understood | Reread) -> bool:
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
    by_rules = memory.reading.interaction
    return by_rules is not None and by_rules.mode != mode and not memory.reading.is_corrected


def with_correction(memory: Memory, mode: InteractionMode) -> Memory:
    """Set the interaction mode given by a user; it stays until the text changes."""
    interaction = Interaction(mode=mode, confidence=1.0)
    reading = memory.reading.model_copy(update={"interaction": interaction, "is_corrected": True})
    return memory.model_copy(update={"reading": reading})


def with_understanding(memory: Memory, event: Understood) -> Memory:
    """Add a model's answer to the memory. The rules' results stay where the model says nothing."""
    answer = event.found
    if answer is None and memory.reading.status == "model":
        # The valid answer stays; a refresh notes that its later prompt gave none.
        if event.refresh is None:
            return memory
        return memory.model_copy(update={"reading": memory.reading.model_copy(update={"tried": event.prompt})})
    if answer is None:
        # The answer is invalid, and asking again would give the same: stop waiting for the model.
        invalid = {"status": "rules", "model": event.profile, "prompt": event.prompt}
        return memory.model_copy(update={"reading": memory.reading.model_copy(update=invalid)})
    if event.refresh is not None:
        memory = as_read_by_rules(memory)
    before = memory.reading
    reading = TurnUnderstanding(
        status="model",
        text_hash=event.text_hash,
        topic=answer.topic or before.topic,
        intent=answer.intent or before.intent,
        operation=answer.operation or before.operation,
        times=before.times,
        interaction=before.interaction if before.is_corrected else event.interaction or before.interaction,
        is_corrected=before.is_corrected,
        model=event.profile,
        prompt=event.prompt,
        aims=answer.intention if answer.intention != IntentionUpdate() else None,
        revision=event.revision,
    )
    folded = {entity.casefold() for entity in memory.entities}
    added = [entity for entity in dict.fromkeys(answer.entities) if entity.strip() and entity.casefold() not in folded]
    entities = (*memory.entities, *added)[:MAX_MEMORY_ENTITIES]
    return memory.model_copy(update={"reading": reading, "entities": entities})


def as_read_by_rules(memory: Memory) -> Memory:
    """Return a turn as understood by rules alone: an earlier model's answer is dropped.

    The interaction mode stays until another one is found.
    """
    before = memory.reading
    reading = TurnUnderstanding(
        text_hash=before.text_hash,
        intent=intent_of(memory.text),
        times=find_dates(memory.text, memory.occurred_at),
        interaction=before.interaction,
        is_corrected=before.is_corrected,
    )
    return memory.model_copy(update={"reading": reading, "entities": extract_entities(memory.text)})


def with_refreshed(memory: Memory, refreshed: Refreshed, revision: int) -> Memory:
    """Note on a turn the changes of a repeated understanding, by this revision of the pipelines."""
    reading = memory.reading.model_copy(update={"refreshed": refreshed, "revision": revision})
    return memory.model_copy(update={"reading": reading})


def is_answered_again(memory: Memory, event: Understood | Reread) -> bool:
    """True if another event of the same job has been applied: a killed job may have asked twice."""
    done = memory.reading.refreshed
    if event.refresh is None or done is None:
        return False
    return done.job_id == event.refresh.job_id and done.at != event.at


class ModelAndPrompt(NamedTuple):
    """The current profile and prompt version for understanding turns."""

    profile: str
    prompt: str


def is_covered(memory: Memory, job: Job) -> bool:
    """True if a job has this memory understood again if it is due: a turn that is not awaiting an answer anyway."""
    is_answered = memory.origin == "said" and memory.reading.status != "pending"
    return is_answered and job.mode in (None, memory.mode)


def is_of_earlier_revision(memory: Memory, job: Job, current: int) -> bool:
    """True if the turn was understood by an earlier revision than the job's and the current one."""
    return job.before_revision is not None and memory.reading.revision < min(job.before_revision, current)


def is_due_by_model(memory: Memory, today: ModelAndPrompt) -> bool:
    """True if the turn was understood by rules, or by another profile or prompt than today's.

    False for a turn about which today's prompt has had no valid answer.
    """
    reading = memory.reading
    if today.prompt in (reading.tried, reading.prompt) and (reading.tried or reading.model == UNANSWERABLE_PROFILE):
        return False
    return (reading.model, reading.prompt) != today


SupersedeState = Literal["due", "done", "refused"]
"""`due`: still to be written; `done`: written, and all turns are superseded; `refused`: a turn has changed since."""


def supersede_state(event: Distilled, stored: Memory | None, sources: Sequence[Memory | None]) -> SupersedeState:
    """Return the state of a distilled memory; `stored` is its record, `sources` are its turns' current records."""
    present = [source for source in sources if source is not None]
    if len(present) < len(event.sources) or not all(_is_unchanged(source, event) for source in present):
        return "refused"
    is_complete = stored is not None and all(source.superseded_by == stored.memory_id for source in present)
    return "done" if is_complete else "due"


def supersede_source(source: Memory, event: Distilled) -> Memory:
    return source.model_copy(
        update={
            "superseded_by": event.memory.memory_id,
            "superseded_in": event.run,
            "superseded_at": event.memory.accepted_at,
        }
    )


def restore_source(source: Memory) -> Memory:
    """Mark a turn as no longer superseded."""
    return source.model_copy(update={"superseded_by": None, "superseded_in": None, "superseded_at": None})


def can_supersede(item: Memory, older: Memory) -> bool:
    """True if `older` is current and shares the item's scope, mode, type, origin and visibility."""
    return (
        older.superseded_by is None
        and older.memory_id != item.memory_id
        and older.visibility == item.visibility
        and (older.scope, older.mode, older.type, older.origin) == (item.scope, item.mode, item.type, item.origin)
    )


def _is_unchanged(source: Memory, event: Distilled) -> bool:
    new = event.memory
    return (
        source.origin == "said"
        and source.scope == new.scope
        and source.mode == new.mode
        and source.visibility == new.visibility
        and source.content_hash == event.sources[source.memory_id]
        and source.superseded_by in (None, new.memory_id)
    )
