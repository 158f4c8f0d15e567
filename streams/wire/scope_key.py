"""The boundary of a record's scope, read before the record is decoded and validated. Pure.

It names the record's user, for queues; the key of a record may differ, or be missing.
"""

from functools import cache

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic_core import SchemaValidator, core_schema, from_json

from schemas.messages.decoding import MAX_VALUES, count_values
from schemas.messages.records import Record

MAX_PARSED_BYTES = 64 * 1024
"""Of a longer value only the boundary becomes objects: this runs on the event loop for each record."""


@cache
def _scope_reader(fields: tuple[str, ...]) -> SchemaValidator:
    """Return a reader of these fields of a scope, which skips everything else in a JSON text."""
    named = {field: core_schema.typed_dict_field(core_schema.str_schema()) for field in fields}
    scope = core_schema.typed_dict_schema(named)
    return SchemaValidator(core_schema.typed_dict_schema({"scope": core_schema.typed_dict_field(scope)}))


def boundary_in(record: Record, fields: BoundaryFields = USER_BOUNDARY) -> str:
    """Return the boundary string of the record's scope; empty if it can't have one."""
    value = record.value or b""
    try:
        if len(value) <= MAX_PARSED_BYTES:
            return fields.key(from_json(value)["scope"])
        # It will be refused.
        if len(value) > MAX_VALUES and count_values(value) > MAX_VALUES:
            return ""
        return fields.key(_scope_reader(tuple(fields)).validate_json(value)["scope"])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return ""
