"""The group coordinator as requests see it (GroupCoordinatorService).

A method raises RequestError where the whole request is refused; authorization is for handlers.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from kvorum.broker.add_partitions_to_txn import operation_of_txn_offset_commit
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
from kvorum.groups.record_batches import TransactionProducer
from kvorum.groups.results import CoordinatorResult
from kvorum.groups.settings import RequestContext
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.node.broker.group_coordinator.coordinator_context import (
    OUTSIDE,
    CoordinatorContext,
    CoordinatorEnvironment,
    TransactionWrite,
    WriteOperation,
)
from kvorum.node.broker.group_coordinator.coordinator_runtime import CoordinatorRuntime
from kvorum.node.broker.group_coordinator.promises import Answer, Promise
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.transaction_verification import (
    TransactionalProducer,
    TransactionVerification,
)
from kvorum.node.clock import Clock
from kvorum.node.config import GroupSettings
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
_UUID_BYTES: Final = 16
_RANDOM_UUID: Final = 4
_NO_SEQUENCE: Final = -1


class GroupCoordinatorService:
    """Classic groups, and the offsets of all groups, on this broker's partitions."""

    def __init__(
        self,
        settings: GroupSettings,
        replicas: ReplicaManager,
        transactions: TransactionVerification,
        *,
        broker_id: int,
        clock: Clock,
        random: Random,
    ) -> None:
        self._settings = settings
        self._transactions = transactions
        self._random = random
        self._partition_count: int | None = None
        self._is_active = True
        environment = CoordinatorEnvironment(
            clock=clock,
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

    async def join_group(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> JoinGroupResponse:
        """Have a member join; the response may come when other members have joined."""
        problem = self._join_problem(request)
        if problem is not None:
            return _join_refusal(problem, request.member_id, context.version)
        promise = JoinPromise(context.version)
        try:
            answer = await self._promised(
                request.group_id,
                promise,
                lambda shard, now_ms: shard.join_group(context, request, promise, now_ms),
            )
        except RequestError as error:
            return _join_refusal(error.code, "", context.version)
        assert isinstance(answer, JoinGroupResponse)
        return answer

    async def sync_group(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Give a member its assignment, which the leader of the group may yet have to send."""
        self._demand_group_id(request.group_id)
        promise = SyncPromise()
        answer = await self._promised(
            request.group_id,
            promise,
            lambda shard, now_ms: shard.sync_group(request, promise, now_ms),
        )
        assert isinstance(answer, SyncGroupResponse)
        return answer

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Keep a member's session; while the group is being loaded, every member is kept."""
        self._demand_group_id(request.group_id)
        try:
            return await self._write(
                request.group_id, lambda shard, now_ms: shard.heartbeat(request, now_ms)
            )
        except RequestError as error:
            if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            return HeartbeatResponse()

    async def leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove the members of a list."""
        self._demand_group_id(request.group_id)
        return await self._write(
            request.group_id, lambda shard, now_ms: shard.leave_group(request, now_ms)
        )

    async def commit_offsets(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse:
        """Commit offsets of topics that exist, named by both name and id."""
        return await self._write(
            request.group_id,
            lambda shard, now_ms: shard.commit_offsets(context, request, now_ms),
        )

    async def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int
    ) -> TxnOffsetCommitResponse:
        """Commit offsets in a transaction, of which its coordinator knows: they wait for its end.

        `version` is that of the request.
        """
        self._demand_group_id(request.group_id)
        try:
            transaction = await self._verified(request, version)
        except RequestError as error:
            raise _mapped(error, append_error_to_transactional_error) from error
        return await self._write(
            request.group_id,
            lambda shard, now_ms: shard.commit_transactional_offsets(request, now_ms),
            append_error_to_transactional_error,
            transaction,
        )

    async def _verified(self, request: TxnOffsetCommitRequest, version: int) -> TransactionWrite:
        """Verify, or add, the group's partition; raises RequestError where it may not be used."""
        partition = self._context(request.group_id).partition
        if not self._transactions.is_coordinated:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        producer = TransactionProducer(request.producer_id, request.producer_epoch)
        verified = await self._transactions.verify(
            TransactionalProducer(
                request.transactional_id, *producer, operation_of_txn_offset_commit(version)
            ),
            {partition: _NO_SEQUENCE},
        )
        where = partition.topic_partition
        if where in verified.errors:
            raise RequestError.with_default_message(verified.errors[where])
        return TransactionWrite(producer, verified.append_to(where))

    async def complete_transaction(self, partition: int, marker: TransactionMarker) -> None:
        """Write the marker that ends a transaction to a partition of ``__consumer_offsets``.

        Returns when it is committed, with the transaction's offsets.
        """
        if not self._is_active:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await self._runtime.context(partition).complete_transaction(marker)

    async def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """Return a group's offsets; with `require_stable` the newest, once they are committed."""
        if not require_stable:
            context = self._context(request.group_id)
            return context.read(lambda shard: shard.fetch_offsets(request, require_stable=False))

        return await self._write(
            request.group_id,
            lambda shard, _: CoordinatorResult(
                effects=Effects(), response=shard.fetch_offsets(request, require_stable=True)
            ),
            append_error_to_fetch_error,
        )

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Delete offsets of topics that no member consumes."""
        self._demand_group_id(request.group_id)
        return await self._write(
            request.group_id, lambda shard, now_ms: shard.delete_offsets(request, now_ms)
        )

    async def delete_groups(
        self, group_ids: Sequence[str]
    ) -> list[DeleteGroupsResponseDeletableGroupResult]:
        """Delete empty groups, no id twice; those of one partition in one batch."""
        deletions = [self._delete_groups(ids) for ids in self._by_partition(group_ids).values()]
        return [result for results in await asyncio.gather(*deletions) for result in results]

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

    async def _write(
        self,
        group_id: str,
        decide: WriteOperation[Response],
        mapping: ErrorMapping = append_error_to_response_error,
        transaction: TransactionWrite = OUTSIDE,
    ) -> Response:
        try:
            response = await self._context(group_id).write(decide, transaction)
        except RequestError as error:
            raise _mapped(error, mapping) from error
        assert response is not None
        return response

    async def _promised(
        self, group_id: str, promise: Promise, decide: WriteOperation[None]
    ) -> Answer:
        """Return the answer of a promise; an operation that fails before that ends it."""
        context = self._context(group_id)
        answered = context.promises.make(promise)
        try:
            written = context.write(decide)
            # An answer may leave before its records are committed; their fate matters no more then.
            written.add_done_callback(_look_at)
            await asyncio.wait((answered, written), return_when=asyncio.FIRST_COMPLETED)
            if not answered.done():
                await written
            return await answered
        except RequestError as error:
            if answered.done():
                return answered.result()
            promise.is_kept = True
            raise _mapped(error, append_error_to_response_error) from error
        finally:
            context.promises.forget(promise)

    def _by_partition(self, group_ids: Sequence[str]) -> Mapping[int, list[str]]:
        found: dict[int, list[str]] = {}
        for group_id in group_ids:
            found.setdefault(self.partition_for(group_id), []).append(group_id)
        return found

    async def _delete_groups(
        self, group_ids: list[str]
    ) -> list[DeleteGroupsResponseDeletableGroupResult]:
        try:
            return await self._write(
                group_ids[0], lambda shard, now_ms: shard.delete_groups(group_ids, now_ms)
            )
        except RequestError as error:
            return [DeleteGroupsResponseDeletableGroupResult(one, error.code) for one in group_ids]


def _look_at(future: asyncio.Future[Any]) -> None:
    """Take note of a future's error, which is no error of the program."""
    if not future.cancelled():
        future.exception()


def _mapped(error: RequestError, mapping: ErrorMapping) -> RequestError:
    code = mapping(error.code)
    return error if code is error.code else RequestError.with_default_message(code)


def _join_refusal(error: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    has_null_name = version >= FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
    return JoinGroupResponse(
        error_code=error, member_id=member_id, protocol_name=None if has_null_name else ""
    )
