"""The members of a topic that give partitions, and those that get them."""

from kvorum.groups.assignors.load_ranges import LoadRanges

A_PARTITION = [0]


def test_partitions_fill_the_least_loaded_members_up_level_by_level() -> None:
    ranges = LoadRanges([3, 0, 1], [0, 1, 2])
    assert ranges.imbalance == 3
    assert [ranges.next_receiver() for _ in range(6)] == [1, 1, 2, 1, 2, 1]


def test_givers_come_down_from_the_most_loaded_one() -> None:
    ranges = LoadRanges([1, 2, 4], [0, 1, 2])
    movable = {0: A_PARTITION, 1: A_PARTITION, 2: A_PARTITION}
    assert [ranges.next_giver(movable) for _ in range(5)] == [2, 2, 2, 1, 2]


def test_members_without_partitions_to_give_are_left_out() -> None:
    ranges = LoadRanges([5, 5, 1], [0, 1, 2])
    movable = {0: [], 1: [], 2: A_PARTITION}
    assert not ranges.are_balanced
    assert ranges.next_giver(movable) == 2
    # The one that gives is no more loaded than the one that would receive.
    assert ranges.are_balanced


def test_a_member_that_is_left_out_stays_out_in_later_rounds() -> None:
    ranges = LoadRanges([5, 5, 5, 1], [0, 1, 2, 3])
    movable = {0: A_PARTITION, 1: [], 2: A_PARTITION, 3: []}
    assert [ranges.next_giver(movable) for _ in range(4)] == [2, 0, 2, 0]


def test_there_may_be_no_member_with_a_partition_to_give() -> None:
    assert LoadRanges([5, 1], [0, 1]).next_giver({0: [], 1: []}) is None


def test_the_given_order_decides_between_equals() -> None:
    ranges = LoadRanges([0, 0, 0], [2, 0, 1])
    assert [ranges.next_receiver() for _ in range(3)] == [2, 0, 1]
