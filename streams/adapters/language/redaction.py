"""Redacts secrets in messages and logs."""

import logging
import re
from collections.abc import Iterable

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
