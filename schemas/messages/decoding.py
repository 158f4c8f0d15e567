"""Decode a record's bytes into a validated message, or into an error of the wire contract."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from schemas.failures import ErrorCode, Rejected
from schemas.messages.turns import MAX_METADATA_BYTES
from schemas.scopes import SELECTOR_REFUSED

MAX_FIELD_NAME_CHARS = 80
"""Characters of one name in an error's field: names come from the sender and may have megabytes."""

MAX_SCOPE_FIELDS = 64
"""Maximum fields of a scope that are examined: no model has as many, and each unknown one would be a separate error."""

MAX_VALUES = 200_000
"""Maximum values of one JSON text: a list of 100 turns with 2,000 values each."""

MAX_SELECTED_VALUES = 100_000
"""Maximum values of a list in a selector, whatever the deployment's limit of combinations: they take 50 ms."""

MAX_LISTED_VALUES = 10_000
"""Maximum values of any other list; all lists of the contract are shorter."""

FREE_FIELD_BYTES = {
    "metadata": MAX_METADATA_BYTES,
    "filters": MAX_METADATA_BYTES,
    "arguments": 1024 * 1024,
    "response_format": 64 * 1024,
}
"""Maximum bytes as JSON of free-form fields; the arguments of a command have at most 300 KB."""

UNION_MEMBERS = ("str", "int", "float", "bool")
"""What Pydantic appends to an error location for the union member that it tried."""

MessageT = TypeVar("MessageT", bound=BaseModel)


def decode_object(value: bytes | None, model: type[MessageT]) -> tuple[MessageT, dict[str, Any]]:
    """Validate a JSON object without a `schema` against one model; return it validated, and as it was sent.

    Raises Rejected: `invalid_json`, a field that the model does not have, or the first validation error with its field.
    """
    message = parse_object(value)
    if (unknown := next((name for name in message if name not in model.model_fields), None)) is not None:
        # Before the validation, which makes an error for each of them.
        raise Rejected("invalid_value", _no_such_field(model), shown_name(unknown))
    return _validated(model, value or b"", message), message


def decode(value: bytes | None, kinds: Mapping[str, type[MessageT]]) -> MessageT:
    """Validate a record's value against the model that its `schema` names.

    Raises Rejected: `invalid_json`, `unknown_schema`, or the first validation error with its field.
    """
    message = parse_object(value)
    named = message.get("schema")
    kind = named if isinstance(named, str) else None
    if kind is None or kind not in kinds:
        names = ", ".join(sorted(kinds))
        raise Rejected("unknown_schema", f"schema {str(kind)[:80]!r} is not known here; known are: {names}", "schema")
    return _validated(kinds[kind], value or b"", message)


def count_values(text: bytes) -> int:
    """Return the number of `,`, `[` and `{` in a JSON text, a bound for its values that costs no parsing.

    Beyond MAX_VALUES those within strings are not counted.

    >>> count_values(b'{"a": [1, 2], "b": "x, y"}')
    5
    """
    marks = (b",", b"[", b"{")
    at_most = sum(map(text.count, marks))
    if at_most <= MAX_VALUES:
        return at_most
    # Escaped quotes do not end a string.
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 4 * MAX_VALUES:
        # Too many strings, at most two a value with its name: splitting the text at each would cost memory.
        return at_most
    outside = b"".join(bare.split(b'"')[::2])
    return sum(map(outside.count, marks))


def _validated(model: type[MessageT], value: bytes, message: dict[str, Any]) -> MessageT:
    _check_sizes(model, value, message)
    try:
        return model.model_validate_json(value)
    except ValidationError as problem:
        if b"null" not in value:
            raise to_rejected(problem, model) from None
        drop_nulls(message, problem)
    return validate_json(model, to_json(message))


def _check_sizes(model: type[BaseModel], value: bytes, message: dict[str, Any]) -> None:
    """Raise Rejected for a message with far too many values, before each of them is examined."""
    for name in model.model_fields.keys() & message.keys():
        field = message[name]
        if isinstance(field, list) and len(field) > MAX_LISTED_VALUES:
            raise Rejected("too_large", f"a list has at most {MAX_LISTED_VALUES} values", name)
        most = FREE_FIELD_BYTES.get(name)
        if most is not None and len(value) > most and len(to_json(field)) > most:
            raise Rejected("too_large", f"{name} has more than {most} bytes", name)
    scope = message.get("scope")
    if not isinstance(scope, dict):
        return
    if len(scope) > MAX_SCOPE_FIELDS:
        raise Rejected("unknown_scope_field", f"a scope has no {len(scope)} fields", "scope")
    for name, field in scope.items():
        if isinstance(field, list) and len(field) > MAX_SELECTED_VALUES:
            reason = f"a selector may list at most {MAX_SELECTED_VALUES} values"
            raise Rejected("selector_refused", reason, f"scope.{name[:MAX_FIELD_NAME_CHARS]}")


def drop_nulls(message: dict[str, Any], problem: ValidationError) -> None:
    """Remove the nulls that a model rejects: for an optional field a null means absent.

    For a required field the next validation reports that it is missing. Those of filters stay, and are refused: an
    empty filter must never mean everything.
    """
    for error in problem.errors(include_url=False, include_context=False):
        if error["input"] is None and error["type"] != "extra_forbidden" and "filters" not in error["loc"][:-1]:
            _drop_null(message, error["loc"])


def validate_json(model: type[MessageT], value: bytes) -> MessageT:
    """Validate JSON against one model. Raises Rejected with the first error and its dotted field."""
    try:
        return model.model_validate_json(value)
    except ValidationError as problem:
        raise to_rejected(problem, model) from None


def to_rejected(problem: ValidationError, model: type[BaseModel]) -> Rejected:
    """Return the contract's error for the first validation error of a model."""
    first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    # Without the union member that Pydantic appends.
    parts = [shown_name(str(part)) for part in first["loc"]]
    if len(parts) > 1 and parts[-1] in UNION_MEMBERS:
        parts.pop()
    message = first["msg"]
    if first["type"] == "extra_forbidden":
        message = _no_such_field(model) if len(parts) == 1 else "there is no such field"
    return Rejected(_code(first), message, ".".join(part for part in parts if part))


def _no_such_field(model: type[BaseModel]) -> str:
    names = ", ".join(field.alias or name for name, field in model.model_fields.items())
    return f"there is no such field; there are: {names or 'none'}"


def _drop_null(node: Any, path: tuple[int | str, ...]) -> None:
    """Remove the null on a path, which may end in names that Pydantic adds."""
    for part in path:
        if not isinstance(node, dict) or part not in node:
            return
        if node[part] is None:
            del node[part]
            return
        node = node[part]


def parse_object(value: bytes | None) -> dict[str, Any]:
    """Parse JSON in UTF-8 that must be an object. Raises Rejected, `invalid_json`."""
    if value is None:
        raise Rejected("invalid_json", "a JSON object was expected, but the value is missing")
    try:
        parsed = from_json(value, allow_inf_nan=False)
    except ValueError as problem:
        raise Rejected("invalid_json", f"the value is not valid JSON in UTF-8: {problem}") from None
    if not isinstance(parsed, dict):
        raise Rejected("invalid_json", f"a JSON object was expected, not {type(parsed).__name__}")
    return parsed


def _code(error: ErrorDetails) -> ErrorCode:
    if error["type"] == "extra_forbidden" and error["loc"][:1] == ("scope",):
        return "unknown_scope_field"
    if error["type"] in ("string_too_long", "too_long") and error["loc"][:1] != ("scope",):
        return "too_large"
    return "selector_refused" if error["type"] == SELECTOR_REFUSED else "invalid_value"


def shown_name(name: str) -> str:
    """Return the beginning of a field's name for an error; empty if it is not a name."""
    shown = name[:MAX_FIELD_NAME_CHARS]
    return shown if shown.isidentifier() or shown.isdigit() else ""
