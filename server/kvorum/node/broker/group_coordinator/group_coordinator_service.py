"""The group coordinator as requests see it (GroupCoordinatorService).

A method that takes a `then` calls it once: with the response when it may be sent, or with a
RequestError. It raises RequestError itself where that is known at once. Authorization is for
handlers.
"""

import uuid
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final

from kvorum.broker.partition import Partition
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.coordinator.effects import Effects
from kvorum.coordinator.result import CoordinatorResult
from kvorum.groups.append_errors import (
    append_error_to_fetch_error,
    append_error_to_transactional_error,
)
from kvorum.groups.consumer_group.heartbeat_checks import check_heartbeat
from kvorum.groups.outbox import FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import ImageDelta, MetadataImage
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.broker.coordinator.runtime import CoordinatorRuntime
from kvorum.node.broker.coordinator.settings import FIRST_SEQUENCE, LEADER_ONLY, CoordinatorSettings
from kvorum.node.broker.coordinator.transaction_write import TransactionWrite
from kvorum.node.broker.coordinator.write_event import Then
from kvorum.node.broker.group_coordinator.group_operations import GroupOperation, GroupOperations
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.config import GroupSettings
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.delete_groups import DeleteGroupsResponse
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.messages.list_groups import ListGroupsResponse
from kvorum.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kvorum.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kvorum.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_UUID_BYTES: Final = 16
_RANDOM_UUID: Final = 4


class GroupCoordinatorService:
    """Groups, and the offsets of classic and consumer groups, on this broker's partitions.

    The requests of share groups are in `ShareGroupService`.
    """

    def __init__(
        self,
        settings: GroupSettings,
        replicas: ReplicaManager,
        *,
        broker_id: int,
        runtime: Runtime,
        random: Random,
    ) -> None:
        self._settings = settings
        self._random = random
        self.image = MetadataImage()
        """The metadata that the broker has published last."""
        self._broker_id = broker_id
        self.runtime = CoordinatorRuntime(
            CoordinatorSettings(
                topic=GROUP_METADATA_TOPIC,
                partition_count=settings.topic.partition_count,
                compression=settings.topic.compression,
                required_acks=LEADER_ONLY,
                base_sequence=FIRST_SEQUENCE,
                commit_timeout_ms=settings.commit_timeout_ms,
                append_linger_ms=settings.append_linger_ms,
            ),
            self._new_shard,
            replicas.partition,
            broker_id=broker_id,
            runtime=runtime,
        )
        """The coordinators of this broker's partitions."""
        self.operations = GroupOperations(self.runtime)
        """The way to the coordinators of groups."""

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change of the image that the partitions have followed already."""
        self.image = after
        self.runtime.on_image(before, after)
        topics = ImageDelta(before, after).topics
        has_new_topics = bool(topics.added)
        gone = list(topics.removed.values())
        changed = [topic for _, topic in topics.changed.values()]
        names = {topic.name for topic in (*topics.added.values(), *changed, *gone)}
        for context in self.runtime.contexts():
            if gone:
                context.write_unasked(lambda shard, _: shard.on_topics_deleted(gone))
                context.write_unasked(lambda shard, _: shard.on_state_topics_deleted(gone))
            if names:
                context.write_unasked(
                    lambda shard, _: shard.on_topics_changed(names, has_new_topics=has_new_topics)
                )

    def topic_name(self, topic_id: bytes) -> str:
        """Return the name of a topic, an empty one for a topic that is gone."""
        topic = self.image.topics.by_id.get(topic_id)
        return "" if topic is None else topic.name

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self.runtime.close()

    def join_group(
        self, context: RequestContext, request: JoinGroupRequest, then: Then[JoinGroupResponse]
    ) -> None:
        """Have a member join; the response may come when other members have joined."""
        problem = self._join_problem(request)
        if problem is not None:
            then(_join_refusal(problem, request.member_id, context.version))
            return
        promise = JoinPromise(then, version=context.version)
        self.operations.write_promised(
            request.group_id,
            promise,
            lambda shard, now_ms: shard.join_group(context, request, promise, now_ms),
            lambda error: then(_join_refusal(error.code, "", context.version)),
        )

    def sync_group(self, request: SyncGroupRequest, then: Then[SyncGroupResponse]) -> None:
        """Give a member its assignment, which the leader of the group may yet have to send."""
        self.demand_group_id(request.group_id)
        promise = SyncPromise(then)
        self.operations.write_promised(
            request.group_id, promise, lambda shard, _: shard.sync_group(request, promise), then
        )

    def heartbeat(self, request: HeartbeatRequest, then: Then[HeartbeatResponse]) -> None:
        """Keep a member's session; while the group is being loaded, every member is kept."""
        self.demand_group_id(request.group_id)
        try:
            self.operations.write(
                request.group_id, lambda shard, now_ms: shard.heartbeat(request, now_ms), then
            )
        except RequestError as error:
            if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            then(HeartbeatResponse())

    def leave_group(self, request: LeaveGroupRequest, then: Then[LeaveGroupResponse]) -> None:
        """Remove the members of a list."""
        self.demand_group_id(request.group_id)
        self.operations.write(
            request.group_id, lambda shard, now_ms: shard.leave_group(request, now_ms), then
        )

    def consumer_group_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        then: Then[ConsumerGroupHeartbeatResponse],
    ) -> None:
        """Have a member of a consumer group join, stay or leave."""
        self.runtime.demand_active()
        check_heartbeat(request, context.version, self._settings.coordinator.consumer.assignors)
        self.operations.write(
            request.group_id,
            lambda shard, now_ms: shard.consumer_group_heartbeat(context, request, now_ms),
            then,
        )

    def commit_offsets(
        self,
        context: RequestContext,
        request: OffsetCommitRequest,
        then: Then[OffsetCommitResponse],
    ) -> None:
        """Commit offsets of topics that exist, named by both name and id."""
        self.operations.write(
            request.group_id,
            lambda shard, now_ms: shard.commit_offsets(context, request, now_ms),
            then,
        )

    def partition_of_transaction(self, group_id: str) -> Partition:
        """Return the partition that a transaction with a group's offsets has to have."""
        self.demand_group_id(group_id)
        return self.operations.context_for(group_id).partition

    def commit_transactional_offsets(
        self,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        transaction: TransactionWrite,
        then: Then[TxnOffsetCommitResponse],
    ) -> None:
        """Commit offsets in a verified transaction; they wait for its end."""
        self.operations.write(
            request.group_id,
            lambda shard, now_ms: shard.commit_transactional_offsets(context, request, now_ms),
            then,
            append_error_to_transactional_error,
            transaction,
        )

    def complete_transaction(
        self, partition: int, marker: TransactionMarker, then: Then[None]
    ) -> None:
        """Write the marker that ends a transaction to a partition of ``__consumer_offsets``.

        `then` is called when it is committed, with the transaction's offsets.
        """
        self.runtime.context(partition).complete_transaction(marker, then)

    def fetch_offsets(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """Return a group's committed offsets."""
        context = self.operations.context_for(request.group_id)
        return context.read(lambda shard: shard.fetch_offsets(request, require_stable=False))

    def fetch_stable_offsets(
        self, request: OffsetFetchRequestGroup, then: Then[OffsetFetchResponseGroup]
    ) -> None:
        """Return a group's newest offsets, once they are committed."""
        self.operations.write(
            request.group_id,
            lambda shard, _: CoordinatorResult(
                effects=Effects(), response=shard.fetch_offsets(request, require_stable=True)
            ),
            then,
            append_error_to_fetch_error,
        )

    def delete_offsets(
        self, request: OffsetDeleteRequest, then: Then[OffsetDeleteResponse]
    ) -> None:
        """Delete offsets of topics that no member consumes."""
        self.demand_group_id(request.group_id)
        self.operations.write(
            request.group_id, lambda shard, _: shard.delete_offsets(request), then
        )

    def delete_groups(
        self, group_ids: Sequence[str], then: Then[list[DeleteGroupsResponse.DeletableGroupResult]]
    ) -> None:
        """Delete empty groups, no id twice; those of one partition in one batch."""
        by_partition: dict[int, list[str]] = {}
        for group_id in group_ids:
            by_partition.setdefault(self.runtime.partition_for(group_id), []).append(group_id)
        results: dict[int, list[DeleteGroupsResponse.DeletableGroupResult]] = {}

        def deleted(
            partition: int, result: list[DeleteGroupsResponse.DeletableGroupResult] | RequestError
        ) -> None:
            if isinstance(result, RequestError):
                result = [
                    DeleteGroupsResponse.DeletableGroupResult(one, result.code)
                    for one in by_partition[partition]
                ]
            results[partition] = result
            if len(results) == len(by_partition):
                then([one for each in by_partition for one in results[each]])

        for partition, ids in by_partition.items():
            try:
                self.operations.write_to_partition(
                    partition, _deletion(ids), partial(deleted, partition)
                )
            except RequestError as error:
                deleted(partition, error)
        if not by_partition:
            then([])

    def describe_group(self, version: int, group_id: str) -> DescribeGroupsResponse.DescribedGroup:
        """Describe a group as it is committed."""
        try:
            context = self.operations.context_for(group_id)
            return context.read(lambda shard: shard.describe_group(version, group_id))
        except RequestError as error:
            return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.code)

    def describe_consumer_group(
        self, group_id: str
    ) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """Describe a consumer group as it is committed."""
        try:
            self.demand_group_id(group_id)
            context = self.operations.context_for(group_id)
            return context.read(lambda shard: shard.describe_consumer_group(group_id))
        except RequestError as error:
            return ConsumerGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=error.code, error_message=error.own_message
            )

    def list_groups(
        self, states: Sequence[str], types: Sequence[str]
    ) -> list[ListGroupsResponse.ListedGroup]:
        """List the groups of this broker; raises RequestError while one partition is loaded."""
        self.runtime.demand_active()
        listed: list[ListGroupsResponse.ListedGroup] = []
        for context in self.runtime.contexts():
            try:
                listed += context.read(lambda shard: shard.list_groups(states, types))
            except RequestError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return listed

    def _new_shard(self) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            self._settings.coordinator,
            self._new_uuid,
            image=lambda: self.image,
            broker_id=self._broker_id,
        )

    def _new_uuid(self) -> str:
        return str(uuid.UUID(bytes=self._random.randbytes(_UUID_BYTES), version=_RANDOM_UUID))

    def demand_group_id(self, group_id: str) -> None:
        """Refuse an empty group id with INVALID_GROUP_ID, and each of a service that is closed."""
        self.runtime.demand_active()
        if not group_id:
            raise RequestError.with_default_message(ErrorCode.INVALID_GROUP_ID)

    def _join_problem(self, request: JoinGroupRequest) -> ErrorCode | None:
        try:
            self.demand_group_id(request.group_id)
        except RequestError as error:
            return error.code
        settings, timeout_ms = self._settings, request.session_timeout_ms
        is_valid = settings.session_timeout_ms_min <= timeout_ms <= settings.session_timeout_ms_max
        return None if is_valid else ErrorCode.INVALID_SESSION_TIMEOUT


def _deletion(
    group_ids: list[str],
) -> GroupOperation[list[DeleteGroupsResponse.DeletableGroupResult]]:
    return lambda shard, _: shard.delete_groups(group_ids)


def _join_refusal(error: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    has_null_name = version >= FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
    return JoinGroupResponse(
        error_code=error, member_id=member_id, protocol_name=None if has_null_name else ""
    )
