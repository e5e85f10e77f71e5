"""The members of a topic by their loads: the next to get a partition, and the next to give one.

The part of Kafka's UniformHeterogeneousAssignmentBuilder that is its MemberAssignmentBalancer.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence


class LoadRanges:
    """The least and the most loaded of some members, by their indices.

    Members stand in the order of their loads. The range at the low end holds those that were raised
    to `_low_load`, the range at the high end those that were lowered to `_high_load`. A round gives
    each member of the low range a partition, from the first to the last, or takes one from each
    member of the high range, from the last to the first. Before a round, a range takes in its
    neighbours that have the same load.
    """

    def __init__(self, loads: Sequence[int], members: Iterable[int]) -> None:
        """Order the members by their loads; equally loaded ones keep the given order."""
        self._loads = loads
        self._members = sorted(members, key=loads.__getitem__)
        count = len(self._members)
        self.imbalance = self._load_at(-1) - self._load_at(0)
        """The difference between the highest and the lowest load in the beginning."""
        self._low_load = self._load_at(0) - 1
        self._low_end = 0
        self._next_low = 0
        self._high_load = self._load_at(-1) + 1
        self._high_start = count
        self._high_end = count
        self._next_high = count - 1

    @property
    def are_balanced(self) -> bool:
        """The loads of the ranges differ by one at most."""
        return self._high_load - self._low_load <= 1

    def next_receiver(self) -> int:
        """Return the least loaded member, which is to get a partition."""
        if self._next_low >= self._low_end:
            self._low_load += 1
            while self._low_end < len(self._members) and self._is_low(self._low_end):
                self._low_end += 1
            self._next_low = 0
        self._next_low += 1
        return self._members[self._next_low - 1]

    def next_giver(self, movable: Mapping[int, Collection[int]]) -> int | None:
        """Return the most loaded member with a movable partition; None without one."""
        while True:
            if self._next_high < self._high_start:
                self._begin_high_round()
            if self._next_high < 0:
                return None
            member = self._members[self._next_high]
            self._next_high -= 1
            if movable[member]:
                return member
            self._leave_out(self._next_high + 1)

    def _begin_high_round(self) -> None:
        if self._high_end <= self._high_start and self._high_start > 0:
            # All of the range were left out: begin with the next lower load.
            self._high_load = self._load_at(self._high_start - 1)
        else:
            self._high_load -= 1
        while self._high_start > 0 and self._load_at(self._high_start - 1) == self._high_load:
            self._high_start -= 1
        self._next_high = self._high_end - 1

    def _leave_out(self, place: int) -> None:
        """Exchange a member of the high range with its last one, and end the range before that."""
        members = self._members
        self._high_end -= 1
        members[place], members[self._high_end] = members[self._high_end], members[place]

    def _load_at(self, place: int) -> int:
        return self._loads[self._members[place]]

    def _is_low(self, place: int) -> bool:
        return self._load_at(place) == self._low_load
