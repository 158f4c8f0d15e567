"""The pages over a wire in memory: a browser's requests, with the grants that a test gives."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
from starlette.datastructures import Headers

from gateway.connection_settings import SettingInForce
from gateway.pages.app import page_routes
from gateway.pages.requests import PAGES
from gateway.pages.sign_in import Sessions, SignIn
from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from schemas.scopes import Scope
from tests.worlds.gateway import http_over


class OneCaller:
    """Implements `gateway.http.identity.Callers`: every request is of this caller."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        return self._caller


@asynccontextmanager
async def pages_over(
    service: MemoryService, caller: Caller | None = None, settings: Sequence[SettingInForce] = ()
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the pages to a caller, by default one that may do everything."""
    sign_in = SignIn(OneCaller(caller or Caller()), None, Sessions(b"a secret of thirty-two characters"))
    routes = page_routes(service, Scope, sign_in, settings)
    async with http_over(service, routes=routes, path_callers={PAGES: sign_in}, has_api=False) as http:
        yield http


async def undone(http: httpx.AsyncClient, done: httpx.Response) -> httpx.Response:
    """Take an action back, as the notice offers it on the page that its answer leads to."""
    page = await http.get(done.headers["location"])
    token = re.search(r'name="token" value="([^"]+)"', page.text)
    assert token is not None, page.text
    return await http.post("/admin/undo?user=ana", data={"token": token[1]})


async def told_after(http: httpx.AsyncClient, done: httpx.Response) -> str:
    page = await http.get(done.headers["location"])
    notice = re.search(r'<p role="status">(.*?)</p>', page.text)
    return "" if notice is None else notice[1]
