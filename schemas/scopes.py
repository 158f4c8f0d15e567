"""Ownership of memories: the full scope of a write, the selector of a read, and the boundary key of both.

The boundary key is the Kafka key of all events of a boundary, so that they are in one partition.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields, boundary_key
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_serializer
from pydantic_core import PydanticCustomError

MAX_VALUE_LENGTH = 256
"""Maximum characters of one scope value (docs/contract.md)."""

SELECTOR_REFUSED = "selector_refused"
"""The Pydantic error type of a refused selector, and the contract's error code."""

ANY_VALUE = "*"
"""In a selector: any value of the field. Never a value of a scope."""

USER_FIELD = "user_id"
"""The boundary of scope models that declare none; others may have no such field."""

ScopeFields = Mapping[str, str]
"""The values of a scope by field."""

PROJECT_FIELD = "project_id"
"""The project field of every scope model; modes can be declared for one project."""

BOUNDARY_ATTRIBUTE = "boundary_fields"
"""Class attribute in which a model declares its boundary."""

DECLARATION = f'{BOUNDARY_ATTRIBUTE}: ClassVar[tuple[str, ...]] = ("organization_id", "user_id")'
"""An example of it for error messages."""


def check_scope_value(value: str) -> str:
    """Refuse an invalid scope value; applied to every scope model."""
    if not 1 <= len(value) <= MAX_VALUE_LENGTH:
        raise ValueError(f"a value has 1 to {MAX_VALUE_LENGTH} characters")
    return check_name(value)


def check_name(value: str) -> str:
    """Refuse values that no scope can have, whatever their length."""
    if value == ANY_VALUE:
        raise ValueError(f"{ANY_VALUE!r} is not a value; it selects any value in a retrieve request")
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in value):
        raise ValueError("control characters are not allowed")
    return value


VALUE_SCHEMA = Field(
    min_length=1,
    max_length=MAX_VALUE_LENGTH,
    json_schema_extra={"not": {"anyOf": [{"const": ANY_VALUE}, {"pattern": r"[\u0000-\u001f\u007f-\u009f]"}]}},
)
"""The rules of `check_scope_value` as JSON Schema."""

ScopeValue = Annotated[str, VALUE_SCHEMA, AfterValidator(check_scope_value)]


UserName = Annotated[str, Field(min_length=1), AfterValidator(check_name)]
"""A user as paths and keys name it: the user id; of several boundary fields the canonical string, such as `acme/u1`."""


class Scope(BaseModel, extra="forbid", frozen=True, strict=True):
    """The full scope of a write."""

    boundary_fields: ClassVar[BoundaryFields] = USER_BOUNDARY
    """The boundary fields, in the order of the key."""

    user_id: ScopeValue
    project_id: ScopeValue = "default"

    @property
    def boundary(self) -> str:
        """The canonical boundary string, such as `u1`."""
        return boundary_key([getattr(self, field) for field in self.boundary_fields])

    @model_serializer
    def _all_values(self) -> dict[str, str]:
        """Serialise every field of the deployment's model, even if a message names only this class."""
        return {name: getattr(self, name) for name in type(self).model_fields}


def exact_value_check(field: str) -> Callable[[object], object]:
    """Return the check of a selector's boundary field: it refuses a value that spans several boundaries."""
    single, several = "one value", "one for each"
    if field == USER_FIELD:
        single, several = "one user", "one request for each user"
    message = f"{field} is a boundary: a request names {single} exactly; send {several}"

    def require_exact(value: object) -> object:
        if value == ANY_VALUE or isinstance(value, list):
            raise PydanticCustomError(SELECTOR_REFUSED, message)
        return value

    return require_exact


def parse_selected(value: object) -> object:
    """Return the values that a selector's field admits, None for any."""
    if value == ANY_VALUE:
        return None
    if not isinstance(value, list):
        return (value,)
    if not value:
        raise ValueError("an empty list selects nothing; leave the field out for its default")
    return tuple(value)


_GivenValues = ScopeValue | Annotated[list[ScopeValue], Field(min_length=1)] | Literal["*"]
SelectedValues = Annotated[
    Annotated[tuple[ScopeValue, ...], Field(fail_fast=True)] | None,
    Field(strict=False),
    BeforeValidator(parse_selected, json_schema_input_type=_GivenValues),
]


def scope_of_user(boundary: str, fields: Iterable[str], boundary_fields: BoundaryFields) -> dict[str, str]:
    """Return the scope of the whole boundary: any value in all other `fields` of its scopes.

    >>> scope_of_user("u1", ("user_id", "project_id"), USER_BOUNDARY)
    {'user_id': 'u1', 'project_id': '*'}
    """
    return {**dict.fromkeys(fields, ANY_VALUE), **boundary_fields.values_of_key(boundary)}


class Selector(BaseModel, extra="forbid", frozen=True, strict=True):
    """The scopes of a read: the boundary is one value; other fields are one value, a list of values, or `*`."""

    boundary_fields: ClassVar[BoundaryFields] = USER_BOUNDARY

    user_id: Annotated[ScopeValue, BeforeValidator(exact_value_check(USER_FIELD), json_schema_input_type=ScopeValue)]
    project_id: SelectedValues = ("default",)

    @property
    def boundary(self) -> str:
        return boundary_key([getattr(self, field) for field in self.boundary_fields])

    def fields(self) -> dict[str, tuple[str, ...] | None]:
        """Return the admitted values of each scope field, None for any."""
        boundary = {field: (getattr(self, field),) for field in self.boundary_fields}
        return {**{field: getattr(self, field) for field in type(self).model_fields}, **boundary}


def declared_boundary(model: type[BaseModel]) -> BoundaryFields:
    """Return the boundary fields of a valid model: those that it declares, else the user."""
    return BoundaryFields(_declared(model))


def problem_of_declaration(model: type[BaseModel]) -> str | None:
    """Return why a model's declaration is not a boundary; None for a valid one."""
    declared = _declared(model)
    if BOUNDARY_ATTRIBUTE in model.model_fields:
        return f"{BOUNDARY_ATTRIBUTE} is a declaration and no field: annotate it as {DECLARATION}"
    if not isinstance(declared, tuple) or not declared or not all(isinstance(name, str) for name in declared):
        return f"{BOUNDARY_ATTRIBUTE} is a tuple of field names, such as {DECLARATION}, not {declared!r}"
    if declared is USER_BOUNDARY and USER_FIELD not in model.model_fields:
        return f"it has no field {USER_FIELD}, the boundary of a model that declares none: {DECLARATION}"
    return _problem_of_names(declared, model)


def class_attributes(boundary: BoundaryFields, fields: Collection[str]) -> dict[str, Any]:
    """Return class attributes of a model made of `fields`: its boundary, and None for an inherited user field."""
    without_user = {} if USER_FIELD in fields else {USER_FIELD: (ClassVar[None], None)}
    return {BOUNDARY_ATTRIBUTE: (ClassVar[BoundaryFields], boundary), **without_user}


def _declared(model: type[BaseModel]) -> Any:
    return getattr(model, BOUNDARY_ATTRIBUTE, USER_BOUNDARY)


def _problem_of_names(names: tuple[str, ...], model: type[BaseModel]) -> str | None:
    if missing := [name for name in names if name not in model.model_fields]:
        return f"{BOUNDARY_ATTRIBUTE} names {missing[0]!r}, which is not a field of the model"
    if len({*names}) < len(names):
        return f"{BOUNDARY_ATTRIBUTE} names a field twice: {', '.join(names)}"
    if PROJECT_FIELD in names:
        return f"{BOUNDARY_ATTRIBUTE} names {PROJECT_FIELD}, but every boundary has its own projects"
    return None
