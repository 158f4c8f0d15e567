"""The callers that the settings admit: by keys, tokens or either; None: every caller may do everything."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import httpx

from gateway.http.identity import Callers
from gateway.keys.callers import KeyCallers, KeyOrTokenCallers, OidcCallers, SigningKeys
from gateway.keys.key_file import KeyFile
from gateway.settings import GatewaySettings
from schemas.authorizers import open_grants


class Identification(NamedTuple):
    """`callers` of requests; `keys` to read again on a signal; `running` is entered while the app runs."""

    callers: Callers | None
    keys: KeyCallers | None
    running: tuple[Callable[[], AbstractAsyncContextManager[Any]], ...]


def check_key_file(settings: GatewaySettings) -> None:
    """End the process with the reason if there is no file of keys where the settings name one.

    At the start alone: once a file is gone later, no key is valid, and `/ready` fails.
    """
    path = settings.gateway_keys
    if path is not None and not path.exists():
        sys.exit(
            f"setting MODESTREAM_GATEWAY_KEYS: there is no file {path}; "
            "`modestream key add --principal NAME` makes it with its first key"
        )


def without_policy(settings: GatewaySettings) -> list[str]:
    """Return a sentence if callers with a key or a token are administrators, for want of a policy."""
    if settings.authorization is not None or settings.authorizer is not None:
        return []
    who = []
    if settings.gateway_keys is not None:
        keys = KeyFile.read(settings.gateway_keys).keys
        if number := sum(key.user_id is None for key in keys):
            who.append(f"{number} of {len(keys)} keys, those without a user,")
    if settings.gateway_oidc is not None and settings.gateway_oidc.user_claim is None:
        who.append("all tokens, as GATEWAY_OIDC has no user_claim,")
    return [NO_POLICY.format(" and ".join(who))] if who else []


NO_POLICY = "MODESTREAM_AUTHORIZATION is not set: {} are administrators: they may read, change and forget all users"
"""Warning at every start."""


def identification_of(settings: GatewaySettings) -> Identification:
    """Build what identifies callers. Raises OSError or ValueError for a file that can't be read."""
    policy = open_grants(settings.authorization, settings.authorizer, settings.scope_model)
    failures = settings.gateway_limits.failed_logins_per_minute
    keys = None if settings.gateway_keys is None else KeyCallers(settings.gateway_keys, policy, failures)
    oidc = settings.gateway_oidc
    if oidc is None:
        return Identification(keys, keys, ())
    http = httpx.AsyncClient(follow_redirects=False)
    tokens = OidcCallers(oidc, SigningKeys(oidc.issuer, oidc.jwks_url, http), policy, failures)
    callers = tokens if keys is None else KeyOrTokenCallers(keys, tokens)

    @asynccontextmanager
    async def closing_http() -> AsyncIterator[None]:
        async with http:
            yield

    return Identification(callers, keys, (closing_http,))
