"""ASGI middleware: refuse foreign hosts, and pages of other origins.

A name rebound to loopback arrives with its own name in `Host`: 421. A page of another origin sends `Origin`, or
`Sec-Fetch-Site: cross-site`: 403. Programs send neither, and pass.
"""

import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.http.problems import problem
from gateway.service.calls import Refused

log = logging.getLogger(__name__)

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""Hosts that are served by default; any port, as forwarded ports differ."""

DEFAULT_PORTS = {"http": "80", "https": "443"}

SAME_SITES = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for our own pages, and for a typed address."""


class AllowedHosts:
    """The hosts under which this gateway is reached: `host` for any port, or `host:port`."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self.hosts = frozenset(host.lower() for host in (*LOOPBACK_HOSTS, *hosts))

    def admits(self, host: str) -> bool:
        """True for the value of a header `Host` that is served.

        >>> AllowedHosts(["memory.example"]).admits("memory.example:8443")
        True
        """
        name, _ = _parted(host.lower())
        return host.lower() in self.hosts or name in self.hosts

    def admits_origin(self, origin: str, host: str) -> bool:
        """True for an origin that equals the requested host, or is set."""
        parts = urlsplit(origin.lower())
        if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
            return False
        if parts.netloc == host.lower():
            return True
        name, port = _parted(parts.netloc)
        public = self.hosts - set(LOOPBACK_HOSTS)
        return name in public or f"{name}:{port or DEFAULT_PORTS[parts.scheme]}" in public


class CheckHosts:
    """Answers 421 and 403, and passes everything else on."""

    def __init__(self, app: ASGIApp, allowed: AllowedHosts) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        if refused is not None:
            await problem(refused, str(scope.get("request_id", "-")))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers) -> Refused | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allowed.admits(hosts[0]):
            log.warning("refused host %.100r: is it one of GATEWAY_HOSTS?", ",".join(hosts))
            return Refused("misdirected", "this host is not served here; the operator sets the names of this gateway")
        origins = headers.getlist("origin")
        if not all(self._allowed.admits_origin(origin, hosts[0]) for origin in origins):
            return Refused("not_allowed", "pages of this origin may not call this gateway")
        if not origins and headers.get("sec-fetch-site", "none") not in SAME_SITES:
            return Refused("not_allowed", "pages of other sites may not call this gateway")
        return None


def _parted(host: str) -> tuple[str, str]:
    """Split a host from its port; an IPv6 address has colons within brackets."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and not host.endswith("]") else (host, "")
