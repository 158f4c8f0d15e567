"""The id of a caller's request: it stands in the log lines of gateway and worker, and never in an answer's meaning."""

import re

REQUEST_ID_HEADER = "request_id"
"""The record header with the id; events that follow from the record have it too."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


def is_request_id(text: str) -> bool:
    r"""True for an id that is taken over from a caller: it can neither forge lines of a log nor fill it.

    >>> is_request_id("7f3a-1"), is_request_id("a\nERROR all is lost")
    (True, False)
    """
    return _REQUEST_ID.match(text) is not None
