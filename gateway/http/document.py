"""The OpenAPI document: the framework's, with the shapes of bodies and answers, problems and keys."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from modestream_client.operations import AnyResult
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.http.answers import ANSWERS, FURTHER
from gateway.http.contract import REF, Shapes
from gateway.http.identity import OPEN_PATHS
from gateway.http.links import add_links
from gateway.http.problems import MEDIA_TYPE

STREAMED = {"listen_to_events": "text/event-stream", "export_turns": "application/x-ndjson"}
"""Operations whose answers are no JSON object."""

DOCUMENT_PATH = "/openapi.json"

DESCRIPTION = """\
Conversation memory: remember turns, search them, list them, assemble contexts for a model.

A write answers when it is durable and can be found. Errors are `application/problem+json`; `code` is for programs.
Names in paths are percent-encoded once. Send a turn again with the same `turn_id` after a 503 or 504: it is one turn.
"""


def document_app(app: FastAPI, shapes: Shapes, bodies: Sequence[type[BaseModel]] = ()) -> None:
    """Serve the document, built and encoded once, at the first request for it; `bodies` are those of other doors."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, shapes, bodies)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    # The framework's own route encodes it for every request, 2.5 ms, and it is served without a key.
    encoded = cache(lambda: JSONResponse(app.openapi()).body)

    async def answer(_: Request) -> Response:
        return Response(encoded(), media_type="application/json")

    app.add_route(DOCUMENT_PATH, answer, include_in_schema=False)


def _build(app: FastAPI, shapes: Shapes, bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, description=DESCRIPTION, routes=app.routes
    )
    components = document.setdefault("components", {})
    schemas = shapes.components() | _schemas({*ANSWERS.values(), *FURTHER}) | _schemas(bodies)
    components["schemas"] = _portable(schemas)
    components["responses"] = {"Problem": {"description": "An error.", "content": {MEDIA_TYPE: _schema("Problem")}}}
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A key, `ms_…`; none on a keyless gateway."},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    document["security"] = [{"bearer": []}, {"key": []}, {}]
    for path, item in document["paths"].items():
        for operation in item.values():
            operation["parameters"] = _portable(operation.get("parameters", []))
            _describe(operation, is_open=path in OPEN_PATHS)
    return document


def _portable(schema: Any) -> Any:
    """Return a schema with patterns that every reader of JSON Schema knows: the end of a text is `$`."""
    if isinstance(schema, dict):
        return {
            name: value.replace(r"\z", "$") if name == "pattern" and isinstance(value, str) else _portable(value)
            for name, value in schema.items()
        }
    return [_portable(one) for one in schema] if isinstance(schema, list) else schema


def _describe(operation: dict[str, Any], *, is_open: bool) -> None:
    name, responses = operation["operationId"], operation["responses"]
    responses.pop("422", None)
    if "202" in responses:
        responses["202"]["content"] = {"application/json": _schema("RunningJob")}
    if name == "add_turns":
        either = {"schema": {"anyOf": [_schema("StoredTurn")["schema"], _schema("StoredTurns")["schema"]]}}
        responses["201"] = _answer("Stored.", either)
        responses["200"] = _answer("Nothing new was stored.", either)
    elif name in STREAMED:
        responses["200"] = {"description": "A stream.", "content": {STREAMED[name]: {"schema": {"type": "string"}}}}
    else:
        responses["200"] = _answer("The result.", _schema(ANSWERS.get(name, AnyResult).__name__))
    add_links(name, responses)
    responses["default"] = {"$ref": "#/components/responses/Problem"}
    if is_open:
        operation["security"] = []


def _schemas(models: Collection[type[BaseModel]]) -> dict[str, Any]:
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schema = models_json_schema([(model, "validation") for model in ordered], ref_template=REF)
    return dict(schema.get("$defs", {}))


def _schema(component: str) -> dict[str, Any]:
    return {"schema": {"$ref": REF.format(model=component)}}


def _answer(description: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": content}}
