"""The group coordinator as requests see it (GroupCoordinatorService).

A method that takes a `then` calls it once: with the response when it may be sent, or with a
RequestError. It raises RequestError itself where that is known at once. Authorization is for
handlers.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Final, Generic, TypeAlias, TypeVar

from kvorum.broker.partition import Partition
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.groups.append_errors import (
    append_error_to_fetch_error,
    append_error_to_response_error,
    append_error_to_transactional_error,
)
from kvorum.groups.coordinator_partition import GROUP_METADATA_TOPIC, coordinator_partition
from kvorum.groups.effects import (
    FIRST_VERSION_WITH_NULL_PROTOCOL_NAME,
    Effects,
    JoinPromise,
    SyncPromise,
)
from kvorum.groups.results import CoordinatorResult
from kvorum.groups.settings import RequestContext
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.node.broker.group_coordinator.coordinator_context import (
    CoordinatorContext,
    CoordinatorEnvironment,
    Then,
    WriteOperation,
)
from kvorum.node.broker.group_coordinator.coordinator_partition_writer import (
    OUTSIDE,
    TransactionWrite,
)
from kvorum.node.broker.group_coordinator.coordinator_runtime import CoordinatorRuntime
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.config import GroupSettings
from kvorum.node.event_loop import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_groups import DeleteGroupsResponseDeletableGroupResult
from kvorum.wire.messages.describe_groups import DescribeGroupsResponseDescribedGroup
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.messages.list_groups import ListGroupsResponseListedGroup
from kvorum.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kvorum.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kvorum.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

Response = TypeVar("Response")
ErrorMapping: TypeAlias = Callable[[ErrorCode], ErrorCode]
Promise: TypeAlias = JoinPromise | SyncPromise
_UUID_BYTES: Final = 16
_RANDOM_UUID: Final = 4


class GroupCoordinatorService:
    """Classic groups, and the offsets of all groups, on this broker's partitions."""

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
        self._partition_count: int | None = None
        self._is_active = True
        environment = CoordinatorEnvironment(
            runtime=runtime,
            new_shard=self._new_shard,
            commit_timeout_ms=settings.commit_timeout_ms,
            compression=settings.topic.compression,
        )
        self._runtime = CoordinatorRuntime(broker_id, replicas, environment)

    def partition_for(self, group_id: str) -> int:
        """Return the partition that coordinates a group."""
        if self._partition_count is None or not self._is_active:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return coordinator_partition(group_id, self._partition_count)

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change of the image that the partitions have followed already."""
        if self._partition_count is None:
            # As in Kafka, the count of this moment stays in force as long as the broker runs.
            topic = after.topics.by_name(GROUP_METADATA_TOPIC)
            count = self._settings.topic.partition_count if topic is None else len(topic.partitions)
            self._partition_count = count
        if self._is_active:
            self._runtime.on_image(before, after)

    def active_shards(self) -> Iterator[GroupCoordinatorShard]:
        """Yield the shards that are loaded; to be read only."""
        for context in self._runtime.contexts():
            if context.active_shard is not None:
                yield context.active_shard

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self._is_active = False
        self._runtime.close()

    def join_group(
        self, context: RequestContext, request: JoinGroupRequest, then: Then[JoinGroupResponse]
    ) -> None:
        """Have a member join; the response may come when other members have joined."""
        problem = self._join_problem(request)
        if problem is not None:
            then(_join_refusal(problem, request.member_id, context.version))
            return
        once = _Once(then)

        def refuse(error: RequestError) -> None:
            once(_join_refusal(error.code, "", context.version))

        promise = JoinPromise(context.version, once)
        try:
            self._write_promised(
                request.group_id,
                promise,
                lambda shard, now_ms: shard.join_group(context, request, promise, now_ms),
                refuse,
            )
        except RequestError as error:
            refuse(error)

    def sync_group(self, request: SyncGroupRequest, then: Then[SyncGroupResponse]) -> None:
        """Give a member its assignment, which the leader of the group may yet have to send."""
        self._demand_group_id(request.group_id)
        once = _Once(then)
        promise = SyncPromise(once)
        self._write_promised(
            request.group_id,
            promise,
            lambda shard, now_ms: shard.sync_group(request, promise, now_ms),
            once,
        )

    def heartbeat(self, request: HeartbeatRequest, then: Then[HeartbeatResponse]) -> None:
        """Keep a member's session; while the group is being loaded, every member is kept."""
        self._demand_group_id(request.group_id)
        try:
            self._write(
                request.group_id, lambda shard, now_ms: shard.heartbeat(request, now_ms), then
            )
        except RequestError as error:
            if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            then(HeartbeatResponse())

    def leave_group(self, request: LeaveGroupRequest, then: Then[LeaveGroupResponse]) -> None:
        """Remove the members of a list."""
        self._demand_group_id(request.group_id)
        self._write(
            request.group_id, lambda shard, now_ms: shard.leave_group(request, now_ms), then
        )

    def commit_offsets(
        self,
        context: RequestContext,
        request: OffsetCommitRequest,
        then: Then[OffsetCommitResponse],
    ) -> None:
        """Commit offsets of topics that exist, named by both name and id."""
        self._write(
            request.group_id,
            lambda shard, now_ms: shard.commit_offsets(context, request, now_ms),
            then,
        )

    def partition_of_transaction(self, group_id: str) -> Partition:
        """Return the partition that a transaction with a group's offsets has to have."""
        self._demand_group_id(group_id)
        return self._context(group_id).partition

    def commit_transactional_offsets(
        self,
        request: TxnOffsetCommitRequest,
        transaction: TransactionWrite,
        then: Then[TxnOffsetCommitResponse],
    ) -> None:
        """Commit offsets in a verified transaction; they wait for its end."""
        self._write(
            request.group_id,
            lambda shard, now_ms: shard.commit_transactional_offsets(request, now_ms),
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
        if not self._is_active:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._runtime.context(partition).complete_transaction(marker, then)

    def fetch_offsets(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """Return a group's committed offsets."""
        context = self._context(request.group_id)
        return context.read(lambda shard: shard.fetch_offsets(request, require_stable=False))

    def fetch_stable_offsets(
        self, request: OffsetFetchRequestGroup, then: Then[OffsetFetchResponseGroup]
    ) -> None:
        """Return a group's newest offsets, once they are committed."""
        self._write(
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
        self._demand_group_id(request.group_id)
        self._write(
            request.group_id, lambda shard, now_ms: shard.delete_offsets(request, now_ms), then
        )

    def delete_groups(
        self,
        group_ids: Sequence[str],
        then: Then[list[DeleteGroupsResponseDeletableGroupResult]],
    ) -> None:
        """Delete empty groups, no id twice; those of one partition in one batch."""
        by_partition = self._by_partition(group_ids)
        results: dict[int, list[DeleteGroupsResponseDeletableGroupResult]] = {}

        def deleted(
            partition: int, result: list[DeleteGroupsResponseDeletableGroupResult] | RequestError
        ) -> None:
            if isinstance(result, RequestError):
                result = [
                    DeleteGroupsResponseDeletableGroupResult(one, result.code)
                    for one in by_partition[partition]
                ]
            results[partition] = result
            if len(results) == len(by_partition):
                then([one for each in by_partition for one in results[each]])

        for partition, ids in by_partition.items():
            try:
                self._write(ids[0], _deletion(ids), partial(deleted, partition))
            except RequestError as error:
                deleted(partition, error)
        if not by_partition:
            then([])

    def describe_group(self, version: int, group_id: str) -> DescribeGroupsResponseDescribedGroup:
        """Describe a group as it is committed."""
        try:
            context = self._context(group_id)
            return context.read(lambda shard: shard.describe_group(version, group_id))
        except RequestError as error:
            return DescribeGroupsResponseDescribedGroup(group_id=group_id, error_code=error.code)

    def list_groups(
        self, states: Sequence[str], types: Sequence[str]
    ) -> list[ListGroupsResponseListedGroup]:
        """List the groups of this broker; raises RequestError while one partition is loaded."""
        if not self._is_active:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        listed: list[ListGroupsResponseListedGroup] = []
        for context in self._runtime.contexts():
            try:
                listed += context.read(lambda shard: shard.list_groups(states, types))
            except RequestError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return listed

    def _new_shard(self) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(self._settings.coordinator, self._new_uuid)

    def _new_uuid(self) -> str:
        return str(uuid.UUID(bytes=self._random.randbytes(_UUID_BYTES), version=_RANDOM_UUID))

    def _context(self, group_id: str) -> CoordinatorContext:
        return self._runtime.context(self.partition_for(group_id))

    def _demand_group_id(self, group_id: str) -> None:
        if not self._is_active:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not group_id:
            raise RequestError.with_default_message(ErrorCode.INVALID_GROUP_ID)

    def _join_problem(self, request: JoinGroupRequest) -> ErrorCode | None:
        try:
            self._demand_group_id(request.group_id)
        except RequestError as error:
            return error.code
        settings, timeout_ms = self._settings, request.session_timeout_ms
        is_valid = settings.session_timeout_ms_min <= timeout_ms <= settings.session_timeout_ms_max
        return None if is_valid else ErrorCode.INVALID_SESSION_TIMEOUT

    def _write(
        self,
        group_id: str,
        decide: WriteOperation[Response],
        then: Then[Response],
        mapping: ErrorMapping = append_error_to_response_error,
        transaction: TransactionWrite = OUTSIDE,
    ) -> None:
        def written(result: Response | RequestError | None) -> None:
            assert result is not None
            then(_mapped(result, mapping) if isinstance(result, RequestError) else result)

        try:
            self._context(group_id).write(decide, written, transaction)
        except RequestError as error:
            raise _mapped(error, mapping) from error

    def _write_promised(
        self,
        group_id: str,
        promise: Promise,
        decide: WriteOperation[None],
        refuse: Callable[[RequestError], None],
    ) -> None:
        """Do an operation that may keep its promise later; one that fails before ends it.

        A response may leave before its records are committed: their fate matters no more then.
        """

        def written(result: RequestError | None) -> None:
            if result is not None:
                promise.is_kept = True
                refuse(_mapped(result, append_error_to_response_error))

        context = self._context(group_id)
        try:
            context.write(decide, written)
        except RequestError as error:
            written(error)

    def _by_partition(self, group_ids: Sequence[str]) -> Mapping[int, list[str]]:
        found: dict[int, list[str]] = {}
        for group_id in group_ids:
            found.setdefault(self.partition_for(group_id), []).append(group_id)
        return found


class _Once(Generic[Response]):
    """Hands on the first result of several."""

    def __init__(self, then: Then[Response]) -> None:
        self._then: Then[Response] | None = then

    def __call__(self, result: Response | RequestError) -> None:
        then, self._then = self._then, None
        if then is not None:
            then(result)


def _deletion(
    group_ids: list[str],
) -> WriteOperation[list[DeleteGroupsResponseDeletableGroupResult]]:
    return lambda shard, now_ms: shard.delete_groups(group_ids, now_ms)


def _mapped(error: RequestError, mapping: ErrorMapping) -> RequestError:
    code = mapping(error.code)
    return error if code is error.code else RequestError.with_default_message(code)


def _join_refusal(error: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    has_null_name = version >= FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
    return JoinGroupResponse(
        error_code=error, member_id=member_id, protocol_name=None if has_null_name else ""
    )
