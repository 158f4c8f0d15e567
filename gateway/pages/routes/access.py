"""Access: keys of the gateway, made once and revoked; its settings; exports of a user, a project or a conversation."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from gateway.connection_settings import SettingInForce
from gateway.keys.key_file import Key, KeyFile, digest_of, new_key
from gateway.pages.pages import Pages
from gateway.pages.requests import PAGES, View, base_of, name_of, read_form
from gateway.pages.sign_in import SignIn
from gateway.service.access import audited, require_operating
from gateway.service.calls import Call, Refused


def key_pages(pages: Pages, sign_in: SignIn) -> Sequence[BaseRoute]:
    """Return the routes of keys, for operators of a gateway that has a file of them."""
    path = f"{PAGES}/keys"

    def file_of(view: View) -> Path:
        require_operating(view.caller)
        if sign_in.key_file is None:
            raise Refused("not_found", "this gateway has no keys: set a file of keys first", names_resource=True)
        return sign_in.key_file

    async def show(request: Request) -> Response:
        view = pages.view(request)
        keys = KeyFile.read(file_of(view)).keys
        return await pages.render(view, "keys.html", "Keys", "keys", keys=keys, now=datetime.now(UTC))

    async def add(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        file, secret = file_of(view), new_key()
        expires = form.optional("expires")
        fields = {
            "id": secrets.token_hex(4),
            "sha256": digest_of(secret),
            "principal": form.text("principal"),
            "user_id": form.optional("key_user"),
            "label": form.optional("label") or "",
            "expires": f"{expires}T00:00:00Z" if expires else None,
        }
        try:
            key = Key.model_validate(fields)
        except ValidationError as problem:
            first = problem.errors(include_input=False, include_url=False)[0]
            field = {"user_id": "key_user"}.get(str(first["loc"][0]), str(first["loc"][0]))
            raise Refused("invalid_value", str(first["msg"]), field) from None
        call = Call.within(view.caller, view.user or "", request_id=view.request_id)
        with audited(call, "add_key", {}, key=key.id, principal=key.principal):
            KeyFile.change(file, lambda keys: keys.with_key(key))
        return pages.done(view.address("keys"), f"Made the key {key.id}.", secret=secret)

    async def revoke(request: Request) -> Response:
        view, key_id = pages.view(request), name_of(request, "key")
        file = file_of(view)
        call = Call.within(view.caller, view.user or "", request_id=view.request_id)
        with audited(call, "revoke_key", {}, key=key_id):
            KeyFile.change(file, lambda keys: keys.without(key_id))
        return pages.done(view.address("keys"), f"Revoked the key {key_id}. Its sessions have ended.")

    return [
        Route(path, show, methods=["GET"]),
        Route(path, add, methods=["POST"]),
        Route(f"{path}/{{key}}/revoke", revoke, methods=["POST"]),
    ]


def settings_pages(pages: Pages, settings: Sequence[SettingInForce]) -> Sequence[BaseRoute]:
    """Return the route of the settings in force, for operators."""

    async def show(request: Request) -> Response:
        view = pages.view(request)
        require_operating(view.caller)
        # Workers have settings of their own: of these the page has what they agreed on, which health reports.
        state = {} if view.user is None else await pages.state(view)
        return await pages.render(
            view, "settings.html", "Settings", "settings", settings=settings, agreed=state.get("service")
        )

    return [Route(f"{PAGES}/settings", show)]


def export_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes of exports: JSON lines of `turn.v1`, which any deployment imports."""

    async def show(request: Request) -> Response:
        return await pages.render(pages.view(request), "export.html", "Export", "export", base=base_of(request))

    async def download(request: Request) -> Response:
        view = pages.view(request)
        fields = {"mode": view.mode or "*"}
        if conversation := view.query.get("conversation_id"):
            fields["conversation_id"] = conversation
        turns = await pages.service.export.turns(view.call(60), view.read_scope, fields)

        async def lines() -> AsyncIterator[bytes]:
            async with aclosing(turns):
                async for page in turns:
                    yield b"".join(to_json(turn) + b"\n" for turn in page)

        headers = {"Content-Disposition": 'attachment; filename="memories.jsonl"'}
        return StreamingResponse(lines(), media_type="application/x-ndjson", headers=headers)

    return [Route(f"{PAGES}/export", show), Route(f"{PAGES}/export/memories.jsonl", download)]
