"""Callers by a key of this gateway or by a token of an identity provider, whichever a request brings."""

from starlette.datastructures import Headers

from gateway.keys.key_callers import KeyCallers
from gateway.keys.oidc import OidcCallers, token_in
from gateway.service.calls import Caller


class KeyOrTokenCallers:
    """Implements `gateway.http.identity.Callers` over both."""

    def __init__(self, keys: KeyCallers, tokens: OidcCallers) -> None:
        self._keys = keys
        self._tokens = tokens

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a token, or of a key. Raises Refused."""
        callers = self._keys if token_in(headers) is None else self._tokens
        return await callers.caller_of(headers, address)
