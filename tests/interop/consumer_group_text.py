"""The whole state of our consumer groups, shown as ConsumerGroupText.java does Kafka's."""

from collections.abc import Collection, Iterable, Mapping

from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    PartitionEpochs,
)
from kvorum.wire.uuid_text import uuid_to_text

ABSENT = "~"


def consumer_group_text(group: ConsumerGroup) -> str:
    epochs = group.epochs()
    text = (
        f" consumer {group.group_id} {group.state().value} epoch {epochs.group_epoch}"
        f" assigned {epochs.assignment_epoch}@{epochs.assignment_timestamp_ms}"
        f" hash {epochs.metadata_hash}"
        f"{' legacy' if group.has_partition_metadata else ''}"
    )
    text += f" names {_pairs(group.name_subscriber_counts().items())}"
    text += f" instances {_pairs(group.static_members.items())}"
    text += f" owners {_owners(group)}"
    text += f" regexes {_pairs(group.subscribed_regexes().items())}"
    for regex, resolved in sorted(group.resolved_regexes.items()):
        topics = ",".join(sorted(resolved.topics))
        text += f" resolved {regex}={topics}@v{resolved.version}@t{resolved.timestamp_ms}"
    for _, member in sorted(group.members.items()):
        text += _member_text(member)
    for member_id, target in sorted(group.target_assignment.items()):
        text += f" target {member_id} {_partitions(target)}"
    return text


def _member_text(member: ConsumerGroupMember) -> str:
    facts = (
        member.member_id,
        ABSENT if member.instance_id is None else member.instance_id,
        ABSENT if member.rack_id is None else member.rack_id,
        member.client_id,
        member.client_host,
        ",".join(sorted(member.subscribed_topic_names)),
        member.subscribed_topic_regex,
        member.rebalance_timeout_ms,
        ABSENT if member.server_assignor is None else member.server_assignor,
        _protocol_text(member.classic_metadata),
        f"{member.member_epoch}<{member.previous_member_epoch}",
        member.state.name,
        "has",
        _partition_epochs(member.assigned),
        "revokes",
        _partition_epochs(member.pending_revocation),
    )
    return f" member {' '.join(map(str, facts))}"


def _protocol_text(classic: ClassicMemberMetadata | None) -> str:
    if classic is None:
        return "consumer"
    protocols = (f",{one.name}={one.metadata.hex()}" for one in classic.supported_protocols)
    return f"classic@{classic.session_timeout_ms}{''.join(protocols)}"


def _owners(group: ConsumerGroup) -> str:
    owners: dict[bytes, dict[int, int]] = {}
    for (topic_id, partition), epoch in group.owners():
        owners.setdefault(topic_id, {})[partition] = epoch
    return _partition_epochs(owners)


def _partition_epochs(partitions: PartitionEpochs) -> str:
    return ";".join(
        sorted(
            f"{uuid_to_text(one)}:{_pairs(epochs.items())}" for one, epochs in partitions.items()
        )
    )


def _partitions(partitions: Mapping[bytes, Collection[int]]) -> str:
    texts = (
        f"{uuid_to_text(topic_id)}:{','.join(map(str, sorted(of_topic)))}"
        for topic_id, of_topic in partitions.items()
    )
    return ";".join(sorted(texts))


def _pairs(pairs: Iterable[tuple[str, object]] | Iterable[tuple[int, int]]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(pairs, key=lambda pair: pair[0]))
