"""The calls of a client, the same over every transport."""

from modestream_client.calls.answering import AnsweringCalls
from modestream_client.calls.management import ManagementCalls
from modestream_client.calls.memories import WritingCalls
from modestream_client.calls.reading import ReadingCalls


class MemoryCalls(WritingCalls, ReadingCalls, AnsweringCalls, ManagementCalls):
    """The methods shared by `MemoryClient` and `HttpMemoryClient`; use it as the type for either."""
