"""Choose a turn's mode: caller, then model, then project default, user default, `general`. Pure."""

from agents.rules.modes.declaring import require_mode
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory
from schemas.state.modes import Mode, ModeDeclarations, ModeSource

ModeChoice = tuple[str, ModeSource]
"""A mode's name and the source of the choice."""


def mode_on_arrival(asked: str | None, project: str, declared: ModeDeclarations, before: Memory | None) -> ModeChoice:
    """Return a turn's mode before any model has read it: the caller's, else that of `before`, else a default.

    `before` is the memory that the turn edits: its explicit mode stays while it is declared, so that an edit undoes
    neither a correction nor a model's choice. Raises Rejected, `unknown_mode`, if the caller's mode is not declared.
    """
    if asked is not None:
        return require_mode(declared, asked, project, "mode").name, "caller"
    if before is not None and before.mode_source in ("caller", "model") and declared.find(before.mode, project):
        return before.mode, before.mode_source
    return declared.default(project)


def mode_after_answer(memory: Memory, answered: str | None, project: str, declared: ModeDeclarations) -> ModeChoice:
    """Return the mode of a memory after a model's answer; an undeclared mode is ignored.

    A mode set by the caller or a command stays. A mode renamed meanwhile is recognised by its former name.
    """
    if memory.mode_source == "caller":
        return memory.mode, memory.mode_source
    chosen = answered and (declared.find(answered, project) or _renamed(answered, project, declared))
    if chosen:
        return chosen.name, "model"
    return memory.mode, memory.mode_source


def _renamed(name: str, project: str, declared: ModeDeclarations) -> Mode | None:
    return next((one for one in declared.modes if name in one.formerly and one.project in (project, None)), None)


def with_mode_source(source: ModeSource, memory: Memory) -> Memory:
    """Change the source of the memory's mode, not the mode."""
    return memory.model_copy(update={"mode_source": source})


def with_decay(memory: Memory, declared: ModeDeclarations) -> Memory:
    """Set the memory's decay to that of its mode."""
    mode = declared.find(memory.mode, memory.scope[PROJECT_FIELD])
    return memory if mode is None else memory.model_copy(update={"decay": mode.decay})
