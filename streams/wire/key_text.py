"""A record's key as text, in headers that name a record's former place: base64, or `-` for none."""

import base64
import binascii

KEY_TEXT = r"-|[A-Za-z0-9+/]*={0,2}"
"""Pattern of the syntax only; decoding may still fail."""


def key_text(key: bytes | None) -> str:
    """Return a key as text.

    >>> key_text(b"u1"), key_text(None)
    ('dTE=', '-')
    """
    return "-" if key is None else base64.b64encode(key).decode()


def key_of_text(encoded: bytes) -> bytes | None:
    """Return the key of a text from `key_text`. Raises ValueError for any other text."""
    if encoded == b"-":
        return None
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as problem:
        raise ValueError("no key in base64") from problem
