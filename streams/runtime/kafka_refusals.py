"""The errors of Kafka that no repetition heals: they are about the record itself."""

from aiokafka.errors import InvalidTopicError, MessageSizeTooLargeError, RecordListTooLargeError, RecordTooLargeError

REFUSALS = (MessageSizeTooLargeError, RecordTooLargeError, RecordListTooLargeError, InvalidTopicError)
"""Errors about the record itself: the same record never succeeds. All others may heal: a topic that is made again, a
clock that is set right, rights that are granted."""
