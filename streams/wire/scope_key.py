"""The boundary of a record's scope, read before the record is decoded and checked. Pure.

It says whose record it is, for queues; the key of a record may be another one, or missing.
"""

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic_core import from_json

from schemas.messages.records import Record


def boundary_in(record: Record, fields: BoundaryFields = USER_BOUNDARY) -> str:
    """Return the boundary string of the record's scope; an empty one for a record that can't have one."""
    try:
        return fields.key(from_json(record.value or b"")["scope"])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return ""
