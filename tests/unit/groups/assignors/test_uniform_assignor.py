"""The uniform assignor: even loads, few moves, and what decides between equals."""

import pytest
from tests.unit.groups.assignors.assigned import Member, assign, group_of

from kvorum.groups.assignors.assignors_by_name import ASSIGNORS
from kvorum.groups.assignors.partition_assignor import PartitionAssignorError

NEW = Member(topics=[1])


def test_new_members_take_topic_by_topic() -> None:
    both = Member(topics=[2, 1])
    assert assign("uniform", {"b": both, "a": both}, {1: 2, 2: 2}) == {
        "a": {1: [0, 1]},
        "b": {2: [0, 1]},
    }


def test_each_gives_up_what_exceeds_its_quota() -> None:
    members = {
        "a": Member(topics=[1], had={1: [0, 1, 2]}),
        "b": Member(topics=[1], had={1: [3, 4, 5]}),
        "c": NEW,
    }
    assert assign("uniform", members, {1: 6}) == {
        "a": {1: [0, 1]},
        "b": {1: [3, 4]},
        "c": {1: [2, 5]},
    }


def test_new_partitions_are_given_before_those_that_were_given_up() -> None:
    members = {"a": Member(topics=[1], had={1: [0, 1, 2]}), "b": NEW, "c": NEW}
    assert assign("uniform", members, {1: 6}) == {
        "a": {1: [0, 1]},
        "b": {1: [3, 4]},
        "c": {1: [2, 5]},
    }


def test_the_bigger_quota_is_kept_by_the_member_that_has_so_many() -> None:
    members = {
        "a": Member(topics=[1], had={1: [0, 1]}),
        "b": Member(topics=[1], had={1: [2, 3, 4]}),
    }
    assert assign("uniform", members, {1: 5}) == {"a": {1: [0, 1]}, "b": {1: [2, 3, 4]}}


def test_the_last_members_take_the_bigger_quota_if_none_has_so_many() -> None:
    assert assign("uniform", {"a": NEW, "b": NEW, "c": NEW}, {1: 5}) == {
        "a": {1: [0]},
        "b": {1: [1, 2]},
        "c": {1: [3, 4]},
    }


def test_a_group_that_is_taken_for_homogeneous_has_the_topics_of_its_first_member() -> None:
    members = {"a": NEW, "b": Member(topics=[1, 2], had={2: [0]}), "c": Member(topics=[])}
    assert assign("uniform", members, {1: 3, 2: 1}, taken_for_homogeneous=True) == {
        "a": {1: [0]},
        "b": {1: [1]},
        "c": {1: [2]},
    }


def test_partitions_of_topics_that_are_gone_do_not_fill_a_quota() -> None:
    members = {"a": Member(topics=[1], had={2: [0, 1], 1: [0]}), "b": NEW}
    assert assign("uniform", members, {1: 2}) == {"a": {1: [0]}, "b": {1: [1]}}


def test_a_topic_goes_with_its_last_partition() -> None:
    members = {"a": Member(topics=[1, 2], had={2: [0], 1: [0]}), "b": Member(topics=[1, 2])}
    assert assign("uniform", members, {1: 1, 2: 1}) == {"a": {1: [0]}, "b": {2: [0]}}


def test_the_topics_of_a_changed_target_stand_in_the_order_of_its_copy() -> None:
    # The copy of three topics has four buckets; a fourth one is the first of its bucket.
    members = {"a": Member(topics=[1, 2, 5, 8], had={2: [0], 5: [0], 8: [0]})}
    assert list(assign("uniform", members, dict.fromkeys([1, 2, 5, 8], 1))["a"]) == [8, 1, 5, 2]


def test_a_target_that_stays_is_the_previous_one() -> None:
    group = group_of({"a": Member(topics=[1], had={1: [0]}), "b": NEW}, {1: 2})
    assert ASSIGNORS["uniform"].assign(group)["a"] is group.members.values()[0].assigned


def test_of_partitions_in_one_bucket_those_stay_that_the_record_has_first() -> None:
    members = dict.fromkeys("abcdefghijklmnopq", NEW)
    for had in ([16, 0], [0, 16]):
        members["a"] = Member(topics=[1], had={1: had})
        assert assign("uniform", members, {1: 17})["a"] == {1: had[:1]}


def test_names_without_a_topic_make_the_table_of_topics_bigger() -> None:
    # Sixteen buckets have both topics in one of them, 32 buckets do not.
    for missing_count, first in ((0, 17), (11, 1)):
        member = Member(topics=[17, 1], missing_topic_count=missing_count)
        assert list(assign("uniform", {"a": member, "b": member}, {1: 1, 17: 1})["a"]) == [first]


def test_fewer_subscribers_come_first_and_the_least_loaded_of_them() -> None:
    members = {"a": NEW, "b": Member(topics=[1, 2])}
    assert assign("uniform", members, {1: 4, 2: 2}) == {
        "a": {1: [0, 1, 2]},
        "b": {2: [0, 1], 1: [3]},
    }


def test_the_topic_with_the_most_partitions_for_a_subscriber_comes_first() -> None:
    members = {"a": NEW, "b": Member(topics=[1, 2])}
    assert assign("uniform", members, {1: 6, 2: 2}) == {
        "a": {1: [0, 2, 4, 5]},
        "b": {1: [1, 3], 2: [0, 1]},
    }


def test_ids_of_topics_are_compared_as_signed_numbers() -> None:
    negative = 2**127
    both = Member(topics=[1, negative])
    members = {"a": both, "b": both, "c": Member(topics=[])}
    assert assign("uniform", members, {1: 1, negative: 1}) == {
        "a": {negative: [0]},
        "b": {1: [0]},
        "c": {},
    }


def test_the_table_of_new_partitions_has_room_for_a_fair_share() -> None:
    members = {
        "a": Member(topics=[1], had={1: [0, 1]}),
        "b": Member(topics=[1], had={1: [2, 5]}),
        "c": NEW,
        "d": Member(topics=[]),
    }
    # Four buckets for two partitions.
    assert assign("uniform", members, {1: 6})["c"] == {1: [4, 3]}


def test_the_highest_numbers_move_until_loads_differ_by_one() -> None:
    members = {"a": Member(topics=[1], had={1: range(6)}), "b": Member(topics=[1, 2])}
    assert assign("uniform", members, {1: 6, 2: 1}) == {
        "a": {1: [0, 1, 2, 3]},
        "b": {2: [0], 1: [4, 5]},
    }


def test_nothing_moves_between_members_whose_loads_differ_by_one() -> None:
    members = {"a": Member(topics=[1], had={1: [0, 1]}), "b": Member(topics=[1, 2], had={2: [0]})}
    assert assign("uniform", members, {1: 2, 2: 1}) == {"a": {1: [0, 1]}, "b": {2: [0]}}


def test_a_loaded_member_without_a_partition_of_the_topic_gives_none() -> None:
    members = {
        "a": Member(topics=[1, 2], had={2: range(9)}),
        "b": Member(topics=[1], had={1: range(4)}),
        "c": NEW,
    }
    assert assign("uniform", members, {1: 4, 2: 9}) == {
        "a": {2: [*range(9)]},
        "b": {1: [0, 1]},
        "c": {1: [2, 3]},
    }


def test_a_member_without_topics_gets_nothing() -> None:
    # KAFKA-16930.
    members = {"a": NEW, "b": Member(topics=[])}
    assert assign("uniform", members, {1: 2}) == {"a": {1: [0, 1]}, "b": {}}


def test_a_member_loses_the_topics_that_it_leaves() -> None:
    members = {
        "a": Member(topics=[1], had={1: [0], 2: [0]}),
        "b": Member(topics=[2], had={1: [1], 2: [1]}),
    }
    assert assign("uniform", members, {1: 2, 2: 2}) == {"a": {1: [0, 1]}, "b": {2: [0, 1]}}


@pytest.mark.parametrize("others", [[1, 7], [1]])
def test_a_topic_without_a_number_of_partitions_is_an_error(others: list[int]) -> None:
    members = {"a": Member(topics=[1, 7]), "b": Member(topics=others)}
    text = (
        "Members are subscribed to topic AAAAAAAAAAAAAAAAAAAABw which doesn't exist in the topic "
        "metadata."
    )
    with pytest.raises(PartitionAssignorError, match=text):
        assign("uniform", members, {1: 1})


def test_a_group_without_members_or_topics_has_no_targets() -> None:
    assert assign("uniform", {}, {}) == {}
    assert assign("uniform", {"a": Member(topics=[])}, {1: 1}) == {}


def test_a_target_of_newer_metadata_is_an_error_where_members_differ() -> None:
    """A coordinator may be on a broker that has not heard of new partitions yet."""
    members = {"a": Member(topics=[1], had={1: [0, 2]}), "b": Member(topics=[1, 2])}
    with pytest.raises(PartitionAssignorError, match="has no partition 2, which a member has had"):
        assign("uniform", members, {1: 2, 2: 1})
