"""Records the calls that a server gets, and has them fail or hang as a test says."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc.aio


@dataclass
class RecordedCalls(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    status: grpc.StatusCode | None = None
    hangs: bool = False
    delay_s: float = 0.0
    names: list[str] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    metadata: Mapping[str, str] = field(default_factory=dict)
    most_at_once: int = 0
    _at_once: int = 0

    async def intercept_service(self, continuation: Any, details: grpc.HandlerCallDetails) -> Any:
        handler = await continuation(details)

        async def call(request: Any, context: Any) -> Any:
            self.names.append(details.method.removeprefix("/qdrant."))
            self.requests.append(request)
            self.metadata = {str(key): str(value) for key, value in details.invocation_metadata or ()}
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            try:
                await asyncio.sleep(3600 if self.hangs else self.delay_s)
                if self.status is not None:
                    await context.abort(self.status, "as the test says")
                return await handler.unary_unary(request, context)
            finally:
                self._at_once -= 1

        return grpc.unary_unary_rpc_method_handler(call, handler.request_deserializer, handler.response_serializer)

    def last(self, name: str) -> Any:
        return next(
            request for request, called in zip(self.requests[::-1], self.names[::-1], strict=True) if called == name
        )
