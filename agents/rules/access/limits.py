"""Limits of a single request. Pure."""

from dataclasses import dataclass
from math import prod

from schemas.failures import Rejected
from schemas.messages.assemble import AssembleRequest
from schemas.messages.lists import ListRequest
from schemas.messages.maps import MapRequest
from schemas.messages.retrieval import RetrieveRequest

SelectorRequest = RetrieveRequest | AssembleRequest | ListRequest | MapRequest
"""A request with a selector."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """`max_scopes`: scopes that one selector may list; `top_k`: hits of one reply."""

    max_scopes: int = 1000
    top_k: int = 100

    def check(self, request: SelectorRequest) -> None:
        """Raise Rejected for a request beyond the limits."""
        listed = {name: len(values) for name, values in request.scope.fields().items() if values is not None}
        asked = prod(listed.values())
        if asked > self.max_scopes:
            message = f"a selector may list at most {self.max_scopes} scopes; this one lists {asked}"
            raise Rejected("selector_refused", message, "scope." + max(listed, key=listed.__getitem__))
        if isinstance(request, RetrieveRequest) and request.top_k > self.top_k:
            raise Rejected("invalid_value", f"top_k is at most {self.top_k}", "top_k")
