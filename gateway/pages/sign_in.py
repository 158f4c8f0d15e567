"""Signing in with a key, and out: a signed cookie holds the id of the key, not the key, for twelve hours.

Guaranteed: a key that is revoked or has expired ends its sessions, a sign-out ends its own in this process; the cookie
opens the pages and nothing else.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.http.identity import Callers, OpenCallers
from gateway.keys.callers import KeyCallers
from gateway.pages.pages import Pages
from gateway.pages.requests import PAGES, read_form
from gateway.service.calls import Caller, Refused

SIGN_IN = f"{PAGES}/sign-in"

SESSION = timedelta(hours=12)

ALGORITHM = "HS256"

SECURE_COOKIE = "__Host-ms"
"""The cookie's name behind TLS: browsers let no other domain set a cookie with this prefix."""

PLAIN_COOKIE = "ms"
"""The cookie's name on plain HTTP, which browsers admit at loopback alone."""

SESSION_ID_BYTES = 12
"""Random bytes of a session's id: unique among the sessions of twelve hours."""

MAX_SIGNED_OUT = 100_000
"""Ids of signed-out sessions that are remembered, the latest ones: at most 15 MB."""


class Sessions:
    """Signed tokens of sessions, and which of them were signed out. One for all deployments that a process serves."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._signed_out: dict[str, float] = {}
        """Signed-out session ids with the expiry of their cookie, in seconds since the epoch; oldest sign-out first."""

    def open(self, key_id: str) -> str:
        session_id = secrets.token_urlsafe(SESSION_ID_BYTES)
        claims = {"sub": key_id, "jti": session_id, "exp": datetime.now(UTC) + SESSION}
        return jwt.encode(claims, self._secret, algorithm=ALGORITHM)

    def key_of(self, token: str | None) -> str | None:
        """Return the id of the session's key; None for a token that is invalid, expired or signed out."""
        claims = self._claims(token)
        return None if claims is None else claims["sub"]

    def close(self, token: str | None) -> None:
        """End a session, also for copies of its token."""
        claims = self._claims(token)
        if claims is None:
            return
        self._signed_out[claims["jti"]] = claims["exp"]
        # All sessions are equally long: the one that was signed out first is among the first to expire.
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
    """Implements `gateway.http.identity.Callers` for pages: by the cookie, else by the headers of HTTP."""

    def __init__(self, callers: Callers, keys: KeyCallers | None, sessions: Sessions) -> None:
        """`keys` of None: this gateway has no keys to sign in with."""
        self._callers = callers
        self._keys = keys
        self._sessions = sessions
        self.is_needed = keys is not None
        self.key_file = None if keys is None else keys.path
        self.is_open = isinstance(callers, OpenCallers)
        """True where every caller may do everything, without a key."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a page. Raises Refused, `unauthenticated`."""
        key_id = self._sessions.key_of(_token_in(headers))
        signed_in = None if key_id is None or self._keys is None else self._keys.caller_by_id(key_id)
        return signed_in if signed_in is not None else await self._callers.caller_of(headers, address)

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


def session_pages(pages: Pages, sign_in: SignIn) -> Sequence[BaseRoute]:
    async def show(request: Request) -> Response:
        wanted = request.query_params.get("next", "")
        return pages.bare(
            "sign_in.html", next=wanted, is_needed=sign_in.is_needed, is_open=sign_in.is_open, refused=None
        )

    async def open_session(request: Request) -> Response:
        try:
            return await sign_in.open_session(request)
        except Refused as refused:
            status = 429 if refused.code == "too_many_requests" else 401
            wanted = (await read_form(request)).optional("next") or ""
            return pages.bare("sign_in.html", status, next=wanted, is_needed=True, is_open=False, refused=refused)

    return [
        Route(SIGN_IN, show, methods=["GET"]),
        Route(SIGN_IN, open_session, methods=["POST"]),
        Route(f"{PAGES}/sign-out", sign_in.close_session, methods=["POST"]),
    ]


def _token_in(headers: Headers) -> str | None:
    return cookie_parser(headers.get("cookie", "")).get(_cookie_name(headers))


def _cookie_name(headers: Headers) -> str:
    return SECURE_COOKIE if _is_behind_tls(headers) else PLAIN_COOKIE


def _is_behind_tls(headers: Headers) -> bool:
    """True if a proxy ended TLS. Any sender is believed: one that lies gets a cookie that is useless to it."""
    return headers.get("x-forwarded-proto", "").partition(",")[0].strip() == "https"


def _own_page(address: str | None) -> str:
    """Return the address if it is a page of ours, else the first page: a link may name any site."""
    is_own = address is not None and (address == PAGES or address.startswith((f"{PAGES}/", f"{PAGES}?")))
    return address if address is not None and is_own and "\\" not in address else PAGES
