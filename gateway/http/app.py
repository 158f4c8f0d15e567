"""The ASGI application: routes, problem details, and the middleware around them.

`create_app` builds it without any connection; other routes, such as those of MCP, are served with its own.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from gateway.http.document import document_app
from gateway.http.hosts import AllowedHosts, CheckHosts
from gateway.http.identity import NO_PATH_CALLERS, Callers, Identify, OpenCallers, RequestIds
from gateway.http.limits import Limit, Limits, ReadBodies, UnderWay
from gateway.http.paths import Heads, RawPaths
from gateway.http.problems import handle_problems
from gateway.http.routes.deployment import IsReady, health_routes, user_routes
from gateway.http.routes.files import file_routes
from gateway.http.routes.memories import forget_routes, memory_routes, turn_routes
from gateway.http.routes.operations import import_routes, job_routes, operation_routes, pipeline_routes, tagged
from gateway.http.routes.streams import answer_routes, event_routes, export_routes
from gateway.http.shapes import Shapes
from gateway.http.telemetry import OWN_SPANS, Measure, Trace
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from schemas.scopes import Scope

shapes_with = cache(Shapes)
"""The shapes of a scope model, made once: a third of the time of `create_app`."""

Running = Callable[[], AbstractAsyncContextManager[Any]]
"""Something that runs as long as the app."""


def create_app(
    service: MemoryService,
    is_ready: IsReady,
    *,
    scope: type[Scope] = Scope,
    callers: Callers | None = None,
    hosts: AllowedHosts | None = None,
    limits: Limits | None = None,
    meters: Meters | None = None,
    running: Sequence[Running] = (),
    routes: Sequence[BaseRoute] = (),
    bodies: Sequence[type[BaseModel]] = (),
    path_callers: Mapping[str, Callers] = NO_PATH_CALLERS,
    forms: Collection[str] = (),
) -> FastAPI:
    """Build the application.

    `running` is entered at its start. `routes` are further ones, `bodies` their models, `path_callers` callers by path
    prefixes that identify them by other means, `forms` the paths of forms without a caller.
    """
    shapes, limits, meters = shapes_with(scope), limits or Limits(), meters or Meters()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for enter in running:
                await stack.enter_async_context(enter())
            yield

    app = FastAPI(
        title="modestream",
        summary="Conversation memory: remember turns, search, list, assemble contexts.",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry=OWN_SPANS,
        middleware=[
            Middleware(RequestIds),
            Middleware(RawPaths),
            Middleware(Heads),
            Middleware(Trace),
            Middleware(Measure, meters=meters),
            Middleware(CheckHosts, allowed=hosts or AllowedHosts()),
            Middleware(Identify, callers=callers or OpenCallers(), path_callers=path_callers),
            Middleware(Limit, limits=limits, meters=meters),
            Middleware(ReadBodies, limits=limits, meters=meters, forms=forms),
            Middleware(UnderWay, limits=limits, meters=meters),
        ],
    )
    handle_problems(app)
    for router in (
        health_routes(is_ready),
        turn_routes(service, shapes),
        operation_routes(service, shapes, tagged("reads")),
        memory_routes(service, shapes),
        forget_routes(service, shapes),
        operation_routes(service, shapes, tagged("memories", "modes", "layers", "runs", "jobs")),
        job_routes(service),
        import_routes(service, shapes),
        file_routes(service, shapes),
        user_routes(service),
        pipeline_routes(service),
        operation_routes(service, shapes, tagged("pipelines")),
        answer_routes(service, shapes),
        event_routes(service),
        export_routes(service, shapes),
    ):
        app.include_router(router)
    # First: each request tries the routes in order, and ours are many.
    app.router.routes[:0] = routes
    document_app(app, shapes, bodies)
    return app
