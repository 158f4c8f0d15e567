"""Signing in with a key: a signed cookie that holds the id of the key, not the key, for twelve hours.

Guaranteed: a key that is revoked or has expired ends its sessions; the cookie opens the pages and nothing else.
"""

from datetime import UTC, datetime, timedelta
from typing import Protocol

import jwt
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response

from gateway.http.identity import Callers, OpenCallers
from gateway.pages.forms import read_form
from gateway.pages.view import PAGES
from gateway.service.calls import Caller

SESSION = timedelta(hours=12)
"""How long a sign-in holds."""

ALGORITHM = "HS256"

SECURE_COOKIE = "__Host-ms"
PLAIN_COOKIE = "ms"
"""The cookie's name on plain HTTP, which browsers admit at loopback alone."""


class KnownKeys(Protocol):
    """Tells the caller of a key by its id."""

    def caller_by_id(self, key_id: str) -> Caller | None:
        """Return the caller; None if there is no such key any more."""
        ...


class SignIn:
    """Implements `gateway.http.identity.Callers` for pages: by the cookie, else as every other door."""

    def __init__(self, callers: Callers, keys: KnownKeys | None, secret: bytes) -> None:
        """`keys` of None: this gateway has none, so that there is nothing to sign in with."""
        self._callers = callers
        self._keys = keys
        self._secret = secret
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
        is_secure = _is_secure(request)
        answer.set_cookie(
            SECURE_COOKIE if is_secure else PLAIN_COOKIE,
            self._token(caller.name),
            max_age=int(SESSION.total_seconds()),
            secure=is_secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    async def close_session(self, request: Request) -> Response:
        """Take the cookie back."""
        answer = RedirectResponse(f"{PAGES}/sign-in", 303)
        is_secure = _is_secure(request)
        name = SECURE_COOKIE if is_secure else PLAIN_COOKIE
        answer.delete_cookie(name, secure=is_secure, httponly=True, samesite="strict")
        return answer

    def _signed_in(self, headers: Headers) -> Caller | None:
        cookies = cookie_parser(headers.get("cookie", ""))
        token = cookies.get(SECURE_COOKIE) or cookies.get(PLAIN_COOKIE)
        if token is None or self._keys is None:
            return None
        try:
            required = {"require": ["exp", "sub"]}
            claims = jwt.decode(token, self._secret, algorithms=[ALGORITHM], options=required)  # type: ignore[arg-type]
        except jwt.InvalidTokenError:
            return None
        return self._keys.caller_by_id(claims["sub"])

    def _token(self, key_id: str) -> str:
        until = datetime.now(UTC) + SESSION
        return jwt.encode({"sub": key_id, "exp": until}, self._secret, algorithm=ALGORITHM)


def _is_secure(request: Request) -> bool:
    """True behind TLS: the gateway's own, or that of the proxy before it."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"


def _own_page(address: str | None) -> str:
    """Return an address of ours, whatever a link asked for."""
    is_own = address is not None and (address == PAGES or address.startswith((f"{PAGES}/", f"{PAGES}?")))
    return address if address is not None and is_own and "\\" not in address else PAGES
