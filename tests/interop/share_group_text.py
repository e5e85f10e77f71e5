"""The whole state of our share groups, shown as ShareGroupText.java does Kafka's."""

from collections.abc import Collection, Mapping

from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.member import ShareGroupMember
from kvorum.groups.share_group.state_partitions import StatePartitions, StateTopics
from kvorum.wire.uuid_text import uuid_to_text

ABSENT = "~"


def share_group_text(group: ShareGroup, state: StatePartitions | None) -> str:
    epochs = group.epochs()
    kind = "Homogeneous" if group.is_homogeneous() else "Heterogeneous"
    names = ",".join(f"{name}={n}" for name, n in sorted(group.name_subscriber_counts().items()))
    text = (
        f" share {group.group_id} {group.state().value} epoch {epochs.group_epoch}"
        f" assigned {epochs.assignment_epoch}@{epochs.assignment_timestamp_ms}"
        f" hash {epochs.metadata_hash} {kind} names {names}"
    )
    for _, member in sorted(group.members.items()):
        text += _member_text(member)
    for member_id, target in sorted(group.target_assignment.items()):
        text += f" target {member_id} {partitions_text(target)}"
    if state is not None:
        deleting = ",".join(sorted(map(uuid_to_text, state.deleting)))
        text += f" initializing {_topics(state.initializing)}"
        text += f" initialized {_topics(state.initialized)} deleting {deleting}"
    return text


def partitions_text(partitions: Mapping[bytes, Collection[int]]) -> str:
    return ";".join(
        sorted(f"{uuid_to_text(one)}:{_joined(numbers)}" for one, numbers in partitions.items())
    )


def _member_text(member: ShareGroupMember) -> str:
    facts = (
        member.member_id,
        ABSENT if member.rack_id is None else member.rack_id,
        member.client_id,
        member.client_host,
        ",".join(sorted(member.subscribed_topic_names)),
        f"{member.member_epoch}<{member.previous_member_epoch}",
        member.state.name,
        "shares",
        partitions_text(member.assigned),
    )
    return f" member {' '.join(facts)}"


def _topics(topics: StateTopics) -> str:
    return ";".join(
        sorted(
            f"{uuid_to_text(one)}/{topic.name}@{topic.timestamp_ms}:{_joined(topic.partitions)}"
            for one, topic in topics.items()
        )
    )


def _joined(numbers: Collection[int]) -> str:
    return ",".join(map(str, sorted(numbers)))
