"""Which mode a turn gets, and why (DESIGN §6): caller, then model, then project default, user default, `general`."""

from agents.rules.modes.declaring import require_mode
from schemas.memories import Memory
from schemas.modes import Mode, ModeDeclarations, ModeSource
from schemas.scopes import PROJECT_FIELD

ModeChoice = tuple[str, ModeSource]
"""A mode's name, and who decided."""


def mode_on_arrival(asked: str | None, project: str, declared: ModeDeclarations, before: Memory | None) -> ModeChoice:
    """The mode of a turn that arrives, before any model has read it: the caller's, else what stands, else a default.

    `before` is the memory that the turn replaces the text of: its mode stands while it is declared, so that an edit
    undoes neither a correction nor a model's choice. Raises Rejected `unknown_mode` where the caller's is not declared.
    """
    if asked is not None:
        return require_mode(declared, asked, project, "mode").name, "caller"
    if before is not None and before.mode_source in ("caller", "model") and declared.find(before.mode, project):
        return before.mode, before.mode_source
    return declared.default(project)


def mode_after_answer(memory: Memory, answered: str | None, project: str, declared: ModeDeclarations) -> ModeChoice:
    """The mode of a memory once a model has answered. One outside the declared list is no answer.

    What the caller said, or a command, stays. A mode that was renamed meanwhile is known by its former name.
    """
    if memory.mode_source == "caller":
        return memory.mode, memory.mode_source
    chosen = answered and (declared.find(answered, project) or _renamed(answered, project, declared))
    if chosen:
        return chosen.name, "model"
    return memory.mode, memory.mode_source


def _renamed(name: str, project: str, declared: ModeDeclarations) -> Mode | None:
    return next(
        (one for one in declared.modes if name in one.formerly and one.project in (project, None)),
        None,
    )


def with_mode_source(source: ModeSource, memory: Memory) -> Memory:
    """The memory in the mode that it is in, now because of somebody else's choice."""
    return memory.model_copy(update={"mode_source": source})


def with_decay(memory: Memory, declared: ModeDeclarations) -> Memory:
    """The memory as fast to fade as its mode is declared to be."""
    mode = declared.find(memory.mode, memory.scope[PROJECT_FIELD])
    return memory if mode is None else memory.model_copy(update={"decay": mode.decay})
