"""Which member serves a partition, and which keep its copy."""

from streams.wire.copy_assignment import Member, assign_partitions


def assigned(partitions: int = 4, copies: int = 1, **members: Member) -> dict[str, Member]:
    """Assign, and check what always holds."""
    assign_partitions(members, partitions, copies)
    served = [partition for member in members.values() for partition in sorted(member.actives)]
    assert sorted(served) == list(range(partitions))
    for member in members.values():
        assert not member.actives & member.copies
        assert member.due <= member.copies
    for partition in range(partitions):
        keepers = sum(partition in member.copies for member in members.values())
        assert keepers >= min(copies, len(members) - 1)
    return members


def test_first_members_share_the_partitions() -> None:
    found = assigned(a=Member(), b=Member())
    assert [len(member.actives) for member in found.values()] == [2, 2]
    assert [member.copies for member in found.values()] == [found["b"].actives, found["a"].actives]


def test_only_member_serves_all_and_keeps_nothing() -> None:
    found = assigned(a=Member(actives={0, 1}))
    assert found["a"].actives == {0, 1, 2, 3}
    assert found["a"].copies == set()


def test_partitions_of_a_lost_member_go_where_their_copies_are() -> None:
    found = assigned(
        copies=1,
        a=Member(actives={0}, copies={1, 2}, ready=frozenset({1, 2})),
        b=Member(copies={3}, ready=frozenset({3})),
        c=Member(),
    )
    assert found["a"].actives == {0, 1, 2}
    assert found["b"].actives == {3}


def test_complete_copy_comes_before_one_that_is_not() -> None:
    found = assigned(partitions=1, a=Member(copies={0}), b=Member(copies={0}, ready=frozenset({0})), c=Member())
    assert found["b"].actives == {0}
    assert found["a"].copies == {0}


def test_new_member_gets_copies_first() -> None:
    found = assigned(a=Member(actives={0, 1, 2, 3}), b=Member())
    assert found["a"].actives == {0, 1, 2, 3}
    assert found["b"].copies == {0, 1, 2, 3}
    assert len(found["b"].due) == 2


def test_member_with_complete_copies_gets_its_share() -> None:
    found = assigned(a=Member(actives={0, 1, 2, 3}), b=Member(copies={0, 1, 2, 3}, ready=frozenset({1, 3})))
    assert found["a"].actives == {0, 2}
    assert found["b"].actives == {1, 3}
    assert found["a"].copies == {1, 3}
    assert found["b"].copies == {0, 2}
    assert [member.due for member in found.values()] == [set(), set()]


def test_third_member_is_warmed_up_beside_the_copies_that_are_there() -> None:
    found = assigned(
        partitions=6,
        a=Member(actives={0, 1, 2}, copies={3, 4, 5}, ready=frozenset({3, 4, 5})),
        b=Member(actives={3, 4, 5}, copies={0, 1, 2}, ready=frozenset({0, 1, 2})),
        c=Member(),
    )
    assert [len(member.actives) for member in found.values()] == [3, 3, 0]
    assert len(found["c"].due) == 2


def test_partition_that_two_say_they_serve_is_served_once() -> None:
    found = assigned(a=Member(actives={0, 1, 2}), b=Member(actives={2, 3}))
    assert found["a"].actives == {0, 1, 2}
    assert found["b"].actives == {3}


def test_no_more_copies_than_asked_for() -> None:
    everything = frozenset(range(4))
    found = assigned(
        a=Member(actives={0, 1}, copies={2, 3}, ready=everything),
        b=Member(actives={2}, copies={0, 1, 3}, ready=everything),
        c=Member(actives={3}, copies={0, 1, 2}, ready=everything),
    )
    assert sum(len(member.copies) for member in found.values()) == 4
    assert [member.due for member in found.values()] == [set(), set(), set()]


def test_assignment_that_is_even_stays_as_it_is() -> None:
    first = assigned(a=Member(), b=Member(), c=Member())
    again = {
        name: Member(set(member.actives), set(member.copies), frozenset(member.copies))
        for name, member in first.items()
    }
    assign_partitions(again, 4, 1)
    assert again == {
        name: Member(member.actives, member.copies, frozenset(member.copies)) for name, member in first.items()
    }
