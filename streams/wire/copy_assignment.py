"""Assign partitions to the members of a group, and copies of their tables and words. Pure.

Enters: the members with their present partitions and copies. Leaves: the same objects, changed. Guaranteed: each
partition is served once; a partition whose member is gone goes to a member with its copy, whatever else that serves; a
partition is taken from a living member only for one with a complete copy, so no partition waits for a copy to be made.
A member that should serve more first gets the copies for it, and reports when it has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Member:
    actives: set[int] = field(default_factory=set)
    copies: set[int] = field(default_factory=set)
    ready: frozenset[int] = frozenset()
    """Copies that were complete when it joined."""
    due: set[int] = field(default_factory=set)
    """Copies of partitions that it is to serve; once they are complete it joins again."""


def assign_partitions(members: Mapping[str, Member], partitions: int, copies: int) -> None:
    """Assign all partitions below `partitions`, each with at least `copies` copies on other members if possible."""
    ordered = [members[name] for name in sorted(members)]
    # Drop unknown partitions, and those claimed by two members.
    free = set(range(partitions))
    for member in ordered:
        member.actives &= free
        free -= member.actives
        member.copies = (member.copies & set(range(partitions))) - member.actives
        member.due = set()
    served = set[int]().union(*(member.actives for member in ordered))
    for partition in sorted(set(range(partitions)) - served):

        def suits(member: Member, partition: int = partition) -> tuple[bool, bool, int]:
            is_kept = partition in member.copies
            return not (is_kept and partition in member.ready), not is_kept, len(member.actives)

        _activate(min(ordered, key=suits), partition)
    # Balance the served partitions, as far as complete copies allow.
    while (move := _next_move(ordered)) is not None:
        source, target, partition = move
        source.actives.remove(partition)
        # The partitions that it served count as copies.
        source.copies.add(partition)
        _activate(target, partition)
    _assign_due(ordered, partitions)
    for partition in range(partitions):
        keepers = [member for member in ordered if partition in member.copies]
        keepers.sort(key=lambda member: (partition not in member.due, partition not in member.ready))
        for member in keepers[max(copies, sum(partition in keeper.due for keeper in keepers)) :]:
            member.copies.remove(partition)
        others = [member for member in ordered if partition not in member.actives | member.copies]
        for member in sorted(others, key=lambda member: len(member.copies))[: max(0, copies - len(keepers))]:
            member.copies.add(partition)


def _next_move(members: list[Member]) -> tuple[Member, Member, int] | None:
    for source in sorted(members, key=lambda member: -len(member.actives)):
        for target in sorted(members, key=lambda member: len(member.actives)):
            found = source.actives & target.copies & target.ready
            if found and len(source.actives) - len(target.actives) > 1:
                return source, target, min(found)
    return None


def _assign_due(members: list[Member], partitions: int) -> None:
    """Give underloaded members the copies of partitions to serve later."""
    planned = [(member, set(member.actives)) for member in members]
    fair = partitions // len(members)
    for member, plan in sorted(planned, key=lambda entry: len(entry[1])):
        while len(plan) < fair:
            _, richest = max(planned, key=lambda entry: len(entry[1]))
            partition = min(richest, key=lambda place: (place not in member.copies, place))
            richest.remove(partition)
            plan.add(partition)
            member.due.add(partition)
    for member, plan in planned:
        member.due &= plan - member.actives
        member.copies |= member.due


def _activate(member: Member, partition: int) -> None:
    member.actives.add(partition)
    member.copies.discard(partition)
