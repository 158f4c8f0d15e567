"""Settings of the gateway: environment variables with the prefix `MODESTREAM_`, or the same names in a `.env` file.

Callers are admitted by keys, tokens or either; without both every caller may do everything.
"""

import ipaddress
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, BeforeValidator, SecretStr, model_validator
from pydantic_settings import NoDecode

from gateway.connection_settings import ConnectionSettings, parted
from gateway.http.identity import Callers
from gateway.http.limits import Limits
from gateway.keys.callers import KeyCallers, KeyOrTokenCallers, OidcCallers, OidcSettings, SigningKeys
from gateway.keys.key_file import KeyFile
from schemas.state.policies import open_grants

DEFAULT_PORT = 8080

MIN_SECRET_CHARACTERS = 32
"""Shorter secrets of cookies can be guessed: a signed cookie tells whether a guess was right."""


def long_enough(secret: SecretStr) -> SecretStr:
    """Return a secret. Raises ValueError for one that is too short."""
    if len(secret) < MIN_SECRET_CHARACTERS:
        raise ValueError(f"a secret has at least {MIN_SECRET_CHARACTERS} characters, such as of `openssl rand -hex 32`")
    return secret


def networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return addresses and networks as they are. Raises ValueError for what is neither."""
    for text in texts:
        try:
            ipaddress.ip_network(text)
        except ValueError as problem:
            raise ValueError(f"{problem}; give addresses or networks, such as 10.0.0.0/8") from None
    return texts


class GatewaySettings(ConnectionSettings):
    """Each field is read from `MODESTREAM_<NAME>`; a wrong one is refused at the start."""

    authorization: Path | None = None
    """The file of grants to principals, the same as the worker's."""

    authorizer: str | None = None
    """A function in place of that file, the same as the worker's."""

    gateway_bind: str = f"127.0.0.1:{DEFAULT_PORT}"
    """Address and port to listen on; other than loopback needs keys or tokens."""

    gateway_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(parted)] = ()
    """Public names of this gateway, `host` or `host:port`, parted by commas; loopback is served in any case."""

    gateway_keys: Path | None = None
    """A file of keys; without it and without tokens: loopback only, where every caller may do everything."""

    gateway_oidc: OidcSettings | None = None
    """Access tokens of an identity provider: JSON."""

    gateway_cookie_secret: Annotated[SecretStr, AfterValidator(long_enough)] | None = None
    """Signs the cookies of the pages, 32 characters or more; several gateways behind one address need the same. None: a
    new one each start."""

    gateway_trusted_proxies: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(parted), AfterValidator(networks)
    ] = ()
    """Addresses and networks of proxies whose `X-Forwarded-For` is believed, parted by commas."""

    gateway_metrics_bind: str | None = None
    """Address and port of `/metrics`, which needs no key; None: it is served nowhere."""

    gateway_audit_log: Path | None = None
    """A file for the audit log, of this gateway alone; None: its lines are in the other log only."""

    gateway_imports: Path | None = None
    """A folder for exports that are being imported: a gateway that starts again goes on with them, and knows which dead
    letters were dismissed. None: a temporary one, and both end with the gateway."""

    gateway_mem0: bool = False
    """Serve mem0's shape under `/mem0`."""

    openai_upstream: str | None = None
    """URL of the provider behind OpenAI's address, such as `https://api.openai.com/v1`; None: not served."""

    openai_upstream_key_env: str | None = None
    """The environment variable with the provider's key; None: it needs none."""

    gateway_limits: Limits = Limits()
    """Bounds and rates: JSON."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return bind_address(self.gateway_bind)

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Host and port of the metrics; None for nowhere."""
        if self.gateway_metrics_bind is None:
            return None
        return bind_address(self.gateway_metrics_bind, "GATEWAY_METRICS_BIND")

    @property
    def openai_upstream_key(self) -> str | None:
        return None if self.openai_upstream_key_env is None else os.environ.get(self.openai_upstream_key_env)

    @model_validator(mode="after")
    def _has_provider(self) -> Any:
        if self.openai_upstream is None:
            return self
        parts = urlsplit(self.openai_upstream)
        is_address = parts.scheme in ("http", "https") and parts.hostname
        if not is_address or parts.query or parts.fragment or parts.username is not None:
            raise ValueError("OPENAI_UPSTREAM: give an address such as https://api.openai.com/v1")
        if self.openai_upstream_key_env is not None and not self.openai_upstream_key:
            name = self.openai_upstream_key_env
            raise ValueError(f"OPENAI_UPSTREAM_KEY_ENV: the environment has no variable {name}")
        return self

    @model_validator(mode="after")
    def _is_safe(self) -> Any:
        host, _ = self.address
        _ = self.metrics_address
        if self.gateway_keys is None and self.gateway_oidc is None and not is_loopback(host):
            raise ValueError(
                f"GATEWAY_BIND: {self.gateway_bind} is reachable by others: set GATEWAY_KEYS or GATEWAY_OIDC, "
                "or bind to 127.0.0.1"
            )
        return self


def bind_address(text: str, name: str = "GATEWAY_BIND") -> tuple[str, int]:
    """Part `host:port`; `name` is the setting. Raises ValueError.

    >>> bind_address("[::1]:8080")
    ('::1', 8080)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{name}: {text} is not host:port, such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """True for `localhost` and addresses of the loopback interface."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
