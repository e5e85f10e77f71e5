"""The range assignor: the order of members, and the length of ranges."""

import pytest
from tests.unit.groups.assignors.assigned import Member, assign

from kvorum.groups.assignors.partition_assignor import PartitionAssignorError

ONE_TOPIC = Member(topics=[1])
BOTH_TOPICS = Member(topics=[1, 2])


def test_the_first_members_get_one_partition_more() -> None:
    members = {"c": ONE_TOPIC, "a": ONE_TOPIC, "b": ONE_TOPIC}
    assert assign("range", members, {1: 7}) == {
        "a": {1: [0, 1, 2]},
        "b": {1: [3, 4]},
        "c": {1: [5, 6]},
    }


def test_topics_of_the_same_size_are_co_partitioned() -> None:
    assert assign("range", {"a": BOTH_TOPICS, "b": BOTH_TOPICS}, {1: 3, 2: 3}) == {
        "a": {1: [0, 1], 2: [0, 1]},
        "b": {1: [2], 2: [2]},
    }


def test_a_member_without_a_partition_has_no_topic_either() -> None:
    assert assign("range", {"a": ONE_TOPIC, "b": ONE_TOPIC}, {1: 1}) == {"a": {1: [0]}, "b": {}}


def test_only_subscribers_share_a_topic() -> None:
    assert assign("range", {"a": ONE_TOPIC, "b": BOTH_TOPICS}, {1: 2, 2: 2}) == {
        "a": {1: [0]},
        "b": {1: [1], 2: [0, 1]},
    }


def test_a_group_that_is_taken_for_homogeneous_has_the_topics_of_its_first_member() -> None:
    members = {"a": ONE_TOPIC, "b": BOTH_TOPICS, "c": Member(topics=[])}
    assert assign("range", members, {1: 3, 2: 1}, taken_for_homogeneous=True) == {
        "a": {1: [0]},
        "b": {1: [1]},
        "c": {1: [2]},
    }


def test_what_members_had_does_not_count() -> None:
    members = {"a": Member(topics=[1], had={1: [1]}), "b": Member(topics=[1], had={1: [0]})}
    assert assign("range", members, {1: 2}) == {"a": {1: [0]}, "b": {1: [1]}}


def test_static_members_come_first_by_their_instance_ids() -> None:
    members = {
        "a": ONE_TOPIC,
        "b": Member(topics=[1], instance_id="z"),
        "c": Member(topics=[1], instance_id="y"),
    }
    assert assign("range", members, {1: 3}) == {"c": {1: [0]}, "b": {1: [1]}, "a": {1: [2]}}


def test_ids_are_ordered_by_their_utf_16_units() -> None:
    # Two units make the second character, the first of which is smaller than the other's.
    members = {"\uffee": ONE_TOPIC, "\U0001f600": ONE_TOPIC}
    assert assign("range", members, {1: 2}) == {"\U0001f600": {1: [0]}, "\uffee": {1: [1]}}


def test_the_topics_of_a_target_stand_in_the_order_of_a_table() -> None:
    # The table of three topics has eight buckets.
    members = {"a": Member(topics=[3, 10, 1])}
    assert list(assign("range", members, {1: 1, 3: 1, 10: 1})["a"]) == [1, 10, 3]


def test_a_topic_without_a_number_of_partitions_is_an_error() -> None:
    with pytest.raises(PartitionAssignorError, match="subscribed to a non-existent topic"):
        assign("range", {"a": BOTH_TOPICS}, {1: 1})


def test_a_group_without_members_has_no_targets() -> None:
    assert assign("range", {}, {}) == {}
