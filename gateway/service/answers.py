"""Replies as the JSON that every door answers with. Pure."""

from modestream_client.answers import Reply

from gateway.service.wire import Json


def with_warnings(reply: Reply) -> Json:
    """Return the result with its `warnings`, which may be empty."""
    return {**reply.result, "warnings": warnings_of(reply)}


def result_of(reply: Reply) -> Json:
    """Return the result, with `warnings` if there are any."""
    return with_warnings(reply) if reply.warnings else reply.result


def warnings_of(reply: Reply) -> list[Json]:
    """Return the warnings of a reply."""
    return [{"code": one.code, "message": one.message} for one in reply.warnings]
