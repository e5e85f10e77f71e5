"""ConsumerGroupDescribe: a committed consumer group, with the names of its topics."""

from collections.abc import Iterable, Mapping

from kvorum.groups.consumer.assignor_votes import preferred_assignor
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1
_Assignment = ConsumerGroupDescribeResponse.Assignment


def describe_consumer_group(
    shard: ShardState, group_id: str
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    """Describe a group; refuses the id of none with GROUP_ID_NOT_FOUND."""
    committed = shard.timeline.committed_offset
    group = shard.consumer_group(group_id, committed)
    epochs = group.epochs(committed)
    preferred = preferred_assignor(group.assignor_votes(committed))
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state(committed).value,
        group_epoch=epochs.group_epoch,
        assignment_epoch=epochs.assignment_epoch,
        assignor_name=preferred or shard.settings.consumer.assignors[0],
        members=[
            _described(group, member, shard.image.topics, committed)
            for member in group.members_in_order(committed)
        ],
    )


def _described(
    group: ConsumerGroup, member: ConsumerGroupMember, topics: TopicsImage, epoch: int
) -> ConsumerGroupDescribeResponse.Member:
    target = group.target_assignment.get(member.member_id, epoch) or {}
    owned: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, of_topic in partitions.items():
            owned.setdefault(topic_id, []).extend(of_topic)
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(owned, topics),
        target_assignment=_assignment(target, topics),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], topics: TopicsImage) -> _Assignment:
    """Return partitions with the names of their topics, without topics that are gone."""
    return _Assignment(
        [
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=topics.by_id[topic_id].name, partitions=list(of_topic)
            )
            for topic_id, of_topic in partitions.items()
            if topic_id in topics.by_id
        ]
    )
