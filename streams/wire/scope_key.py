"""The boundary of a record's scope, read before the record is decoded and checked. Pure.

It says whose record it is, for queues; the key of a record may be another one, or missing.
"""

from functools import cache

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic_core import SchemaValidator, core_schema, from_json

from schemas.messages.decoding import MAX_VALUES, count_values
from schemas.messages.records import Record

MAX_PARSED_BYTES = 64 * 1024
"""Of a longer value nothing but the boundary becomes an object: this runs on the event loop for each record."""


@cache
def _scope_reader(fields: tuple[str, ...]) -> SchemaValidator:
    """Return what reads these fields of a scope, and passes over everything else in a JSON text."""
    named = {field: core_schema.typed_dict_field(core_schema.str_schema()) for field in fields}
    scope = core_schema.typed_dict_schema(named)
    return SchemaValidator(core_schema.typed_dict_schema({"scope": core_schema.typed_dict_field(scope)}))


def boundary_in(record: Record, fields: BoundaryFields = USER_BOUNDARY) -> str:
    """Return the boundary string of the record's scope; an empty one for a record that can't have one."""
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
