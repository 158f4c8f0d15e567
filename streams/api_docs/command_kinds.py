"""The commands with their arguments, as models for the documents."""

from collections.abc import Mapping
from typing import Any, Literal, Union

from pydantic import BaseModel, Field, RootModel, create_model

from schemas.commands import (
    Command,
    DeclareCategory,
    DeclareMode,
    DeleteMode,
    Forget,
    GetCategory,
    GetMemory,
    ListCategories,
    RenameMode,
    RunJob,
    SetDefaultMode,
    SetIntention,
    SetMemoryMode,
)
from schemas.jobs import JOB_KINDS

COMMAND_ARGUMENTS: Mapping[str, type[BaseModel] | None] = {
    "declare_category": DeclareCategory,
    "declare_mode": DeclareMode,
    "delete_mode": DeleteMode,
    "forget": Forget,
    "get_category": GetCategory,
    "get_intention": None,
    "get_memory": GetMemory,
    "health": None,
    "list_categories": ListCategories,
    "list_modes": None,
    "rename_mode": RenameMode,
    "set_default_mode": SetDefaultMode,
    "set_intention": SetIntention,
    "set_memory_mode": SetMemoryMode,
    "suggest_modes": None,
    **dict.fromkeys(JOB_KINDS, RunJob),
}
"""The argument model of every command; None for a command without arguments."""


def command_union(name: str, command: type[Command]) -> type[BaseModel]:
    """Create the model `name`, the union of all commands with their arguments."""
    each = [_with_arguments(name, command, known, model) for known, model in sorted(COMMAND_ARGUMENTS.items())]
    union: Any = Union[tuple(each)]  # noqa: UP007 - their number is not fixed
    parent: Any = RootModel[union]
    made: type[BaseModel] = create_model(name, __base__=parent, __doc__=Command.__doc__)
    return made


def _with_arguments(name: str, command: type[Command], known: str, model: type[BaseModel] | None) -> type[BaseModel]:
    fields: dict[str, Any] = {"command": (Literal[known], ...)}
    if model is not None:
        is_needed = any(field.is_required() for field in model.model_fields.values()) or model is Forget
        fields["arguments"] = (model, ... if is_needed else Field(default_factory=model))
    return create_model(f"{name}_{known}", __base__=command, __doc__=f"The command `{known}`.", **fields)
