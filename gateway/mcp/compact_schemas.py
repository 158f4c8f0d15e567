"""JSON Schemas as short as they can be: a list of tools is in the prompt of every conversation. Pure.

Guaranteed: no titles, no references, no null beside another type: a field without a value is left out.
"""

from typing import Any

from pydantic import BaseModel

from gateway.service.wire import Json


def compact_schema(model: type[BaseModel]) -> Json:
    """Return the JSON Schema of a model, with its definitions in their places."""
    schema = model.model_json_schema()
    compact = _compact(schema, schema.pop("$defs", {}))
    compact.pop("description", None)
    return {"properties": {}, **compact}


def _compact(node: Any, definitions: Json) -> Any:
    if isinstance(node, list):
        return [_compact(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        definition = definitions[node["$ref"].rpartition("/")[2]]
        # The description of a definition is for readers of the code.
        node = {**definition, "description": None, **_without(node, "$ref")}
    if "anyOf" in node:
        (only,) = (one for one in node["anyOf"] if one != {"type": "null"})
        node = {**only, **_without(node, "anyOf")}
    return {name: _compact(value, definitions) for name, value in node.items() if not _is_idle(name, value)}


def _is_idle(name: str, value: object) -> bool:
    return value is None or (name == "title" and isinstance(value, str))


def _without(node: Json, name: str) -> Json:
    return {one: value for one, value in node.items() if one != name}
