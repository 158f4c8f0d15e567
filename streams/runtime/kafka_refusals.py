"""Errors of Kafka about the record itself, which no retry heals."""

from aiokafka.errors import InvalidTopicError, MessageSizeTooLargeError, RecordListTooLargeError, RecordTooLargeError

REFUSALS = (MessageSizeTooLargeError, RecordTooLargeError, RecordListTooLargeError, InvalidTopicError)
"""The same record never succeeds. All other errors may heal: a rebuilt topic, a corrected clock, granted rights."""
