"""Classifies a provider's errors: whether and when to retry, and what the operator should do; and redacts secrets.

LiteLLM's exceptions are matched by class name and status, so LiteLLM is not loaded here. A `Fault` has no secrets.
"""

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from schemas.models.language import Profile

KEY_LIKE = re.compile(r"\bsk-[\w*.-]{4,}")
"""API keys of OpenAI and many others, also partly masked by asterisks."""

CREDENTIALS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=*-]{8,}"), r"\1 ***"),
    (re.compile(r"(?i)([?&](?:key|api[-_]?key|token)=)[^&\s'\"]+"), r"\1***"),
    (re.compile(r"(?<=//)[^/@\s]+@"), "***@"),
)
"""In a header, in the query of a URL, before the host of a URL."""

MIN_SECRET_CHARS = 8
"""Shorter values are placeholders such as `none`, which occur in many texts."""


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Mask these secrets, and everything that looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, "***")
    text = KEY_LIKE.sub("sk-***", text)
    for pattern, replacement in CREDENTIALS:
        text = pattern.sub(replacement, text)
    return text


class RedactingFilter(logging.Filter):
    """Masks secrets in a library's log events and drops tracebacks, which show whole requests."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the event in place; keep every event."""
        record.msg = redacted(record.getMessage(), self._secrets)
        record.args = None
        record.exc_info = record.exc_text = record.stack_info = None
        return True


FaultKind = Literal[
    "timeout", "rate_limit", "server", "quota", "credentials", "not_found", "refused_text", "refused", "other"
]

TRANSIENT_FAULTS: frozenset[FaultKind] = frozenset({"timeout", "rate_limit", "server"})
"""Faults that a retry may not meet again. A lost connection counts as a fault of the server."""

REFUSED_TEXT = frozenset({"ContentPolicyViolationError", "ContextWindowExceededError", "RejectedRequestError"})
"""LiteLLM's exceptions about the text of one request."""

FAULT_BY_STATUS: Mapping[int, FaultKind] = {
    400: "refused", 401: "credentials", 402: "quota", 403: "credentials", 404: "not_found", 405: "not_found",
    408: "timeout", 409: "server", 413: "refused_text", 422: "refused", 425: "server", 429: "rate_limit",
}  # fmt: skip
"""The faults of statuses below 500; all others are `server`."""

MAX_DETAIL_CHARS = 240

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Bytes of a model's HTTP response: a thousand tokens are some 4 KB, and JSON may write a character in six bytes."""


class RefusedAnswer(Exception):
    """A response beyond the bounds of one, unread; the message completes a sentence about the model."""


class BrokenOff(Exception):
    """A streamed answer ended before its end; the message completes a sentence about the model."""


ADVICE: Mapping[FaultKind, str] = {
    "timeout": "did not answer within {profile.timeout_s:g} s",
    "rate_limit": "limits the rate (429)",
    "server": "fails or can't be reached ({status}){detail}",
    "quota": "has no credit left ({status}){detail}; check the account",
    "credentials": "refuses the credentials ({status}){detail}; {key}",
    "not_found": "does not exist ({status}){detail}; check `model` and `api_base`",
    "refused_text": "refuses this text ({status}){detail}",
    "refused": "refuses the request ({status}){detail}; check the profile's settings",
    "other": "can't be called{detail}",
}


class ProviderError(Exception):
    """Replaces an exception of LiteLLM as the cause: its class and message, without secrets and the request."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a call failed. `retry_after_s` is the provider's requested wait, or 0."""

    kind: FaultKind
    message: str
    cause: ProviderError
    retry_after_s: float = 0.0

    @property
    def is_transient(self) -> bool:
        """True if a retry may help."""
        return self.kind in TRANSIENT_FAULTS


def fault_of(error: Exception, name: str, profile: Profile, secrets: Iterable[str]) -> Fault:
    refused: BaseException | None = error
    # LiteLLM raises an exception of its own for what the transport raised.
    while refused is not None and not isinstance(refused, RefusedAnswer | BrokenOff):
        refused = refused.__cause__ or refused.__context__
    text = redacted(str(error if refused is None else refused), secrets)
    kind = _kind(error, text)
    # A refusal may repeat the text, and no memory's text may get into a log.
    detail = f": {text[:MAX_DETAIL_CHARS]}" if text and kind != "refused_text" else ""
    key = f"check {profile.api_key_env}" if profile.api_key_env else "set `api_key_env`"
    status = getattr(error, "status_code", None) or type(error).__name__
    advice = (
        text if refused is not None else ADVICE[kind].format(profile=profile, status=status, detail=detail, key=key)
    )
    message = f"the model {profile.model} (profile {name}) {advice}"
    cause = ProviderError(f"{type(error).__name__}{detail}")
    return Fault(kind, message, cause, _retry_after(error) if kind in {"rate_limit", "server"} else 0.0)


def _kind(error: Exception, text: str) -> FaultKind:
    if isinstance(error, TimeoutError):
        return "timeout"
    if {ancestor.__name__ for ancestor in type(error).__mro__} & REFUSED_TEXT:
        return "refused_text"
    if "insufficient_quota" in text:
        return "quota"
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return "server" if isinstance(error, OSError | BrokenOff) else "other"
    return "server" if status >= 500 else FAULT_BY_STATUS.get(status, "refused")


def _retry_after(error: Exception) -> float:
    """Return the seconds of the header. HTTP also allows a date, which model providers do not send."""
    headers: Any = getattr(error, "litellm_response_headers", None)
    try:
        seconds = float(headers.get("retry-after")) if headers is not None else 0.0
    except (TypeError, ValueError):
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The bound of the first pause, which doubles with each attempt, up to `max_backoff_s`; in seconds.

    If the provider asks for more than `max_retry_after_s`, the call is not retried, and the circuit breaker opens.
    """

    initial_backoff_s: float = 0.5
    max_backoff_s: float = 8.0
    max_retry_after_s: float = 10.0

    def should_retry(self, fault: Fault, attempts: int, retries: int) -> bool:
        """True if a call may be retried after this many attempts."""
        return fault.is_transient and attempts <= retries and not self.exceeds_max_retry_after(fault)

    def exceeds_max_retry_after(self, fault: Fault) -> bool:
        """True if the provider asks for a longer pause than one call waits."""
        return fault.retry_after_s > self.max_retry_after_s

    def backoff_s(self, fault: Fault, attempts: int, random_number: Callable[[], float]) -> float:
        """Return the seconds until the next attempt, at least the provider's requested wait."""
        bound: float = min(self.max_backoff_s, self.initial_backoff_s * 2.0 ** (attempts - 1))
        return fault.retry_after_s + bound * random_number()
