"""The list of dead letters keeps no more than its letters."""

from gateway.service.dead_letters import REPLAYED_FROM
from tests.fakes.dead_letter_topic import FakeDeadLetterTopic


def test_letters_that_name_others_leave_nothing_behind() -> None:
    topic = FakeDeadLetterTopic(limit=2)
    for number in range(20):
        topic.put(b"ana", b"{}", headers=((REPLAYED_FROM, f"1-{number}".encode()),))
    assert len(topic.list._letters) == 2
    assert len(topic.list._replayed) == 2
