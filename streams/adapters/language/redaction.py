"""Secrets out of texts that people will read."""

import logging
import re
from collections.abc import Iterable

KEY_LIKE = re.compile(r"\bsk-[\w*.-]{4,}")
"""OpenAI's keys and those of many others; asterisks, as a provider shows a part of one."""

CREDENTIALS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=*-]{8,}"), r"\1 ***"),
    (re.compile(r"(?i)([?&](?:key|api[-_]?key|token)=)[^&\s'\"]+"), r"\1***"),
    (re.compile(r"(?<=//)[^/@\s]+@"), "***@"),
)
"""In a header, in an address' query, before an address' host."""

MIN_SECRET_CHARS = 8
"""Shorter values are placeholders such as `none`, which stand in many texts."""


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without these secrets and without anything that looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, "***")
    text = KEY_LIKE.sub("sk-***", text)
    for pattern, instead in CREDENTIALS:
        text = pattern.sub(instead, text)
    return text


class RedactingFilter(logging.Filter):
    """Takes secrets out of a library's log events, and tracebacks with them: those show whole requests."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the event in place; none is dropped."""
        record.msg = redacted(record.getMessage(), self._secrets)
        record.args = None
        record.exc_info = record.exc_text = record.stack_info = None
        return True
