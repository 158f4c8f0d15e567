"""The public keys of an identity provider: fetched when the first token comes, kept, and fetched again for a new one.

Guaranteed: a token with an unknown key id causes one request to the provider in `COOL_DOWN_S` at most; while the
provider is away the keys that are known stay valid.
"""

import asyncio
import logging
import time
from typing import Any

import httpx
import jwt

from gateway.service.failures import RETRY_AFTER_S, Refused

log = logging.getLogger(__name__)

COOL_DOWN_S = 30.0
"""Seconds between two requests to the provider: key ids can be made up."""

MAX_AGE_S = 3600.0
"""Seconds after which the keys are fetched again: one that the provider has withdrawn is no longer valid."""

TIMEOUT_S = 5.0


class SigningKeys:
    """Keys by their id. Belongs to one event loop."""

    def __init__(self, issuer: str, jwks_url: str | None, http: httpx.AsyncClient) -> None:
        self._issuer = issuer
        self._url = jwks_url
        self._http = http
        self._keys: dict[str | None, Any] = {}
        self._asked_at = self._fetched_at = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self, key_id: str | None) -> Any:
        """Return a public key. Raises PyJWTError if the provider has none of this id, Refused `unavailable`."""
        if key_id not in self._keys or time.monotonic() - self._fetched_at > MAX_AGE_S:
            await self._fetch()
        if not self._keys:
            raise Refused("unavailable", "tokens can't be checked just now", retry_after_s=RETRY_AFTER_S)
        if key_id not in self._keys:
            raise jwt.InvalidKeyError
        return self._keys[key_id]

    async def _fetch(self) -> None:
        async with self._lock:
            if time.monotonic() - self._asked_at < COOL_DOWN_S:
                return
            self._asked_at = time.monotonic()
            try:
                found = jwt.PyJWKSet.from_dict(await self._get(await self._address())).keys
            except (httpx.HTTPError, jwt.PyJWTError, ValueError, KeyError, TypeError) as error:
                log.warning("the keys of the identity provider can't be read: %s", type(error).__name__)
                return
            self._keys = {one.key_id: one.key for one in found}
            self._fetched_at = time.monotonic()

    async def _address(self) -> str:
        if self._url is None:
            document = await self._get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
            if document["issuer"] != self._issuer:
                raise ValueError("the document is of another issuer")
            self._url = str(document["jwks_uri"])
        return self._url

    async def _get(self, url: str) -> Any:
        answer = await self._http.get(url, timeout=TIMEOUT_S)
        return answer.raise_for_status().json()
