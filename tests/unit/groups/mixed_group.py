"""A group whose members use both protocols, for tests, with topics for them to consume."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from tests.unit.groups.coordinator import GROUP, JOIN_MS, REBALANCE_MS, Coordinator

from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.migration_policy import MigrationPolicy
from kvorum.groups.promises import JoinPromise
from kvorum.groups.settings import ConsumerGroupSettings
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

TOPIC_IDS: Final = {"one": bytes(15) + b"1", "two": bytes(15) + b"2"}
PARTITIONS: Final = range(2)
Owned = Mapping[str, Sequence[int]]
"""Partitions by topic."""


class MixedGroup(Coordinator):
    """A coordinator of one group; a new target waits for the last one to be that old."""

    def __init__(
        self,
        policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL,
        *,
        group_max_size: int = 2**31 - 1,
        assignment_interval_ms: int = 0,
    ) -> None:
        consumer = ConsumerGroupSettings(
            assignment_interval_ms=assignment_interval_ms, migration_policy=policy
        )
        super().__init__(consumer=consumer, group_max_size=group_max_size)
        records: list[Message] = []
        for name, topic_id in TOPIC_IDS.items():
            records.append(TopicRecord(name, topic_id))
            records += [PartitionRecord(index, topic_id, [1], [1]) for index in PARTITIONS]
        self.image = MetadataImage().apply_all((one, 0, 0) for one in records)

    @property
    def consumer_group(self) -> ConsumerGroup:
        return self.shard.state.consumer_group(GROUP)

    def member(self, member_id: str) -> ConsumerGroupMember:
        return self.consumer_group.member(member_id)

    def consume(
        self,
        member_id: str,
        *topics: str,
        epoch: int = 0,
        instance: str | None = None,
        regex: str | None = None,
        error: ErrorCode | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """Have a consumer heartbeat; raises what it is refused with.

        An `error` is that of the append, after which a client would not hear of the response.
        """
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=-1 if epoch else REBALANCE_MS,
            subscribed_topic_names=list(topics) if topics else None,
            subscribed_topic_regex=regex,
            topic_partitions=None if epoch else [],
        )
        return self.consumer_heartbeat(request, error)

    def refusal(self, member_id: str, *topics: str, instance: str | None = None) -> RequestError:
        """Have a consumer join in vain."""
        try:
            self.consume(member_id, *topics, instance=instance)
        except RequestError as error:
            return error
        raise AssertionError(f"{member_id} has joined")

    def join_as_classic(
        self,
        member_id: str,
        *topics: str,
        owned: Owned | None = None,
        instance: str | None = None,
    ) -> JoinPromise:
        """Have a consumer of the classic protocol join."""
        data = subscription(topics, owned or {})
        return self.join(member_id, instance=instance, subscription=data)

    def stable_classic_group(
        self, *assignments: bytes, instances: Sequence[str | None] = ()
    ) -> list[str]:
        """Have as many members join for topic "one" as there are assignments; return their ids."""
        of_members = [*instances, *[None] * (len(assignments) - len(instances))]
        promises = [
            self.join(instance=one, version=9 if one else 3, subscription=subscription(["one"]))
            for one in of_members
        ]
        self.advance(JOIN_MS)
        ids = [self.join_response(promise).member_id for promise in promises]
        assert self.group.leader_id == ids[0]
        self.sync(ids[0], dict(zip(ids, assignments, strict=True)))
        for one in ids[1:]:
            self.sync(one)
        return ids

    def error_of_sync(self, member_id: str, generation: int) -> ErrorCode:
        promise = self.sync(member_id, generation=generation)
        return ErrorCode(self.sync_response(promise).error_code)

    def _new_uuid(self) -> str:
        self._ids += 1
        return str(UUID(int=self._ids << 64))


def subscription(topics: Sequence[str], owned: Owned | None = None, version: int = 1) -> bytes:
    """Return the bytes of a subscription, as clients embed them in JoinGroup."""
    partitions = [
        ConsumerProtocolSubscription.TopicPartition(name, list(of_topic))
        for name, of_topic in (owned or {}).items()
    ]
    message = ConsumerProtocolSubscription(list(topics), owned_partitions=partitions)
    return version.to_bytes(2) + message.encode(version)


def assignment(owned: Owned, *, user_data: bytes | None = None) -> bytes:
    """Return the bytes of an assignment, as clients embed them in SyncGroup."""
    partitions = [
        ConsumerProtocolAssignment.TopicPartition(name, list(of_topic))
        for name, of_topic in owned.items()
    ]
    return bytes(2) + ConsumerProtocolAssignment(partitions, user_data).encode(0)


def owned_by(member: ConsumerGroupMember) -> dict[str, list[int]]:
    """Return the partitions that a member of a consumer group may own."""
    names = {topic_id: name for name, topic_id in TOPIC_IDS.items()}
    return {names[topic_id]: sorted(found) for topic_id, found in member.assigned.items()}
