"""The calls without `await`, for programs without an event loop; inside of one they block it.

    with SyncMemoryClient("127.0.0.1:9092", user_id="u1") as memory:
        memory.remember("The deploy target is fly.io now.", speaker="Ana")
        print(memory.retrieve("where do we deploy?").hits[0].text)

A client runs its asynchronous twin in its own thread, with one event loop. It serves any number of threads. Types,
results and errors are those of the twin: each call below is derived from the twin's method. A new method is a new line.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from modestream_client.calls import MemoryCalls
from modestream_client.failures import MemoryClosed

P = ParamSpec("P")
T = TypeVar("T")


class SyncSession:
    """A client whose event loop runs in a separate thread."""

    def __init__(self, memory: MemoryCalls) -> None:
        self._memory = memory
        self._changing = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread()

    def open(self) -> Self:
        """Connect. Raises `MemoryUnreachable` if the service's broker, its topics or its gateway are not there."""
        opened: Future[asyncio.AbstractEventLoop] = Future()
        with self._changing:
            if self._loop is not None:
                raise RuntimeError("the client is open already")
            self._stop, self._ended = asyncio.Event(), Future()
            # A daemon thread, so that a program that closes nothing can exit.
            self._thread = threading.Thread(
                target=asyncio.run, args=[self._serve(opened, self._ended)], name="modestream-client", daemon=True
            )
            self._thread.start()
            try:
                self._loop = opened.result()
            except Exception:
                self._thread.join()
                raise
            finally:
                # After Ctrl+C in this thread: the other one disconnects, as it can't know whether it is open.
                opened.cancel()
        return self

    def close(self) -> None:
        """Fail waiting calls with `MemoryClosed`, flush written records, and disconnect. Repeating it does nothing."""
        # From here on no call reaches the loop: earlier calls are its tasks before it stops, and end with it.
        with self._changing:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._ended.result()

    def __enter__(self) -> Self:
        """Connect, as `open` does."""
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect, as `close` does."""
        self.close()

    async def _serve(self, opened: Future[asyncio.AbstractEventLoop], ended: Future[None]) -> None:
        try:
            async with self._memory:
                opened.set_result(asyncio.get_running_loop())
                await self._stop.wait()
        except BaseException as problem:
            (ended if opened.done() else opened).set_exception(problem)
        else:
            ended.set_result(None)

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call in the loop; return its result. Raises `MemoryClosed` unless the client is open until it ends."""
        if threading.current_thread() is self._thread:
            call.close()
            raise RuntimeError("a call from the client's own thread would deadlock; call from another thread")
        with self._changing:
            if self._loop is None:
                call.close()
                raise MemoryClosed("the client is not open: use it inside its `with` block")
            result = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return result.result()
        except CancelledError:
            raise MemoryClosed("the client was closed before the reply came") from None
        finally:
            # After Ctrl+C in this thread nothing waits for it.
            result.cancel()


def without_await(call: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the method that waits for the result of an asynchronous one."""

    @wraps(call)
    def wait(self: SyncSession, /, *positional: P.args, **named: P.kwargs) -> T:
        return self._wait_for(call(self._memory, *positional, **named))

    wait.__doc__ = _without_await(call.__doc__)
    return wait


def iterated(call: Callable[Concatenate[Any, P], AsyncIterator[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Return a blocking iterator method for an asynchronous one; it yields each item as it comes."""

    async def following(items: AsyncIterator[T]) -> T:
        return await anext(items)

    @wraps(call)
    def iterate(self: SyncSession, /, *positional: P.args, **named: P.kwargs) -> Iterator[T]:
        items = call(self._memory, *positional, **named)
        while True:
            try:
                item = self._wait_for(following(items))
            except StopAsyncIteration:
                return
            yield item

    iterate.__doc__ = _without_await(call.__doc__)
    return iterate


def constructed_as(
    twin: Callable[P, MemoryCalls],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Give a constructor the parameters of the asynchronous twin, and create the twin with them."""

    def construct(_: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        @wraps(twin.__init__)
        def construct_with(self: SyncSession, /, *positional: P.args, **named: P.kwargs) -> None:
            SyncSession.__init__(self, twin(*positional, **named))

        return construct_with

    return construct


def _without_await(text: str | None) -> str:
    return (text or "").replace("await ", "").replace("async for", "for")


class SyncMemoryCalls(SyncSession):
    """The methods shared by `SyncMemoryClient` and `SyncHttpMemoryClient`: those of `MemoryCalls`."""

    command = without_await(MemoryCalls.command)
    request = without_await(MemoryCalls.request)
    declare_mode = without_await(MemoryCalls.declare_mode)
    list_modes = without_await(MemoryCalls.list_modes)
    rename_mode = without_await(MemoryCalls.rename_mode)
    delete_mode = without_await(MemoryCalls.delete_mode)
    set_default_mode = without_await(MemoryCalls.set_default_mode)
    suggest_modes = without_await(MemoryCalls.suggest_modes)
    declare_category = without_await(MemoryCalls.declare_category)
    list_categories = without_await(MemoryCalls.list_categories)
    get_category = without_await(MemoryCalls.get_category)
    rename_category = without_await(MemoryCalls.rename_category)
    delete_category = without_await(MemoryCalls.delete_category)
    suggest_categories = without_await(MemoryCalls.suggest_categories)
    get_intention = without_await(MemoryCalls.get_intention)
    set_intention = without_await(MemoryCalls.set_intention)
    consolidate = without_await(MemoryCalls.consolidate)
    run_job = without_await(MemoryCalls.run_job)
    refresh = without_await(MemoryCalls.refresh)
    health = without_await(MemoryCalls.health)
    list_runs = without_await(MemoryCalls.list_runs)
    retrieve = without_await(MemoryCalls.retrieve)
    assemble = without_await(MemoryCalls.assemble)
    list_memories = without_await(MemoryCalls.list_memories)
    list_conversations = without_await(MemoryCalls.list_conversations)
    list_projects = without_await(MemoryCalls.list_projects)
    iter_memories = iterated(MemoryCalls.iter_memories)
    iter_conversations = iterated(MemoryCalls.iter_conversations)
    iter_projects = iterated(MemoryCalls.iter_projects)
    map = without_await(MemoryCalls.map)
    answer = without_await(MemoryCalls.answer)
    answer_stream = iterated(MemoryCalls.answer_stream)
    remember = without_await(MemoryCalls.remember)
    import_export = without_await(MemoryCalls.import_export)
    get_memory = without_await(MemoryCalls.get_memory)
    set_memory_mode = without_await(MemoryCalls.set_memory_mode)
    set_memory_modes = without_await(MemoryCalls.set_memory_modes)
    set_memory_visibility = without_await(MemoryCalls.set_memory_visibility)
    set_memory_visibilities = without_await(MemoryCalls.set_memory_visibilities)
    set_interaction_mode = without_await(MemoryCalls.set_interaction_mode)
    get_context = without_await(MemoryCalls.get_context)
    rate = without_await(MemoryCalls.rate)
    forget = without_await(MemoryCalls.forget)
