"""The simple assignor of share groups: equal shares, few moves, partitions of several members."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from tests.unit.groups.assignors.assigned import Member, group_of, topic_id

from kvorum.groups.assignors.partition_assignor import PartitionAssignorError
from kvorum.groups.assignors.simple_assignor import SimpleAssignor

NEW = Member(topics=[1])
"""A new member; Java's hash of partition 1 of its topic comes before that of partition 0."""


def assign(
    members: Mapping[str, Member],
    partition_counts: Mapping[int, int],
    assignable: Mapping[int, Collection[int]] | None = None,
) -> dict[str, dict[int, list[int]]]:
    """Return each member's partitions by topic; without `assignable` it may get every partition."""
    group = group_of(members, partition_counts)
    if assignable is not None:
        of_topics = {topic_id(topic): numbers for topic, numbers in assignable.items()}
        group = replace(group, assignable=of_topics)
    return {
        member_id: {int.from_bytes(topic): list(numbers) for topic, numbers in target.items()}
        for member_id, target in SimpleAssignor().assign(group).items()
    }


def test_each_partition_goes_to_equally_many_members() -> None:
    assert assign({"a": NEW, "b": NEW, "c": NEW, "d": NEW}, {1: 2}) == {
        "a": {1: [1]},
        "b": {1: [1]},
        "c": {1: [0]},
        "d": {1: [0]},
    }


def test_more_partitions_than_members_are_divided_among_these() -> None:
    assert assign({"a": NEW, "b": NEW}, {1: 5}) == {"a": {1: [0, 1, 3]}, "b": {1: [2, 4]}}


def test_only_partitions_that_may_be_assigned_are_shared() -> None:
    assert assign({"a": NEW, "b": NEW}, {1: 5}, {1: [3]}) == {"a": {1: [3]}, "b": {1: [3]}}


def test_a_member_keeps_what_is_not_too_much_for_it() -> None:
    members = {"a": Member(topics=[1], had={1: [0, 1, 2, 3]}), "b": NEW}
    assert assign(members, {1: 4}) == {"a": {1: [0, 3]}, "b": {1: [1, 2]}}


def test_a_topic_stays_in_the_target_of_a_member_that_has_lost_all_its_partitions() -> None:
    members = {"a": Member(topics=[1], had={2: [0], 1: [0]}), "b": Member(topics=[2], had={1: [0]})}
    assert assign(members, {1: 1, 2: 1}) == {"a": {1: [0], 2: []}, "b": {1: [], 2: [0]}}


def test_topics_without_subscribers_are_kept_where_members_subscribe_to_different_ones() -> None:
    members = {"a": Member(topics=[1], had={3: [0]}), "b": Member(topics=[2])}
    assert assign(members, {1: 1, 2: 1}) == {"a": {3: [0], 1: [0]}, "b": {2: [0]}}
    assert assign({"a": Member(topics=[1], had={3: [0]})}, {1: 1}) == {"a": {1: [0]}}


def test_the_assignor_fails_where_partitions_that_may_not_be_assigned_fill_the_members() -> None:
    members = {"a": Member(topics=[1], had={1: [4]}), "b": NEW, "c": NEW}
    with pytest.raises(PartitionAssignorError):
        assign(members, {1: 5}, {1: [0]})


def test_a_group_without_members_or_topics_has_no_targets() -> None:
    assert assign({}, {1: 1}) == {}
    nothing = Member(topics=[])
    assert assign({"a": nothing, "b": nothing}, {}) == {"a": {}, "b": {}}
