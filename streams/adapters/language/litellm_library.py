"""The only file that knows LiteLLM: loaded when the first question is asked, in a thread, and tamed.

Enters: the arguments of one call. Leaves: a `Completion`, or the library's exception. Guaranteed: one HTTP request a
call (its own retries are off), no network at loading, no `.env` file read, nothing printed, nothing cached; its work is
done on a loop of its own, and holds up nobody.
"""

import asyncio
import gc
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from streams.adapters.language.redaction import RedactingFilter
from streams.adapters.language.background_loop import BackgroundEventLoop

IMPORT_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
"""Without the first, loading asks a server for prices; without the second, it puts a `.env` file into the process."""

LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore")
"""Below warnings these log the texts of questions."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's message. `finish_reason` is OpenAI's; the cost is None where LiteLLM has no price of the model."""

    text: str
    finish_reason: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


class LiteLLMLibrary:
    """LiteLLM, one for all profiles of a process."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are kept out of its log events."""
        self._secrets = tuple(secrets)
        self._loading = asyncio.Lock()
        # A call is ten milliseconds of work, in which no turn would be accepted.
        self._aside = BackgroundEventLoop("litellm")
        self._litellm: Any = None

    async def load(self) -> None:
        """Load it, once: seconds, a hundred and seventy megabytes. The event loop goes on meanwhile."""
        async with self._loading:
            if self._litellm is None:
                self._litellm = await asyncio.to_thread(_loaded, self._secrets)

    async def complete(self, arguments: Mapping[str, Any]) -> Completion:
        """One request. Raises whatever LiteLLM raises."""
        await self.load()
        return await self._aside.run(self._complete(arguments))

    async def _complete(self, arguments: Mapping[str, Any]) -> Completion:
        response = await self._litellm.acompletion(**arguments, max_retries=0, num_retries=0, caching=False)
        return _completion(response)

    async def close(self) -> None:
        """Close its connections, which it would leave open."""
        if self._litellm is not None:
            await self._aside.run(self._litellm.close_litellm_async_clients())
        await self._aside.stop()


def _loaded(secrets: tuple[str, ...]) -> Any:
    os.environ.update(IMPORT_ENVIRONMENT)
    with _spared_by_the_collector():
        import litellm  # noqa: PLC0415
        import openai.resources  # noqa: F401, PLC0415 - else the first call does, a second long, on the event loop

    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True  # its sessions are left open when its cache of clients forgets them
    for name in LOGGERS:
        _tame(logging.getLogger(name), secrets)
    return litellm


def _tame(logger: logging.Logger, secrets: tuple[str, ...]) -> None:
    logger.setLevel(logging.WARNING)
    logger.addFilter(RedactingFilter(secrets))
    logger.handlers.clear()
    logger.propagate = True


@contextmanager
def _spared_by_the_collector() -> Iterator[None]:
    """What is made in here is never visited again by a full collection, which would stop the event loop meanwhile.

    A third of a million objects live as long as the process: a quarter of a second, each time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def _completion(response: Any) -> Completion:
    choice = response.choices[0]
    usage = getattr(response, "usage", None)
    cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
    return Completion(
        text=choice.message.content or "",
        finish_reason=choice.finish_reason or "",
        tokens_in=_count(getattr(usage, "prompt_tokens", 0)),
        tokens_out=_count(getattr(usage, "completion_tokens", 0)),
        cost_usd=float(cost) if isinstance(cost, float | int) and cost >= 0 else None,
    )


def _count(number: Any) -> int:
    """Servers may say anything."""
    return max(0, number) if isinstance(number, int) else 0
