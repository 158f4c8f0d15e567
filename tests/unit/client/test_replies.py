import asyncio

import pytest
from modestream_client.failures import MemoryClosed
from modestream_client.kafka.connection import PendingReplies


async def test_request_gets_the_reply_with_its_correlation_id() -> None:
    replies = PendingReplies()
    with replies.expect() as first, replies.expect() as second:
        assert replies.deliver([("correlation_id", second.correlation_id)], b"for the second")
        replies.deliver([("x", b"y"), ("correlation_id", first.correlation_id)], b"for the first")
        assert await first.reply == b"for the first"
        assert await second.reply == b"for the second"


async def test_replies_to_other_clients_are_ignored() -> None:
    replies = PendingReplies()
    with replies.expect() as awaited:
        assert not replies.deliver([("correlation_id", b"somebody else's")], b"not ours")
        replies.deliver([], b"nobody's")
        assert not awaited.reply.done()


async def test_first_of_two_replies_counts() -> None:
    replies = PendingReplies()
    with replies.expect() as awaited:
        for value in (b"first", b"second"):
            replies.deliver([("correlation_id", awaited.correlation_id)], value)
        assert await awaited.reply == b"first"


async def test_abandoned_request_is_not_pending() -> None:
    replies = PendingReplies()
    with pytest.raises(TimeoutError), replies.expect() as awaited:
        raise TimeoutError
    replies.deliver([("correlation_id", awaited.correlation_id)], b"late")
    assert len(replies) == 0
    assert awaited.reply.cancelled()


async def test_close_fails_pending_requests_and_rejects_new_ones() -> None:
    replies = PendingReplies()
    with replies.expect() as awaited:
        replies.close()
        with pytest.raises(MemoryClosed):
            await awaited.reply
    with pytest.raises(MemoryClosed), replies.expect():
        pass


async def test_reply_during_close_is_ignored() -> None:
    replies = PendingReplies()
    with replies.expect() as awaited:
        replies.close()
        replies.deliver([("correlation_id", awaited.correlation_id)], b"just too late")
        with pytest.raises(MemoryClosed):
            await awaited.reply


async def test_close_logs_nothing_about_an_unread_failure() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    replies = PendingReplies()
    with replies.expect():
        replies.close()
    assert not complaints


async def test_null_reply_is_delivered_as_empty() -> None:
    replies = PendingReplies()
    with replies.expect() as awaited:
        replies.deliver([("correlation_id", awaited.correlation_id)], None)
        assert await awaited.reply == b""


async def test_partial_replies_are_heard_and_the_final_one_ends_the_wait() -> None:
    pending_replies, heard = PendingReplies(), list[tuple[int, str]]()
    with pending_replies.expect(lambda number, text: heard.append((number, text))) as pending:
        headers = [("correlation_id", pending.correlation_id)]
        assert pending_replies.deliver(headers, b'{"status": "partial", "seq": 0, "delta": {"text": "Under"}}')
        assert pending_replies.deliver(headers, b'{"status": "ok", "result": {}}')
        assert await pending.reply == b'{"status": "ok", "result": {}}'
    assert heard == [(0, "Under")]
