"""Decide which turns are understood again. Pure."""

from typing import NamedTuple

from agents.rules.memory.understanding import UNANSWERABLE_PROFILE
from schemas.internal.changes import Job
from schemas.state.memories import Memory


class ModelAndPrompt(NamedTuple):
    """The profile and the prompt version that turns are understood by today."""

    profile: str
    prompt: str


def is_covered(memory: Memory, job: Job) -> bool:
    """True if a job has this memory understood again if it is due: a turn that awaits no answer already."""
    is_answered = memory.origin == "said" and memory.reading.status != "pending"
    return is_answered and job.mode in (None, memory.mode)


def is_of_earlier_revision(memory: Memory, job: Job, current: int) -> bool:
    """True if the turn was understood by an earlier revision than the job asks for, and than the current one."""
    return job.before_revision is not None and memory.reading.revision < min(job.before_revision, current)


def is_due_by_model(memory: Memory, today: ModelAndPrompt) -> bool:
    """True if the turn was understood by rules, or by another profile or prompt than today's.

    False for a turn about which today's prompt has had no valid answer.
    """
    reading = memory.reading
    if today.prompt in (reading.tried, reading.prompt) and (reading.tried or reading.model == UNANSWERABLE_PROFILE):
        return False
    return (reading.model, reading.prompt) != today
