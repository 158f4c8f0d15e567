"""The scope of a deployment, made from the Pydantic model that it supplies, and the messages that carry such scopes.

A model enters, a subclass of `Scope` leaves: with all fields of the model, and all rules of scopes. Field by field it
decides what a write may say and what a read may select; so what it checks stands in its types.
"""

from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, RootModel, SerializeAsAny, create_model
from pydantic.fields import FieldInfo

from schemas.changes import Change, Issued
from schemas.scopes import BOUNDARY, VALUE_SCHEMA, Scope, Selector, exact, plain, selected

Message = TypeVar("Message", bound=BaseModel)


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
    fields: dict[str, Any] = {name: _checked(field) for name, field in model.model_fields.items()}
    parents: Any = (model, Scope)
    made: Any = create_model(model.__name__, __base__=parents, __doc__=_doc(model), **fields)
    return cast("type[Scope]", made)


@cache
def selector_of(scope: type[Scope]) -> type[Selector]:
    """The selector over a deployment's scopes: a field that is left out has its default, or must be given."""
    if scope is Scope:
        return Selector
    fields: dict[str, Any] = {name: _selecting(name, field) for name, field in scope.model_fields.items()}
    return create_model("Selector", __base__=Selector, __doc__=Selector.__doc__, **fields)


def scoped(message: type[Message], scope: type[Scope]) -> type[Message]:
    """A message that has a scope or a selector, with those of the deployment in their place."""
    if scope is Scope:
        return message
    known = message.model_fields["scope"].annotation
    own: Any = selector_of(scope) if known is Selector else scope
    return create_model(message.__name__, __base__=message, __doc__=message.__doc__, scope=(own, ...))


def scoped_issued(scope: type[Scope]) -> type[Issued]:
    """What commands have asked for, as it is read again with the deployment's scopes."""
    if scope is Scope:
        return Issued
    # The changes that are put in are made by name of the class that every deployment has.
    change: Any = scoped(Change, scope)
    changes: Any = (dict[str, SerializeAsAny[change]], Field(default_factory=dict))
    return create_model("Issued", __base__=Issued, __doc__=Issued.__doc__, changes=changes)


TAKEN = ("boundary", "fields")
"""Names that mean something else in a scope or a selector."""


def _is_model(model: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(model, type) and issubclass(model, BaseModel) and not issubclass(model, RootModel)


def _problem(model: type[BaseModel]) -> str | None:
    """Why a model can't be a scope."""
    if BOUNDARY not in model.model_fields:
        return f"it has no field {BOUNDARY}, which is the boundary of every scope"
    if decorated := ", ".join(sorted(model.__pydantic_decorators__.field_validators)):
        return f"a selector is checked by types: put {decorated} into the type, Annotated[str, AfterValidator(...)]"
    wrong = ((name, _wrong(name, field)) for name, field in model.model_fields.items())
    return next((f"{name}: {why}" for name, why in wrong if why), None)


def _wrong(name: str, field: FieldInfo) -> str | None:
    """Why a field can't be one of a scope."""
    if name in TAKEN:
        return "this name has a meaning of its own in a scope"
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    if field.annotation is not str and not (choices and all(isinstance(choice, str) for choice in choices)):
        return "a field is a str, or a Literal of strings"
    if field.alias or field.validation_alias or field.serialization_alias:
        return "a field has one name, and no alias"
    if field.default_factory is not None:
        return "a default is a value, the same for every record"
    return _refused((*choices, *_default(field)))


def _refused(values: tuple[Any, ...]) -> str | None:
    """Why one of these can't be a value of a scope: a choice and a default must be one as well."""
    for value in values:
        try:
            plain(value)
        except (TypeError, ValueError) as problem:
            return f"{value!r} can't be a value: {problem}"
    return None


def _default(field: FieldInfo) -> tuple[Any, ...]:
    return () if field.is_required() else (field.default,)


def _value(field: FieldInfo) -> Any:
    """The type of a value, as the model says it."""
    schema = VALUE_SCHEMA if field.annotation is str else Field()
    return Annotated[(field.annotation, schema, *field.metadata)]


def _checked(field: FieldInfo) -> tuple[Any, Any]:
    """A scope's field: what holds for every scope is checked at the end, as a model's own validators may change it."""
    about: dict[str, Any] = {"title": field.title, "description": field.description, "examples": field.examples}
    default = ... if field.is_required() else field.default
    return Annotated[_value(field), AfterValidator(plain)], Field(default, **about)


def _selecting(name: str, field: FieldInfo) -> tuple[Any, Any]:
    """A selector's field."""
    value: Any = _value(field)
    default = _default(field)
    if name == BOUNDARY:
        return Annotated[value, BeforeValidator(exact, json_schema_input_type=value)], (*default, ...)[0]
    some: Any = Annotated[list[value], Field(min_length=1)]
    many: Any = tuple[value, ...]
    checked = BeforeValidator(selected, json_schema_input_type=value | some | Literal["*"])
    return Annotated[many | None, Field(strict=False), checked], default or ...


def _doc(model: type[BaseModel]) -> str:
    return model.__doc__ or "The full scope of a write."
