"""A shard with a log and timers in memory, for tests: steps as a client or the log takes them."""

from typing import Any, Final

from kvorum.coordinator.effects import Effects, Promise, SetTimer, Timeout
from kvorum.coordinator.result import CoordinatorResult
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.groups.request_context import RequestContext
from kvorum.groups.settings import ConsumerGroupSettings, GroupCoordinatorSettings
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
)
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kvorum.wire.uuid_text import ZERO_UUID

GROUP: Final = "g"
TOPIC: Final = "topic"
SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 30_000
DELAY_MS: Final = 3000
JOIN_MS: Final = 2 * DELAY_MS
"""The time of the first rebalance if several members come."""
RETENTION_MS: Final = 50_000
SWEEP_MS: Final = 600_000
PRODUCER: Final = 7
CONSUMER_VERSION: Final = 1


class Coordinator:
    """The caller of a shard; every append is committed at once unless it is said to fail."""

    def __init__(
        self,
        *,
        offsets_retention_ms: int = RETENTION_MS,
        offset_metadata_max_bytes: int = 4096,
        group_max_size: int = 2**31 - 1,
        consumer: ConsumerGroupSettings | None = None,
    ) -> None:
        self.settings = GroupCoordinatorSettings(
            consumer=consumer or ConsumerGroupSettings(),
            offsets_retention_ms=offsets_retention_ms,
            group_initial_rebalance_delay_ms=DELAY_MS,
            offset_metadata_max_bytes=offset_metadata_max_bytes,
            group_max_size=group_max_size,
        )
        self.image = MetadataImage()
        self.now = 0
        self.protocol_type = "consumer"
        self.log: list[tuple[int, bytes, bytes | None]] = []
        self.timers: dict[str, tuple[int, Timeout]] = {}
        self._answers: dict[Promise[Any], Any] = {}
        self._ids = 0
        self.shard = self._new_shard()
        self._take(self.shard.on_loaded(0))

    @property
    def group(self) -> ClassicGroup:
        return self.shard.state.classic_group(GROUP)

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        version: int = 9,
        rebalance_ms: int = REBALANCE_MS,
        subscription: bytes = b"",
        error: ErrorCode | None = None,
    ) -> JoinPromise:
        promise = JoinPromise(lambda _: None, version=version)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol("range", subscription)],
        )
        context = RequestContext(version, "client", "/127.0.0.1")
        result = self.shard.join_group(context, request, promise, self.now)
        if result.error is not None:
            self._answers[promise] = JoinGroupResponse(error_code=result.error.code)
        self.append(result, error)
        return promise

    def joined(self, promise: JoinPromise) -> JoinGroupResponse | None:
        answer = self._answers.get(promise)
        assert answer is None or isinstance(answer, JoinGroupResponse)
        return answer

    def join_response(self, promise: JoinPromise) -> JoinGroupResponse:
        answer = self.joined(promise)
        assert answer is not None
        return answer

    def join_error(self, promise: JoinPromise) -> ErrorCode | None:
        answer = self.joined(promise)
        return None if answer is None else ErrorCode(answer.error_code)

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        error: ErrorCode | None = None,
    ) -> SyncPromise:
        promise = SyncPromise(lambda _: None)
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.group.generation_id if generation is None else generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(one, data) for one, data in (assignments or {}).items()
            ],
        )
        result = self.shard.sync_group(request, promise)
        if result.error is not None:
            self._answers[promise] = SyncGroupResponse(error_code=result.error.code)
        self.append(result, error)
        return promise

    def sync_response(self, promise: SyncPromise) -> SyncGroupResponse:
        answer = self._answers[promise]
        assert isinstance(answer, SyncGroupResponse)
        return answer

    def stable_group(self, *instances: str | None) -> list[str]:
        """Have members join and sync; return their ids, that of the leader first."""
        promises = [self.join(instance=one, version=9 if one else 3) for one in instances]
        self.advance(JOIN_MS)
        ids = [self.join_response(promise).member_id for promise in promises]
        assert ids[0] == self.group.leader_id
        self.sync(ids[0], {one: f"for {one}".encode() for one in ids})
        for one in ids[1:]:
            self.sync(one)
        return ids

    def heartbeat(
        self, member_id: str, instance: str | None = None, *, generation: int | None = None
    ) -> ErrorCode:
        if generation is None:
            generation = self.group.generation_id
        request = HeartbeatRequest(GROUP, generation, member_id, instance)
        result = self.shard.heartbeat(request, self.now)
        self.append(result)
        if result.error is not None:
            return result.error.code
        assert result.response is not None
        return ErrorCode(result.response.error_code)

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, error: ErrorCode | None = None
    ) -> ConsumerGroupHeartbeatResponse:
        """Return the response to a consumer; raises what it is refused with.

        An `error` is that of the append, after which a client would not hear of the response.
        """
        context = RequestContext(CONSUMER_VERSION, "client", "/127.0.0.1", frozenset)
        result = self.shard.consumer_group_heartbeat(context, request, self.now)
        self.append(result, error)
        if result.error is not None:
            raise result.error
        assert result.response is not None
        return result.response

    def leave(self, *members: str) -> None:
        identities = [LeaveGroupRequest.MemberIdentity(one) for one in members]
        self.append(self.shard.leave_group(LeaveGroupRequest(GROUP, "", identities), self.now))

    def commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        instance: str | None = None,
        generation: int = -1,
        topic_id: bytes = ZERO_UUID,
        retention_ms: int = -1,
    ) -> ErrorCode:
        partitions = [OffsetCommitRequestPartition(0, offset)]
        topics = [OffsetCommitRequestTopic(TOPIC, topic_id, partitions)]
        request = OffsetCommitRequest(GROUP, generation, member_id, instance, retention_ms, topics)
        result = self.shard.commit_offsets(RequestContext(9), request, self.now)
        self.append(result)
        return ErrorCode.NONE if result.error is None else result.error.code

    def commit_in_transaction(self, *metadata: str) -> list[ErrorCode]:
        """Commit an offset for partitions 0, 1, … with this metadata."""
        partitions = [
            TxnOffsetCommitRequestPartition(index, 5, -1, text)
            for index, text in enumerate(metadata)
        ]
        topics = [TxnOffsetCommitRequestTopic(TOPIC, partitions=partitions)]
        request = TxnOffsetCommitRequest("t", GROUP, PRODUCER, 0, topics=topics)
        result = self.shard.commit_transactional_offsets(RequestContext(5), request, self.now)
        self.append(result, producer_id=PRODUCER)
        assert result.response is not None
        return [ErrorCode(one.error_code) for one in result.response.topics[0].partitions]

    def fetch(
        self, partition: int = 0, *, topic_id: bytes = ZERO_UUID, require_stable: bool = False
    ) -> OffsetFetchResponsePartitions:
        topics = [OffsetFetchRequestTopics(TOPIC, topic_id, [partition])]
        request = OffsetFetchRequestGroup(GROUP, topics=topics)
        answer = self.shard.fetch_offsets(request, require_stable=require_stable)
        return answer.topics[0].partitions[0]

    def advance(self, elapsed_ms: int) -> None:
        end = self.now + elapsed_ms
        while True:
            due = [(at, key) for key, (at, _) in self.timers.items() if at <= end]
            if not due:
                break
            at, key = min(due)
            self.now = max(self.now, at)
            _, timeout = self.timers.pop(key)
            self.append(self.shard.on_timeout(timeout, self.now))
        self.now = end

    def reload(self) -> None:
        self.timers.clear()
        self.shard = self._new_shard()
        for offset, (producer, key, value) in enumerate(self.log):
            self.shard.load_record(offset, producer, key, value, self.now)
        self._commit()
        self._take(self.shard.on_loaded(self.now))

    def append(
        self,
        result: CoordinatorResult[Any],
        error: ErrorCode | None = None,
        *,
        producer_id: int = -1,
    ) -> None:
        self._take(result.effects)
        base = len(self.log)
        if not result.records:
            if result.append is not None:
                self._take(self.shard.append_completed(result.append, self.now))
            return
        for record in result.records:
            if result.replay_records:
                self.shard.replay(len(self.log), producer_id, record, self.now)
            self.log.append((producer_id, record.key_bytes(), record.value_bytes()))
        if error is None:
            self._commit()
            if result.append is not None:
                self._take(self.shard.append_completed(result.append, self.now))
            return
        del self.log[base:]
        self.shard.timeline.revert(base)
        if result.append is not None:
            self._take(self.shard.append_failed(result.append, error, self.now))

    def _commit(self) -> None:
        self.shard.timeline.written_offset = len(self.log)
        self.shard.timeline.commit(len(self.log))

    def _new_shard(self) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(self.settings, self._new_uuid, image=lambda: self.image)

    def _new_uuid(self) -> str:
        self._ids += 1
        return f"uuid-{self._ids}"

    def _take(self, effects: Effects) -> None:
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                if timer.keeps_present and timer.timeout.key in self.timers:
                    continue
                self.timers[timer.timeout.key] = (self.now + timer.delay_ms, timer.timeout)
            else:
                self.timers.pop(timer.key, None)
        for answer in effects.answers:
            self._answers[answer.promise] = answer.response
