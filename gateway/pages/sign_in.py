"""Signing in with a key: a signed cookie that holds the id of the key, not the key, for twelve hours.

Guaranteed: a key that is revoked or has expired ends its sessions, a sign-out ends its own in this process; the cookie
opens the pages and nothing else.
"""

import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import jwt
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response

from gateway.http.identity import Callers, OpenCallers
from gateway.pages.forms import read_form
from gateway.pages.view import PAGES
from gateway.service.calls import Caller

SIGN_IN = f"{PAGES}/sign-in"
"""The path of the form."""

SESSION = timedelta(hours=12)
"""How long a sign-in holds."""

ALGORITHM = "HS256"

SECURE_COOKIE = "__Host-ms"
"""The cookie's name behind TLS: browsers let no other domain set one of this prefix."""

PLAIN_COOKIE = "ms"
"""The cookie's name on plain HTTP, which browsers admit at loopback alone."""

SESSION_ID_BYTES = 12
"""Random bytes of a session's id: unique among the sessions of twelve hours."""

MAX_SIGNED_OUT = 100_000
"""Sessions that are remembered as signed out, at most, the latest ones: 15 MB."""


class KnownKeys(Protocol):
    """Tells the caller of a key by its id."""

    def caller_by_id(self, key_id: str) -> Caller | None:
        """Return the caller; None if there is no such key any more."""
        ...


class Sessions:
    """The sessions of this process, whatever deployment it serves: signed tokens, and which were signed out."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._signed_out: dict[str, float] = {}
        """Ids of sessions that were signed out, with the time at which their cookie expires, in seconds since the
        epoch, oldest sign-out first."""

    def open(self, key_id: str) -> str:
        """Return the token of a new session of a key."""
        session_id = secrets.token_urlsafe(SESSION_ID_BYTES)
        claims = {"sub": key_id, "jti": session_id, "exp": datetime.now(UTC) + SESSION}
        return jwt.encode(claims, self._secret, algorithm=ALGORITHM)

    def key_of(self, token: str | None) -> str | None:
        """Return the id of the session's key; None where there is no session."""
        claims = self._claims(token)
        return None if claims is None else claims["sub"]

    def close(self, token: str | None) -> None:
        """End a session, also for copies of its token."""
        claims = self._claims(token)
        if claims is None:
            return
        self._signed_out[claims["jti"]] = claims["exp"]
        # All sessions are equally long, so that the one that was signed out first is among the first to expire.
        while next(iter(self._signed_out.values())) < time.time() or len(self._signed_out) > MAX_SIGNED_OUT:
            del self._signed_out[next(iter(self._signed_out))]

    def _claims(self, token: str | None) -> Mapping[str, Any] | None:
        try:
            required = {"require": ["exp", "sub", "jti"]}
            claims = jwt.decode(token or "", self._secret, algorithms=[ALGORITHM], options=required)  # type: ignore[arg-type]
        except jwt.InvalidTokenError:
            return None
        return None if claims["jti"] in self._signed_out else claims


class SignIn:
    """Implements `gateway.http.identity.Callers` for pages: by the cookie, else as every other door."""

    def __init__(self, callers: Callers, keys: KnownKeys | None, sessions: Sessions) -> None:
        """`keys` of None: this gateway has none, so that there is nothing to sign in with."""
        self._callers = callers
        self._keys = keys
        self._sessions = sessions
        self.is_needed = keys is not None
        self.is_open = isinstance(callers, OpenCallers)
        """True where every caller may do everything, without a key."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a page. Raises Refused, `unauthenticated`."""
        known = self._signed_in(headers)
        return known if known is not None else await self._callers.caller_of(headers, address)

    async def open_session(self, request: Request) -> Response:
        """Check the key of a form and set the cookie. Raises Refused."""
        form = await read_form(request)
        address = request.client.host if request.client else ""
        key = Headers({"x-api-key": form.optional("key") or ""})
        caller = await self._callers.caller_of(key, address)
        answer = RedirectResponse(_own_page(form.optional("next")), 303)
        answer.set_cookie(
            _cookie_name(request.headers),
            self._sessions.open(caller.name),
            max_age=int(SESSION.total_seconds()),
            secure=_is_behind_tls(request.headers),
            httponly=True,
            samesite="strict",
        )
        return answer

    async def close_session(self, request: Request) -> Response:
        """End the session, also for copies of its cookie, and take the cookie back."""
        self._sessions.close(_token_in(request.headers))
        answer = RedirectResponse(SIGN_IN, 303)
        is_secure = _is_behind_tls(request.headers)
        answer.delete_cookie(_cookie_name(request.headers), secure=is_secure, httponly=True, samesite="strict")
        return answer

    def _signed_in(self, headers: Headers) -> Caller | None:
        key_id = self._sessions.key_of(_token_in(headers))
        return None if key_id is None or self._keys is None else self._keys.caller_by_id(key_id)


def _token_in(headers: Headers) -> str | None:
    return cookie_parser(headers.get("cookie", "")).get(_cookie_name(headers))


def _cookie_name(headers: Headers) -> str:
    return SECURE_COOKIE if _is_behind_tls(headers) else PLAIN_COOKIE


def _is_behind_tls(headers: Headers) -> bool:
    """True where a proxy ended TLS. Any sender is believed: one that lies gets a cookie of no use to it."""
    return headers.get("x-forwarded-proto", "").partition(",")[0].strip() == "https"


def _own_page(address: str | None) -> str:
    """Return an address of ours, whatever a link asked for."""
    is_own = address is not None and (address == PAGES or address.startswith((f"{PAGES}/", f"{PAGES}?")))
    return address if address is not None and is_own and "\\" not in address else PAGES
