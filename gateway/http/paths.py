"""ASGI middleware: route by the path as it was sent, so that an encoded `/` in a name parts nothing."""

from starlette.types import ASGIApp, Receive, Scope, Send


class RawPaths:
    """Replaces the decoded path by the raw one; names are decoded where they are used."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and (raw := scope.get("raw_path")) is not None:
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}
        await self._app(scope, receive, send)
