"""The name of a worker's group member: Kafka gives a returning name its earlier assignment."""

from streams.runtime.membership import member_name


def test_worker_of_the_same_topics_returns_under_its_name() -> None:
    name = member_name("w1", {"turns", "modes-changelog"})
    assert name.startswith("w1-")
    assert member_name("w1", ["modes-changelog", "turns"]) == name


def test_worker_of_other_topics_has_another_name() -> None:
    topics = ({"turns"}, {"turns", "jobs"}, {"turnsjobs"}, {"turns", "jobs-changelog"}, ())
    assert len({member_name("w1", topic) for topic in topics}) == len(topics)
    assert member_name("w1", {"turns"}) != member_name("w2", {"turns"})
