"""The caller of a request, by an access token of an identity provider (OpenID Connect).

Enters: `Authorization: Bearer` with a JWT. Leaves: the caller whose principal one of its claims names. Guaranteed: a
token of another issuer, for another audience, expired, without signature, or signed with another algorithm is refused;
no token is passed on.
"""

from contextlib import suppress
from typing import Any, Literal

import jwt
from pydantic import BaseModel, Field
from starlette.datastructures import Headers

from gateway.keys.callers import FailedLogins, caller_for
from gateway.keys.jwks import SigningKeys
from gateway.service.calls import Caller
from gateway.service.failures import Refused
from schemas.state.policies import Policy

LEEWAY_S = 30
"""Seconds by which the clocks of provider and gateway may differ."""

MAX_TOKEN_CHARS = 16_384
"""Characters of a token that is looked at; servers bound headers anyway."""

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
    """The claim with the only user whose memories the caller may name; None: those that its grants admit."""
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256", "EdDSA"), min_length=1)
    jwks_url: str | None = None


class OidcCallers:
    """Implements `gateway.http.identity.Callers` over tokens."""

    def __init__(
        self, settings: OidcSettings, keys: SigningKeys, policy: Policy | None, failed_logins_per_minute: float
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
            return self._caller(await self._claims(token))
        self._failures.count(address, "invalid tokens")
        raise _unauthenticated()

    async def _claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a valid token. Raises PyJWTError, ValueError."""
        wanted = self._settings
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in wanted.algorithms:
            raise jwt.InvalidAlgorithmError
        claims: dict[str, Any] = jwt.decode(
            token,
            await self._keys.find(header.get("kid")),
            algorithms=list(wanted.algorithms),
            audience=wanted.audience,
            issuer=wanted.issuer,
            leeway=LEEWAY_S,
            options={"require": REQUIRED_CLAIMS},
        )
        return claims

    def _caller(self, claims: dict[str, Any]) -> Caller:
        """Return the caller that the claims name. Raises ValueError if one of them is missing."""
        principal = _text(claims, self._settings.principal_claim)
        user = None if self._settings.user_claim is None else _text(claims, self._settings.user_claim)
        return caller_for(f"oidc:{claims['sub']}", principal, user, self._policy)


def token_in(headers: Headers) -> str | None:
    """Return the JWT that was sent, which has three parts; None for none, as for a key of this gateway."""
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
