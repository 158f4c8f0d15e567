"""All shapes of one deployment, made with the fields of its scope model; the components of the document."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from schemas.messages.assemble import AssembleRequest
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import Turn
from schemas.scope_models import selector_of
from schemas.scopes import Scope

from gateway.http.shapes import BodyReader, QueryReader, scope_fields_of, shape_of

REF = "#/components/schemas/{model}"


class Shapes:
    """The bodies and queries of the HTTP door."""

    def __init__(self, scope: type[Scope]) -> None:
        selector = selector_of(scope)
        self.scope_fields = scope_fields_of(scope)
        self.turn = self._body(
            shape_of("TurnBody", Turn, scope, "A turn to remember.", [EXAMPLE_TURN])
        )
        self.search = self._body(
            shape_of("SearchBody", RetrieveRequest, selector, "A search.", [{"query": "where do we deploy?"}])
        )
        self.context = self._body(
            shape_of("ContextBody", AssembleRequest, selector, "A context to assemble.", [{"query": "fix the login"}])
        )

    def _body(self, shape: type[BaseModel]) -> BodyReader:
        return BodyReader(shape, self.scope_fields)

    def _query(self, shape: type[BaseModel]) -> QueryReader:
        return QueryReader(shape, self.scope_fields)

    def components(self) -> dict[str, Any]:
        """Return the JSON Schemas of all bodies."""
        bodies = [one.shape for one in vars(self).values() if isinstance(one, BodyReader)]
        _, schema = models_json_schema([(one, "validation") for one in bodies], ref_template=REF)
        return dict(schema.get("$defs", {}))


EXAMPLE_TURN = {
    "conversation_id": "c1",
    "role": "user",
    "speaker": "Ana",
    "content": "The deploy target is fly.io now.",
    "occurred_at": "2026-03-01T09:30:00Z",
}
