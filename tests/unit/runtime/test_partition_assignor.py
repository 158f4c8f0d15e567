"""Topics are assigned together, whatever partitions an operator has added to one of them; and with copies."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest

from streams.runtime.awaited_table import create_table
from streams.runtime.kafka_app import create_kafka_app
from streams.runtime.membership import member_name
from streams.settings import Settings


def groups(partitions: dict[str, int]) -> dict[int, list[set[str]]]:
    """Return the topics that are assigned together, by their number of partitions, for one worker of a deployment."""
    app: faust.App = create_kafka_app(Settings(_env_file=None, partitions=4), "worker")
    cluster: Any = SimpleNamespace(partitions_for_topic=lambda topic: set(range(partitions[topic])))
    assignor: Any = app.assignor
    grouped = assignor._get_copartitioned_groups(set(partitions), cluster, {"worker": list(partitions)})
    return {count: list(found) for count, found in grouped.items()}


def test_topic_with_added_partitions_stays_with_its_tables() -> None:
    assert groups({"turns": 6, "changelog": 4}) == {4: [{"turns", "changelog"}]}


def test_missing_topic_is_not_assigned() -> None:
    assert groups({"turns": 4, "changelog": 0}) == {4: [{"turns"}]}


TOPICS = ("turns", "memory.worker-memories-changelog")


class Group:
    """Workers that join a group, each with what it was assigned last."""

    def __init__(self, directory: Path, copies: int) -> None:
        self._directory = directory
        self._copies = copies
        self.members: dict[str, Any] = {}

    def join(self, name: str, directory: str | None = None, copies: int | None = None) -> None:
        """Add a worker, with a data directory of its own and the copies of all others if none are named."""
        data_dir, number = self._directory / (directory or name), self._copies if copies is None else copies
        settings = Settings(_env_file=None, partitions=4, standby_copies=number, data_dir=data_dir)
        app: Any = create_kafka_app(settings, name)
        create_table(app, "memories")
        self.members[name] = app.assignor

    def rebalance(self) -> None:
        cluster: Any = SimpleNamespace(partitions_for_topic=lambda _: set(range(4)))
        joined = {name: member.metadata(set(TOPICS)) for name, member in self.members.items()}
        leader = next(iter(self.members.values()))
        for name, assigned in leader.assign(cluster, joined).items():
            self.members[name].on_assignment(assigned)

    def served(self, name: str) -> set[int]:
        return {tp.partition for tp in self.members[name].assigned_actives()}


def test_copies_are_on_other_workers_and_no_topic_of_faust(tmp_path: Path) -> None:
    group = Group(tmp_path, copies=1)
    group.join("a")
    group.join("b")
    group.rebalance()
    assert group.served("a") == group.members["b"].copies
    assert group.served("b") == group.members["a"].copies
    for member in group.members.values():
        assert not {tp.topic for tp in member.assigned_standbys()} & set(TOPICS)


def test_lost_worker_is_replaced_by_the_one_with_its_copies(tmp_path: Path) -> None:
    group = Group(tmp_path, copies=1)
    for name in "abc":
        group.join(name)
    group.rebalance()
    lost = group.served("c")
    keepers = {name: group.members[name].copies & lost for name in "ab"}
    for member in group.members.values():
        member.ready = lambda member=member: member.copies
    del group.members["c"]
    group.rebalance()
    for name, kept in keepers.items():
        assert kept <= group.served(name)


def test_new_worker_serves_once_its_copies_are_complete(tmp_path: Path) -> None:
    group = Group(tmp_path, copies=1)
    group.join("a")
    group.rebalance()
    group.join("b")
    group.rebalance()
    assert group.served("a") == {0, 1, 2, 3}
    assert group.served("b") == set()
    due = group.members["b"].due
    assert len(due) == 2
    group.members["b"].ready = lambda: due
    group.rebalance()
    assert group.served("b") == due


def test_without_copies_a_new_worker_serves_at_once(tmp_path: Path) -> None:
    group = Group(tmp_path, copies=0)
    group.join("a")
    group.rebalance()
    group.join("b")
    group.rebalance()
    assert [len(group.served(name)) for name in "ab"] == [2, 2]
    assert [member.copies for member in group.members.values()] == [set(), set()]


def test_workers_of_one_data_directory_keep_no_copies(tmp_path: Path) -> None:
    group = Group(tmp_path, copies=1)
    group.join("a")
    group.join("b")
    group.rebalance()
    assert group.members["a"].copies
    group.join("c", directory="a")
    group.rebalance()
    assert [member.copies | member.due for member in group.members.values()] == [set()] * 3
    assert {len(group.served(name)) for name in "abc"} == {1, 2}
    assert not [tp for member in group.members.values() for tp in member.assigned_standbys()]


@pytest.mark.parametrize("copies_of_first", [0, 1])
def test_workers_of_which_one_has_no_copies_serve_as_without(tmp_path: Path, copies_of_first: int) -> None:
    group = Group(tmp_path, copies=1)
    group.join("a", copies=copies_of_first)
    group.rebalance()
    group.join("b", copies=1 - copies_of_first)
    group.rebalance()
    assert [len(group.served(name)) for name in "ab"] == [2, 2]
    assert [member.copies | member.due for member in group.members.values()] == [set(), set()]


def test_worker_of_the_same_topics_returns_under_its_name() -> None:
    name = member_name("w1", {"turns", "modes-changelog"})
    assert name.startswith("w1-")
    assert member_name("w1", ["modes-changelog", "turns"]) == name


def test_worker_of_other_topics_has_another_name() -> None:
    topics = ({"turns"}, {"turns", "jobs"}, {"turnsjobs"}, {"turns", "jobs-changelog"}, ())
    assert len({member_name("w1", topic) for topic in topics}) == len(topics)
    assert member_name("w1", {"turns"}) != member_name("w2", {"turns"})
