"""Access tokens of an identity provider: which are callers, and which are refused."""

import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.keys import callers as key_callers
from gateway.keys.callers import OidcCallers, OidcSettings, SigningKeys
from gateway.service.calls import Refused
from schemas.state.policies import Policy

ISSUER, AUDIENCE = "https://login.example", "modestream"
POLICY = Policy.model_validate({"principals": {"ana": [{"user_id": "u1", "may": ["read"]}]}})


class Provider:
    """An identity provider with one key at a time."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_away = False
        self.issuer = ISSUER
        self.rotate("first")

    def rotate(self, key_id: str) -> None:
        self.key_id, self.key = key_id, rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, algorithm: str = "RS256", key: Any = None, kid: str | None = None, **changes: Any) -> str:
        """Sign a token; a claim of None is left out."""
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "iat": now, "exp": now + 60} | changes
        known = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(known, key or self.key, algorithm, headers={"kid": kid or self.key_id})

    def app(self) -> Starlette:
        """Serve the discovery document and the keys."""
        return Starlette(
            routes=[Route("/.well-known/openid-configuration", self._discover), Route("/keys", self._keys)]
        )

    async def _discover(self, _: Request) -> Response:
        self.asked.append("discovery")
        return JSONResponse({"issuer": self.issuer, "jwks_uri": f"{ISSUER}/keys"})

    async def _keys(self, _: Request) -> Response:
        self.asked.append("keys")
        if self.is_away:
            return Response(status_code=503)
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return JSONResponse({"keys": [{**key, "kid": self.key_id, "alg": "RS256", "use": "sig"}]})


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def http(provider: Provider) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(provider.app())) as client:
        yield client


def callers(http: httpx.AsyncClient, **changes: Any) -> OidcCallers:
    settings = OidcSettings(issuer=ISSUER, audience=AUDIENCE, **changes)
    return OidcCallers(settings, SigningKeys(ISSUER, None, http), POLICY, 1000)


def bearing(token: str) -> Headers:
    return Headers({"authorization": f"Bearer {token}"})


async def refusal(known: OidcCallers, token: str) -> str:
    with pytest.raises(Refused) as refused:
        await known.caller_of(bearing(token), "address")
    return str(refused.value.code)


async def test_claim_names_the_principal_and_its_grants(http: httpx.AsyncClient, provider: Provider) -> None:
    caller = await callers(http).caller_of(bearing(provider.token()), "address")
    assert caller.principal == "ana"
    assert caller.own_user is None
    assert caller.grants == POLICY.principals["ana"]


async def test_principal_without_grants_may_do_nothing(http: httpx.AsyncClient, provider: Provider) -> None:
    assert (await callers(http).caller_of(bearing(provider.token(sub="eve")), "address")).grants == ()


async def test_other_claims_can_name_principal_and_user(http: httpx.AsyncClient, provider: Provider) -> None:
    known = callers(http, principal_claim="group", user_claim="login")
    caller = await known.caller_of(bearing(provider.token(group="ana", login="u7")), "address")
    assert caller.principal == "ana"
    assert caller.own_user == "u7"
    for missing in ({"login": "u7"}, {"group": "ana"}, {"group": ["ana"], "login": "u7"}, {"group": "", "login": "u7"}):
        assert await refusal(known, provider.token(**missing)) == "unauthenticated"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"aud": "another"},
        {"iss": "https://evil.example"},
        {"sub": None},
        {"exp": None},
        {"iat": None},
        {"aud": None},
        {"nbf": 4_000_000_000},
        {"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)},
    ],
)
async def test_token_that_is_not_for_this_gateway_is_refused(
    http: httpx.AsyncClient, provider: Provider, changes: dict[str, Any]
) -> None:
    assert await refusal(callers(http), provider.token(**changes)) == "unauthenticated"


async def test_token_without_the_providers_signature_is_refused(http: httpx.AsyncClient, provider: Provider) -> None:
    header, claims, signature = provider.token().split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none","kid":"first"}').decode().rstrip("=")
    # The public key as a secret: what a library that trusts the header would take.
    shared = jwt.encode({"sub": "ana"}, "x" * 64, "HS256", headers={"kid": "first"})
    for token in (
        f"{unsigned}.{claims}.",
        f"{header}.{claims}.",
        f"{header}.{claims}.{signature[::-1]}",
        shared,
        "a.b.c",
    ):
        assert await refusal(callers(http), token) == "unauthenticated"


async def test_keys_are_fetched_once_and_again_for_a_new_one(
    http: httpx.AsyncClient, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = callers(http)
    for _ in range(3):
        await known.caller_of(bearing(provider.token()), "address")
    assert provider.asked == ["discovery", "keys"]
    provider.rotate("second")
    assert await refusal(known, provider.token()) == "unauthenticated"
    assert provider.asked == ["discovery", "keys"], "made-up key ids cause no request within the pause"
    monkeypatch.setattr(key_callers, "COOL_DOWN_S", 0.0)
    assert (await known.caller_of(bearing(provider.token()), "address")).principal == "ana"


async def test_provider_that_is_away_keeps_what_is_known(
    http: httpx.AsyncClient, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_callers, "COOL_DOWN_S", 0.0)
    provider.is_away = True
    known = callers(http)
    assert await refusal(known, provider.token()) == "unavailable"
    provider.is_away = False
    await known.caller_of(bearing(provider.token()), "address")
    provider.is_away = True
    assert await refusal(known, provider.token(kid="made-up")) == "unauthenticated"
    assert (await known.caller_of(bearing(provider.token()), "address")).principal == "ana"


async def test_document_of_another_issuer_gives_no_keys(http: httpx.AsyncClient, provider: Provider) -> None:
    provider.issuer = "https://evil.example"
    assert await refusal(callers(http), provider.token()) == "unavailable"


async def test_many_invalid_tokens_of_one_address_are_slowed_down(http: httpx.AsyncClient, provider: Provider) -> None:
    settings = OidcSettings(issuer=ISSUER, audience=AUDIENCE)
    known = OidcCallers(settings, SigningKeys(ISSUER, None, http), None, 2)
    codes = [await refusal(known, provider.token(exp=1)) for _ in range(3)]
    assert codes == ["unauthenticated", "unauthenticated", "too_many_requests"]
    assert (await known.caller_of(bearing(provider.token()), "address")).principal == "ana"


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_shared_secrets_are_no_setting(algorithm: str) -> None:
    with pytest.raises(ValueError, match="algorithms"):
        OidcSettings.model_validate({"issuer": ISSUER, "audience": AUDIENCE, "algorithms": [algorithm]})
