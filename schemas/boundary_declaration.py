"""The declaration of the boundary in a deployment's scope model: `boundary_fields`, an attribute of its class.

Enters: a model. Leaves: its boundary fields in declared order, or why they can't be a boundary.
"""

from collections.abc import Collection
from typing import Any, ClassVar

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic import BaseModel

from schemas.scopes import PROJECT_FIELD, USER_FIELD

BOUNDARY_ATTRIBUTE = "boundary_fields"
"""The class attribute of a model that declares the boundary."""

DECLARATION = f'{BOUNDARY_ATTRIBUTE}: ClassVar[tuple[str, ...]] = ("organization_id", "user_id")'
"""An example of it, for errors."""


def declared_boundary(model: type[BaseModel]) -> BoundaryFields:
    """Return the boundary fields of a sound model: those that it declares, else the user."""
    return BoundaryFields(_declared(model))


def problem_of_declaration(model: type[BaseModel]) -> str | None:
    """Return why a model has no boundary."""
    declared = _declared(model)
    if BOUNDARY_ATTRIBUTE in model.model_fields:
        return f"{BOUNDARY_ATTRIBUTE} is a declaration and no field: annotate it as {DECLARATION}"
    if not isinstance(declared, tuple) or not declared or not all(isinstance(one, str) for one in declared):
        return f"{BOUNDARY_ATTRIBUTE} is a tuple of field names, such as {DECLARATION}, not {declared!r}"
    if declared is USER_BOUNDARY and USER_FIELD not in model.model_fields:
        return f"it has no field {USER_FIELD}, the boundary of a model that declares none: {DECLARATION}"
    return _problem_of_names(declared, model)


def class_attributes(boundary: BoundaryFields, fields: Collection[str]) -> dict[str, Any]:
    """Return what a model made of `fields` has besides: its boundary, and no user that it would inherit.

    An inherited field that becomes an attribute of the class is a field no more.
    """
    without_user = {} if USER_FIELD in fields else {USER_FIELD: (ClassVar[None], None)}
    return {BOUNDARY_ATTRIBUTE: (ClassVar[BoundaryFields], boundary), **without_user}


def _declared(model: type[BaseModel]) -> Any:
    return getattr(model, BOUNDARY_ATTRIBUTE, USER_BOUNDARY)


def _problem_of_names(names: tuple[str, ...], model: type[BaseModel]) -> str | None:
    if missing := [name for name in names if name not in model.model_fields]:
        return f"{BOUNDARY_ATTRIBUTE} names {missing[0]!r}, which is no field of the model"
    if len({*names}) < len(names):
        return f"{BOUNDARY_ATTRIBUTE} names a field twice: {', '.join(names)}"
    if PROJECT_FIELD in names:
        return f"{BOUNDARY_ATTRIBUTE} names {PROJECT_FIELD}, but every boundary has projects of its own"
    return None
