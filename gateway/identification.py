"""The callers that the settings admit: by keys, by tokens, by either; None: every caller may do everything."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import httpx

from gateway.http.identity import Callers
from gateway.keys.either import KeyOrTokenCallers
from gateway.keys.jwks import SigningKeys
from gateway.keys.key_callers import KeyCallers
from gateway.keys.oidc import OidcCallers
from gateway.settings import GatewaySettings
from schemas.state.policies import policy_of


class Identification(NamedTuple):
    """`callers` of requests; `keys` to read again on a signal; `running` is entered while the app runs."""

    callers: Callers | None
    keys: KeyCallers | None
    running: tuple[Callable[[], AbstractAsyncContextManager[Any]], ...]


def identification_of(settings: GatewaySettings) -> Identification:
    """Build what tells callers. Raises OSError or ValueError for a file that can't be read."""
    policy = None
    if settings.authorization is not None:
        policy = policy_of(settings.scope_model).model_validate_json(settings.authorization.read_bytes())
    failures = settings.gateway_limits.failed_logins_per_minute
    keys = None if settings.gateway_keys is None else KeyCallers(settings.gateway_keys, policy, failures)
    oidc = settings.gateway_oidc
    if oidc is None:
        return Identification(keys, keys, ())
    http = httpx.AsyncClient(follow_redirects=False)
    tokens = OidcCallers(oidc, SigningKeys(oidc.issuer, oidc.jwks_url, http), policy, failures)
    callers = tokens if keys is None else KeyOrTokenCallers(keys, tokens)
    return Identification(callers, keys, (lambda: _closing(http),))


@asynccontextmanager
async def _closing(http: httpx.AsyncClient) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await http.aclose()
