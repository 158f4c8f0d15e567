"""From a record's bytes to a validated message, or to the error of the contract that says what is wrong."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from schemas.failures import ErrorCode, Rejected
from schemas.scopes import SELECTOR_REFUSED

MAX_FIELD_NAME_CHARS = 80
"""Characters of one name in an error's field: a sender may invent names of megabytes."""

UNION_MEMBERS = ("str", "int", "float", "bool")
"""What Pydantic puts at the end of a location for the member of a union that was tried."""

MessageT = TypeVar("MessageT", bound=BaseModel)


def decode(value: bytes | None, kinds: Mapping[str, type[MessageT]]) -> MessageT:
    """Validate a record's value against the model that its `schema` names.

    Raises Rejected: `invalid_json`, `unknown_schema`, or what the model objects to, with its field.
    """
    given = _object(value)
    kind = _kind(given)
    if kind is None or kind not in kinds:
        known = ", ".join(sorted(kinds))
        raise Rejected("unknown_schema", f"schema {str(kind)[:80]!r} is not known here; known are: {known}", "schema")
    return _validated(kinds[kind], value or b"", given)


def _validated(model: type[MessageT], value: bytes, given: dict[str, Any]) -> MessageT:
    try:
        return model.model_validate_json(value)
    except ValidationError as problem:
        if b"null" not in value:
            raise to_rejected(problem) from None
        drop_nulls(given, problem)
    return validate_json(model, to_json(given))


def drop_nulls(given: dict[str, Any], problem: ValidationError) -> None:
    """Take away the nulls that a model objects to: where a field may be left out, a null is as good.

    Of a required field it stays an error, which then says that the field is missing.
    """
    for error in problem.errors(include_url=False, include_context=False):
        if error["input"] is None and error["type"] != "extra_forbidden":
            _leave_out(given, error["loc"])


def validate_json(model: type[MessageT], value: bytes) -> MessageT:
    """Validate JSON against one model. Raises Rejected with the first error and its dotted field."""
    try:
        return model.model_validate_json(value)
    except ValidationError as problem:
        raise to_rejected(problem) from None


def to_rejected(problem: ValidationError) -> Rejected:
    """The contract's error for the first thing that a model objects to."""
    first = problem.errors(include_url=False, include_context=False)[0]
    return Rejected(_code(first), first["msg"], _field(first))


def _leave_out(given: Any, path: tuple[int | str, ...]) -> None:
    """Take away the null on a path, which may end in names of Pydantic's own."""
    for part in path:
        if not isinstance(given, dict) or part not in given:
            return
        if given[part] is None:
            del given[part]
            return
        given = given[part]


def _object(value: bytes | None) -> dict[str, Any]:
    if value is None:
        raise Rejected("invalid_json", "the record has no value; a JSON object was expected")
    try:
        parsed = from_json(value, allow_inf_nan=False)
    except ValueError as problem:
        raise Rejected("invalid_json", f"the value is no valid JSON in UTF-8: {problem}") from None
    if not isinstance(parsed, dict):
        raise Rejected("invalid_json", f"a JSON object was expected, not {type(parsed).__name__}")
    return parsed


def _kind(message: dict[str, Any]) -> str | None:
    kind = message.get("schema")
    return kind if isinstance(kind, str) else None


def _code(error: ErrorDetails) -> ErrorCode:
    if error["type"] == "extra_forbidden" and error["loc"][:1] == ("scope",):
        return "unknown_scope_field"
    if error["type"] in ("string_too_long", "too_long") and error["loc"][:1] != ("scope",):
        return "too_large"
    return "selector_refused" if error["type"] == SELECTOR_REFUSED else "invalid_value"


def _field(error: ErrorDetails) -> str:
    """The dotted path, without the names of union members that Pydantic puts at the end of a location."""
    parts = [str(part)[:MAX_FIELD_NAME_CHARS] for part in error["loc"]]
    if len(parts) > 1 and parts[-1] in UNION_MEMBERS:
        parts.pop()
    return ".".join(part for part in parts if part.isidentifier() or part.isdigit())
