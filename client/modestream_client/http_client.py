"""The client over the gateway: the calls of `MemoryClient`, with the same results and errors.

    async with HttpMemoryClient("http://127.0.0.1:8080", user_id="u1") as memory:
        await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        answer = await memory.retrieve("where do we deploy?")
        print(answer.hits[0].text)

Needs the extra `http`: `pip install './client[http]'`. A query sees the earlier writes of this client, and with
`read_after` those of any other client. A client belongs to one event loop, is meant to stay open, and serves any number
of concurrent calls and users.
"""

from collections.abc import Mapping, Sequence

import httpx

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.calls.memory_calls import MemoryCalls
from modestream_client.calls.session import DEFAULT_TIMEOUT_S, UserId
from modestream_client.http.transport import HttpTransport
from modestream_client.transport import HeadersOf


class HttpMemoryClient(MemoryCalls):
    """Calls of the memory service through its gateway, used as `async with HttpMemoryClient(…) as memory`.

    Parameters
    ----------
    url
        The gateway's address, such as `http://127.0.0.1:8080`.
    key
        The key, `ms_…`; a gateway that listens on loopback alone may need none.
    user_id, project_id, scope, boundary
        As in `MemoryClient`.
    timeout
        Limit of a call in seconds. The gateway waits for at most 60 s; jobs and consolidations that may take longer are
        begun, and asked for until they end.
    headers
        Called for each request; returns further headers, such as `traceparent`.
    client
        An `httpx.AsyncClient` of the program, for proxies and certificates of its own; stays open.

    Differences from `MemoryClient`: the key says what the caller may do, so that `principal` is a ValueError; an error
    of the gateway can also have the codes `unauthenticated` and `too_many_requests`; what the gateway has
    no route for (`rename_category`, and unknown commands) is a ValueError.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        user_id: UserId | None = None,
        project_id: str = "default",
        timeout: float = DEFAULT_TIMEOUT_S,
        scope: Mapping[str, str] | None = None,
        boundary: Sequence[str] = USER_BOUNDARY,
        headers: HeadersOf | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        fields = BoundaryFields(boundary)
        transport = HttpTransport(url, key, timeout, headers, client, fields)
        super().__init__(transport, user_id=user_id, project_id=project_id, scope=scope, boundary=fields)
