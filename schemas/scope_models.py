"""The scope of a deployment, made from the Pydantic model that it supplies, and the messages that carry such scopes.

A model enters, a subclass of `Scope` leaves: with all fields of the model, and all rules of scopes. A selector is made
of the same fields, each with the same type for a single value; so what a model checks stands in its types.
"""

from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, RootModel, SerializeAsAny, create_model
from pydantic.fields import FieldInfo

from schemas.changes import Change, IssuedCommands
from schemas.scopes import (
    BOUNDARY_FIELD,
    VALUE_SCHEMA,
    Scope,
    Selector,
    check_scope_value,
    parse_selected,
    require_exact,
)

MessageT = TypeVar("MessageT", bound=BaseModel)


def deployed_scope(model: object) -> type[Scope]:
    """Make a deployment's scope from its model, which needs a field `user_id`, the boundary.

    `project_id`, where modes are declared, is `Scope`'s own where the model has none. Raises ValueError for what can't
    be a scope, with the field and why.
    """
    if model is Scope:
        return Scope
    if not _is_model(model):
        raise ValueError(f"{model!r} is no Pydantic model with fields")
    if problem := _problem(model):
        raise ValueError(f"{model.__name__}: {problem}")
    fields: dict[str, Any] = {name: _scope_field(field) for name, field in model.model_fields.items()}
    parents: Any = (model, Scope)
    made: Any = create_model(model.__name__, __base__=parents, __doc__=model.__doc__ or Scope.__doc__, **fields)
    return cast("type[Scope]", made)


@cache
def selector_of(scope: type[Scope]) -> type[Selector]:
    """The selector over a deployment's scopes: a field that is left out has its default, or must be given."""
    if scope is Scope:
        return Selector
    fields: dict[str, Any] = {name: _selector_field(name, field) for name, field in scope.model_fields.items()}
    return create_model("Selector", __base__=Selector, __doc__=Selector.__doc__, **fields)


def bind_scope(message: type[MessageT], scope: type[Scope]) -> type[MessageT]:
    """A message that has a scope or a selector, with those of the deployment in their place."""
    if scope is Scope:
        return message
    is_read = message.model_fields["scope"].annotation is Selector
    own: Any = selector_of(scope) if is_read else scope
    return create_model(message.__name__, __base__=message, __doc__=message.__doc__, scope=(own, REQUIRED))


def bind_issued_scope(scope: type[Scope]) -> type[IssuedCommands]:
    """What commands have asked for, as it is read again with the deployment's scopes."""
    if scope is Scope:
        return IssuedCommands
    # A command makes a plain `Change`, which is none of this class: `SerializeAsAny` writes it all the same.
    change: Any = bind_scope(Change, scope)
    changes: Any = (dict[str, SerializeAsAny[change]], Field(default_factory=dict))
    return create_model("Issued", __base__=IssuedCommands, __doc__=IssuedCommands.__doc__, changes=changes)


RESERVED_NAMES = ("boundary", "fields")
"""Names that mean something else in a scope or a selector."""

REQUIRED: Any = ...
"""In place of a field's default: Pydantic's sign that there is none, and the field must be given."""


def _is_model(model: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(model, type) and issubclass(model, BaseModel) and not issubclass(model, RootModel)


def _problem(model: type[BaseModel]) -> str | None:
    """Why a model can't be a scope."""
    if BOUNDARY_FIELD not in model.model_fields:
        return f"it has no field {BOUNDARY_FIELD}, which is the boundary of every scope"
    if decorated := ", ".join(sorted(model.__pydantic_decorators__.field_validators)):
        return f"a selector is checked by types: put {decorated} into the type, Annotated[str, AfterValidator(...)]"
    wrong = ((name, _wrong(name, field)) for name, field in model.model_fields.items())
    return next((f"{name}: {why}" for name, why in wrong if why), None)


def _wrong(name: str, field: FieldInfo) -> str | None:
    """Why a field can't be one of a scope."""
    if name in RESERVED_NAMES:
        return "this name has a meaning of its own in a scope"
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    are_strings = bool(choices) and all(isinstance(choice, str) for choice in choices)
    if field.annotation is not str and not are_strings:
        return "a field is a str, or a Literal of strings"
    if field.alias or field.validation_alias or field.serialization_alias:
        return "a field has one name, and no alias"
    if field.default_factory is not None:
        return "a default is a value, the same for every record"
    return _refused(choices if field.is_required() else (*choices, field.default))


def _refused(values: tuple[Any, ...]) -> str | None:
    """Why one of these, a field's choices and its default, can't be a value of a scope."""
    for value in values:
        try:
            check_scope_value(value)
        except (TypeError, ValueError) as problem:
            return f"{value!r} can't be a value: {problem}"
    return None


def _value(field: FieldInfo) -> Any:
    """The type of a single value with what the model checks of it, and what a JSON Schema says of every value."""
    schema = VALUE_SCHEMA if field.annotation is str else Field()
    return Annotated[(field.annotation, schema, *field.metadata)]


def _scope_field(field: FieldInfo) -> tuple[Any, Any]:
    """Type and default of a scope's field.

    `check_scope_value`, which holds for every scope, comes last, as a model's own validators may change a value.
    """
    about: dict[str, Any] = {"title": field.title, "description": field.description, "examples": field.examples}
    default = REQUIRED if field.is_required() else field.default
    return Annotated[_value(field), AfterValidator(check_scope_value)], Field(default, **about)


def _selector_field(name: str, field: FieldInfo) -> tuple[Any, Any]:
    """Type and default of a selector's field: the boundary as in a scope, any other as the values that are admitted."""
    if name == BOUNDARY_FIELD:
        return _exact_value(field), REQUIRED if field.is_required() else field.default
    return _selected_values(field), REQUIRED if field.is_required() else (field.default,)


def _exact_value(field: FieldInfo) -> Any:
    value: Any = _value(field)
    return Annotated[value, BeforeValidator(require_exact, json_schema_input_type=value)]


def _selected_values(field: FieldInfo) -> Any:
    """The type of several values or any, which a request gives as one value, a list of some, or `*`."""
    value: Any = _value(field)
    given: Any = value | Annotated[list[value], Field(min_length=1)] | Literal["*"]
    admitted: Any = tuple[value, ...] | None
    return Annotated[admitted, Field(strict=False), BeforeValidator(parse_selected, json_schema_input_type=given)]
