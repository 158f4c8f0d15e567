"""The caller of a request: by its key, or by an access token of an identity provider (OpenID Connect).

Keys are looked up by digest in a file that is read again when it changes. A broken file keeps the keys that were read
before, a file that is gone keeps none, and `is_sound` shows in `/ready`.

Tokens are JWTs in `Authorization: Bearer`; the principal is one of their claims. Guaranteed: a token of another issuer,
for another audience, expired, without signature, or signed with another algorithm is refused; no token is passed on; a
token with an unknown key id causes at most one request to the provider in `COOL_DOWN_S`.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import httpx
import jwt
from pydantic import BaseModel, Field
from starlette.datastructures import Headers

from gateway.keys.key_file import Key, KeyFile, digest_of
from gateway.service.calls import RETRY_AFTER_S, Buckets, Caller, Refused
from schemas.state.policies import Grants

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
"""Interval between checks of the file: a revoked key is refused within two seconds."""

MAX_KEY_CHARS = 256
"""Maximum characters read of a key; our keys are shorter."""

SCHEMES = ("bearer", "token")
"""Schemes of a key in `Authorization`; mem0's client library sends `Token`."""


class KeyCallers:
    """Implements `gateway.http.identity.Callers` over a file of keys and a policy."""

    def __init__(self, path: Path, policy: Grants | None, failed_logins_per_minute: float) -> None:
        """Read the file. Raises OSError, or ValueError with the reason."""
        self.path = path
        self._policy = policy
        self._failures = FailedLogins(failed_logins_per_minute)
        self._keys = _by_digest(KeyFile.read(path))
        self._stamp = _stamp(path)
        self._checked_at = time.monotonic()
        self.is_sound = True
        """False while the file is missing or can't be read."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a key. Raises Refused: `unauthenticated`, or `too_many_requests` after many failures."""
        self._reload_if_changed()
        scheme, _, token = headers.get("authorization", "").partition(" ")
        sent = token.strip() if scheme.lower() in SCHEMES else headers.get("x-api-key", "").strip()
        secret = sent[:MAX_KEY_CHARS] or None
        key = None if secret is None else self._keys.get(digest_of(secret))
        if key is not None and not key.has_expired(datetime.now(UTC)):
            return caller_for(key.id, key.principal, key.user_id, self._policy)
        if secret is not None:
            self._failures.count(address, "unknown keys")
        raise Refused("unauthenticated", "send a key of this gateway as `Authorization: Bearer ms_…`")

    def caller_by_id(self, key_id: str) -> Caller | None:
        """Return the caller of a key by its id; None if it was revoked or has expired."""
        self._reload_if_changed()
        key = next((key for key in self._keys.values() if key.id == key_id), None)
        if key is None or key.has_expired(datetime.now(UTC)):
            return None
        return caller_for(key.id, key.principal, key.user_id, self._policy)

    def reload(self) -> None:
        """Read the file again, whether it changed or not."""
        self._stamp = _stamp(self.path)
        try:
            self._keys = _by_digest(KeyFile.read(self.path))
            self.is_sound = self._stamp is not None
            if not self.is_sound:
                log.error("the file of keys is gone: no key is valid until it is there again")
        except (OSError, ValueError):
            # Without the exception: its text may contain a secret.
            log.error("the file of keys can't be read: the keys before it stay")  # noqa: TRY400
            self.is_sound = False

    def _reload_if_changed(self) -> None:
        now = time.monotonic()
        if now - self._checked_at >= LOOK_EVERY_S:
            self._checked_at = now
            if _stamp(self.path) != self._stamp:
                self.reload()


def caller_for(name: str, principal: str, own_user: str | None, policy: Grants | None) -> Caller:
    """Return the caller with the grants of its principal: none for a principal that the policy does not name."""
    grants = None if policy is None else policy.of(principal)
    return Caller(name, principal, own_user, grants)


class FailedLogins:
    """Limits failed attempts by address."""

    def __init__(self, per_minute: float) -> None:
        self._buckets = Buckets(per_minute / 60, per_minute)

    def count(self, address: str, credentials: str) -> None:
        """Count a failure of these credentials. Raises Refused, `too_many_requests`, above the limit."""
        wait_s = self._buckets.take(address)
        if wait_s > 0:
            message = f"too many {credentials} from this address"
            raise Refused("too_many_requests", message, retry_after_s=round(wait_s) or 1)


def _by_digest(file: KeyFile) -> Mapping[str, Key]:
    return {key.sha256: key for key in file.keys}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


COOL_DOWN_S = 30.0
"""Minimum distance between two requests to the provider: anyone can make up key ids."""

MAX_AGE_S = 3600.0
"""Time to live of the provider's keys, after which withdrawn keys are invalid."""

TIMEOUT_S = 5.0

LEEWAY_S = 30
"""Tolerated difference between the clocks of provider and gateway."""

MAX_TOKEN_CHARS = 16_384
"""Maximum characters read of a token; servers limit headers anyway."""

REQUIRED_CLAIMS = ["exp", "iat", "iss", "aud", "sub"]

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Signatures by a private key that only the provider has: with HS256 the public key would sign."""


class OidcSettings(BaseModel, frozen=True, extra="forbid"):
    """The setting `GATEWAY_OIDC`. Without `jwks_url` it is looked up at the issuer."""

    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    principal_claim: str = "sub"
    """The claim that names the principal of the policy file."""
    user_claim: str | None = None
    """The claim with the only user that the caller may name; None: all that its grants admit."""
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256", "EdDSA"), min_length=1)
    jwks_url: str | None = None


class SigningKeys:
    """Public keys of the provider by id, fetched on demand; they stay valid while it is away. Of one event loop."""

    def __init__(self, issuer: str, jwks_url: str | None, http: httpx.AsyncClient) -> None:
        self._issuer = issuer
        self._url = jwks_url
        self._http = http
        self._keys: dict[str | None, Any] = {}
        self._asked_at = self._fetched_at = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self, key_id: str | None) -> Any:
        """Return a public key. Raises PyJWTError for an unknown id, Refused `unavailable` if none was ever fetched."""
        if key_id not in self._keys or time.monotonic() - self._fetched_at > MAX_AGE_S:
            await self._fetch()
        if not self._keys:
            raise Refused("unavailable", "tokens can't be checked now; try again", retry_after_s=RETRY_AFTER_S)
        if key_id not in self._keys:
            raise jwt.InvalidKeyError
        return self._keys[key_id]

    async def _fetch(self) -> None:
        async with self._lock:
            if time.monotonic() - self._asked_at < COOL_DOWN_S:
                return
            self._asked_at = time.monotonic()
            try:
                key_set = jwt.PyJWKSet.from_dict(await self._get(await self._address())).keys
            except (httpx.HTTPError, jwt.PyJWTError, ValueError, KeyError, TypeError) as error:
                log.warning("the keys of the identity provider can't be read: %s", type(error).__name__)
                return
            self._keys = {key.key_id: key.key for key in key_set}
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


class OidcCallers:
    """Implements `gateway.http.identity.Callers` over tokens."""

    def __init__(
        self, settings: OidcSettings, keys: SigningKeys, policy: Grants | None, failed_logins_per_minute: float
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._policy = policy
        self._failures = FailedLogins(failed_logins_per_minute)

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a token. Raises Refused: `unauthenticated`, `too_many_requests`, `unavailable`."""
        token = token_in(headers)
        if token is None:
            raise _unauthenticated()
        with suppress(jwt.PyJWTError, ValueError, TypeError):
            claims = await self._claims(token)
            principal = _text(claims, self._settings.principal_claim)
            user = None if self._settings.user_claim is None else _text(claims, self._settings.user_claim)
            return caller_for(f"oidc:{claims['sub']}", principal, user, self._policy)
        self._failures.count(address, "invalid tokens")
        raise _unauthenticated()

    async def _claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a valid token. Raises PyJWTError, ValueError."""
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in self._settings.algorithms:
            raise jwt.InvalidAlgorithmError
        claims: dict[str, Any] = jwt.decode(
            token,
            await self._keys.find(header.get("kid")),
            algorithms=list(self._settings.algorithms),
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=LEEWAY_S,
            options={"require": REQUIRED_CLAIMS},
        )
        return claims


class KeyOrTokenCallers:
    """Implements `gateway.http.identity.Callers` over keys and tokens."""

    def __init__(self, keys: KeyCallers, tokens: OidcCallers) -> None:
        self._keys = keys
        self._tokens = tokens

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a token, or of a key. Raises Refused."""
        callers = self._keys if token_in(headers) is None else self._tokens
        return await callers.caller_of(headers, address)


def token_in(headers: Headers) -> str | None:
    """Return the JWT of a request, if it has one: a JWT has three parts, a key of this gateway one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    is_token = scheme.lower() == "bearer" and token.count(".") == 2 and len(token) <= MAX_TOKEN_CHARS
    return token.strip() if is_token else None


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the claim {name!r} is missing")
    return value


def _unauthenticated() -> Refused:
    return Refused("unauthenticated", "send an access token for this gateway as `Authorization: Bearer …`")
