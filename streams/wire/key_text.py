"""A record's key as text, in headers that say where a record was before: base64, or `-` for none."""

import base64
import binascii

KEY_TEXT = r"-|[A-Za-z0-9+/]*={0,2}"
"""Pattern of such a text; what it admits may still be no base64."""


def key_text(key: bytes | None) -> str:
    """Return a key as text.

    >>> key_text(b"u1"), key_text(None)
    ('dTE=', '-')
    """
    return "-" if key is None else base64.b64encode(key).decode()


def key_of_text(encoded: bytes) -> bytes | None:
    """Return the key of a text that `key_text` has made. Raises ValueError for another one."""
    if encoded == b"-":
        return None
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as problem:
        raise ValueError("no key in base64") from problem
