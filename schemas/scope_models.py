"""Deployment-specific scopes, built from a Pydantic model, and the messages that carry them.

Enters: a model. Leaves: a subclass of `Scope` with the model's fields and all rules of scopes. The selector has the
same fields and value types, so a model must express its checks in its types.
"""

import importlib
from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, RootModel, SerializeAsAny, create_model
from pydantic.fields import FieldInfo

from schemas.internal.changes import Change, IssuedCommands
from schemas.scopes import (
    VALUE_SCHEMA,
    Scope,
    Selector,
    check_scope_value,
    class_attributes,
    declared_boundary,
    exact_value_check,
    parse_selected,
    problem_of_declaration,
)

MessageT = TypeVar("MessageT", bound=BaseModel)


def load_scope(path: object) -> object:
    """Return the scope made from the model at `package.module.Model`; the built-in one for an empty path.

    Raises ValueError if the model can't be imported or can't be a scope.
    """
    if not isinstance(path, str):
        return path
    return deployed_scope(import_path(path)) if path else Scope


def import_path(path: str) -> Any:
    """Import the object of a dotted path. Raises ValueError with the reason."""
    module, _, name = path.replace(":", ".").rpartition(".")
    if not module:
        raise ValueError(f"{path!r} is not a dotted path such as package.module.Model")
    try:
        named: Any = getattr(importlib.import_module(module), name)
    # The import of a module may raise anything.
    except Exception as problem:
        raise ValueError(f"{path!r} can't be imported: {problem}") from problem
    return named


def deployed_scope(model: object) -> type[Scope]:
    """Build a deployment's scope from its model.

    The boundary is the model's `boundary_fields`, else `user_id`. `project_id` is added if the model lacks it. Raises
    ValueError with the field and the reason if the model can't be a scope.
    """
    if model is Scope:
        return Scope
    if not _is_model(model):
        raise ValueError(f"{model!r} is not a Pydantic model with fields")
    if problem := problem_of_declaration(model) or _problem_of_model(model):
        raise ValueError(f"{model.__name__}: {problem}")
    fields: dict[str, Any] = {name: _scope_field(field) for name, field in model.model_fields.items()}
    fields |= class_attributes(declared_boundary(model), fields)
    parents: Any = (model, Scope)
    about = model.__doc__ or Scope.__doc__
    made: Any = create_model(model.__name__, __base__=parents, __doc__=about, **fields)
    return cast("type[Scope]", made)


@cache
def selector_of(scope: type[Scope]) -> type[Selector]:
    """Build the selector over a deployment's scopes; fields have the scope's defaults, or are required."""
    if scope is Scope:
        return Selector
    boundary = scope.boundary_fields
    fields: dict[str, Any] = {
        name: _selector_field(name, field, is_boundary=name in boundary) for name, field in scope.model_fields.items()
    }
    fields |= class_attributes(boundary, fields)
    return create_model("Selector", __base__=Selector, __doc__=Selector.__doc__, **fields)


def bind_scope(message: type[MessageT], scope: type[Scope]) -> type[MessageT]:
    """Replace the scope or selector of a message by the deployment's."""
    if scope is Scope:
        return message
    is_read = message.model_fields["scope"].annotation is Selector
    own: Any = selector_of(scope) if is_read else scope
    return create_model(message.__name__, __base__=message, __doc__=message.__doc__, scope=(own, REQUIRED))


def bind_issued_scope(scope: type[Scope]) -> type[IssuedCommands]:
    """Bind the table value `IssuedCommands` to the deployment's scopes."""
    if scope is Scope:
        return IssuedCommands
    # A command makes a plain `Change`, not an instance of this class: `SerializeAsAny` still serialises it.
    change: Any = bind_scope(Change, scope)
    changes: Any = (dict[str, SerializeAsAny[change]], Field(default_factory=dict))
    return create_model("Issued", __base__=IssuedCommands, __doc__=IssuedCommands.__doc__, changes=changes)


OPERATOR_USER_ID = "modestream-operator"
"""The user in the scope of commands about a whole deployment; it has no memories."""


def some_scope(scope: type[Scope], value: str = OPERATOR_USER_ID) -> dict[str, str]:
    """Return a scope for a command that concerns no user: `value`, or the first choice, in each required field."""
    required = {name: field for name, field in scope.model_fields.items() if field.is_required()}
    return {name: next(iter(_choices(field)), value) for name, field in required.items()}


def _choices(field: FieldInfo) -> tuple[str, ...]:
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


RESERVED_NAMES = ("boundary", "fields")

REQUIRED: Any = ...
"""Pydantic's default of a required field."""


def _is_model(model: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(model, type) and issubclass(model, BaseModel) and not issubclass(model, RootModel)


def _problem_of_model(model: type[BaseModel]) -> str | None:
    if decorated := ", ".join(sorted(model.__pydantic_decorators__.field_validators)):
        return f"selectors run no field validators: put {decorated} into the type, Annotated[str, AfterValidator(...)]"
    problems = ((name, _problem_of_field(name, field)) for name, field in model.model_fields.items())
    return next((f"{name}: {problem}" for name, problem in problems if problem), None)


def _problem_of_field(name: str, field: FieldInfo) -> str | None:
    if name in RESERVED_NAMES:
        return "this name is reserved in a scope"
    choices = _choices(field)
    are_strings = bool(choices) and all(isinstance(choice, str) for choice in choices)
    if field.annotation is not str and not are_strings:
        return "a field is a str, or a Literal of strings"
    if field.alias or field.validation_alias or field.serialization_alias:
        return "a field has one name, and no alias"
    if field.default_factory is not None:
        return "a default is a value, the same for every record"
    # Why one of these, a field's choices and its default, can't be a scope value.
    values = choices if field.is_required() else (*choices, field.default)
    for value in values:
        try:
            check_scope_value(value)
        except (TypeError, ValueError) as problem:
            return f"{value!r} can't be a value: {problem}"
    return None


def _value(field: FieldInfo) -> Any:
    """Return the type of a single value with the model's checks, and the JSON Schema of every value."""
    schema = VALUE_SCHEMA if field.annotation is str else Field()
    return Annotated[(field.annotation, schema, *field.metadata)]


def _scope_field(field: FieldInfo) -> tuple[Any, Any]:
    """Return type and default of a scope's field.

    `check_scope_value` runs last, as the model's own validators may change a value.
    """
    about: dict[str, Any] = {"title": field.title, "description": field.description, "examples": field.examples}
    default = REQUIRED if field.is_required() else field.default
    return Annotated[_value(field), AfterValidator(check_scope_value)], Field(default, **about)


def _selector_field(name: str, field: FieldInfo, *, is_boundary: bool) -> tuple[Any, Any]:
    """Return type and default of a selector's field: one value for the boundary; else one value, a list, or `*`."""
    value: Any = _value(field)
    if is_boundary:
        exact = Annotated[value, BeforeValidator(exact_value_check(name), json_schema_input_type=value)]
        return exact, REQUIRED if field.is_required() else field.default
    accepted: Any = value | Annotated[list[value], Field(min_length=1)] | Literal["*"]
    admitted: Any = Annotated[tuple[value, ...], Field(fail_fast=True)] | None
    selected = Annotated[
        admitted, Field(strict=False), BeforeValidator(parse_selected, json_schema_input_type=accepted)
    ]
    return selected, REQUIRED if field.is_required() else (field.default,)
