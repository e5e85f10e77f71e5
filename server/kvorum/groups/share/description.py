"""ShareGroupDescribe: a committed share group, with the names of its topics."""

from kvorum.groups.assignors.simple_assignor import SimpleAssignor
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share_group.member import ShareGroupMember
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.messages.share_group_describe import ShareGroupDescribeResponse


def describe_share_group(
    shard: ShardState, group_id: str
) -> ShareGroupDescribeResponse.DescribedGroup:
    """Describe a group; refuses the id of none with GROUP_ID_NOT_FOUND."""
    committed = shard.timeline.committed_offset
    group = shard.share_group(group_id, committed)
    epochs = group.epochs(committed)
    return ShareGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state(committed).value,
        group_epoch=epochs.group_epoch,
        assignment_epoch=epochs.assignment_epoch,
        assignor_name=SimpleAssignor().name,
        members=[
            _described(member, shard.image.topics) for member in group.members_in_order(committed)
        ],
    )


def _described(member: ShareGroupMember, topics: TopicsImage) -> ShareGroupDescribeResponse.Member:
    """Describe a member, without topics that are gone."""
    assigned = [
        ShareGroupDescribeResponse.TopicPartitions(
            topic_id, topics.by_id[topic_id].name, list(numbers)
        )
        for topic_id, numbers in member.assigned.items()
        if topic_id in topics.by_id
    ]
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        assignment=ShareGroupDescribeResponse.Assignment(assigned),
    )
