"""One shard of the group coordinator (Kafka's GroupCoordinatorShard)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar, cast

from kvorum.coordinator.effects import Effects, Timeout
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.coordinator.timeline import Timeline
from kvorum.groups.classic.join import join_group, sync_group
from kvorum.groups.classic.membership import describe_group, heartbeat, leave_group
from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupState
from kvorum.groups.classic_group.group_records import group_of_record
from kvorum.groups.consumer.classic_join import join_consumer_group
from kvorum.groups.consumer.classic_requests import (
    heartbeat_in_consumer_group,
    sync_with_consumer_group,
)
from kvorum.groups.consumer.description import describe_consumer_group
from kvorum.groups.consumer.fencing import fence_member, start_timers
from kvorum.groups.consumer.heartbeat import consumer_group_heartbeat
from kvorum.groups.consumer.leave import leave_consumer_group
from kvorum.groups.consumer.metadata_updates import follow_topics
from kvorum.groups.consumer.regular_expressions import on_refresh
from kvorum.groups.consumer.replay import replay_consumer_group_record
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.decision import Decision
from kvorum.groups.listing import list_groups
from kvorum.groups.offsets.requests import (
    OffsetFetch,
    cleanup_group_metadata,
    commit_offsets,
    commit_transactional_offsets,
    delete_groups,
    delete_offsets,
)
from kvorum.groups.offsets.store import OffsetStore
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.groups.records import OtherGroupRecord, decode_other_group_record, decode_record
from kvorum.groups.request_context import RequestContext
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share.description import describe_share_group
from kvorum.groups.share.fencing import fence_share_member, start_sessions
from kvorum.groups.share.heartbeat import ShareHeartbeatAnswer, share_group_heartbeat
from kvorum.groups.share.offset_changes import OffsetChange, alter_share_group_offsets
from kvorum.groups.share.replay import SHARE_GROUP_KEYS, replay_share_group_record
from kvorum.groups.share.state_deletion import (
    GroupDeletion,
    OffsetDeletion,
    begin_group_deletions,
    begin_offset_deletion,
    complete_offset_deletion,
    forget_deleted_topics,
)
from kvorum.groups.share.state_initialization import (
    partitions_initialized,
    partitions_not_initialized,
)
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.state_partitions import Partitions, StatePartitions
from kvorum.groups.timeouts import (
    ClassicMemberJoin,
    ClassicMemberSync,
    GroupMetadataExpiration,
    InitialJoinPhase,
    JoinPhase,
    MemberHeartbeat,
    MemberRebalance,
    MemberSession,
    RegularExpressionsRefresh,
    ShareMemberSession,
    SyncPhase,
)
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kvorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.delete_groups import DeleteGroupsResponse
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse
from kvorum.wire.messages.group_metadata_key import GroupMetadataKey
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import JoinGroupRequest
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kvorum.wire.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kvorum.wire.messages.list_groups import ListGroupsResponse
from kvorum.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kvorum.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from kvorum.wire.messages.share_group_describe import ShareGroupDescribeResponse
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kvorum.wire.messages.sync_group import SyncGroupRequest
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

NO_BROKER: Final = -1
_OFFSET_KEYS: Final = (OffsetCommitKey, LegacyOffsetCommitKey)
_ResponseT = TypeVar("_ResponseT")


class GroupCoordinatorShard:
    """The groups and offsets of one partition of ``__consumer_offsets``."""

    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        new_uuid: Callable[[], str],
        *,
        image: Callable[[], MetadataImage] = MetadataImage,
        broker_id: int = NO_BROKER,
    ) -> None:
        """Begin empty; `new_uuid` makes UUIDs as 36 characters, for the ids of members.

        `image` returns the newest metadata of the broker `broker_id`. `state` and `offsets` may be
        read, for metrics and tests; only a shard changes them.
        """
        self.state = ShardState(settings, new_uuid, image, broker_id)
        self.offsets = OffsetStore(self.state)

    @property
    def timeline(self) -> Timeline:
        """The offsets written and committed; `Timeline.revert` takes back new groups too."""
        return self.state.timeline

    # The log.

    @property
    def needs_latest_records_alone(self) -> bool:
        """Be False: offsets of a transaction replace others only when it is committed."""
        return False

    def load_record(
        self, offset: int, producer_id: int, key: bytes, value: bytes | None, now_ms: int
    ) -> None:
        """Decode and apply a record of the log; skip one of an unknown type.

        Raises `DamagedRecordError` for one that cannot be read.
        """
        other = decode_other_group_record(key, value)
        if other is not None:
            self._replay_other_group(other)
            return
        record = decode_record(key, value)
        if record is not None:
            self.replay(offset, producer_id, record, now_ms)

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord, now_ms: int) -> None:
        """Apply a record at `offset`; `producer_id` is -1 outside of a transaction."""
        key, value = record.key, record.value
        if isinstance(key, _OFFSET_KEYS):
            # A check would make two types for each commit.
            offset_value = cast("OffsetCommitValue | LegacyOffsetCommitValue | None", value)
            self.offsets.replay(offset, producer_id, key, offset_value, now_ms)
        elif isinstance(key, SHARE_GROUP_KEYS):
            replay_share_group_record(self.state, record, now_ms)
        elif not isinstance(key, GroupMetadataKey):
            replay_consumer_group_record(self.state, record)
        elif isinstance(value, GroupMetadataValue):
            self.state.groups.set(key.group, group_of_record(key.group, value))
        else:
            self.state.groups.remove(key.group)

    def _replay_other_group(self, record: OtherGroupRecord) -> None:
        """Note that a group has another protocol, or does not exist any more.

        Its offsets must not be taken for those of a group without members: they would expire.
        """
        if record.ends_group:
            self.state.groups_of_other_protocols.discard(record.group_id)
        else:
            self.state.groups_of_other_protocols.add(record.group_id)
            self.state.groups.remove(record.group_id)

    def replay_end_transaction_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply a producer's marker: its offsets count from here on, or are dropped."""
        self.offsets.replay_end_transaction_marker(producer_id, is_commit=is_commit)

    def append_completed(self, append: Append, now_ms: int) -> Effects:
        """Act on a result's records being committed."""
        append.completed(now_ms)
        return self.state.outbox.take()

    def append_failed(self, append: Append, error: ErrorCode, now_ms: int) -> Effects:
        """Act on a result's records not having come into the log, or not in time."""
        append.failed(error, now_ms)
        return self.state.outbox.take()

    def on_loaded(self, now_ms: int) -> Effects:
        """Begin to lead: the sessions of all members begin again."""
        # Topics may have come while the log was read.
        self.state.new_topics_version = self.state.image.last_offset
        rebalance = Rebalance(self.state, now_ms)
        for group in self.state.groups.values():
            if isinstance(group, ConsumerGroup):
                start_timers(self.state, group)
                continue
            if isinstance(group, ShareGroup):
                start_sessions(self.state, group)
                continue
            for member in group.members.values():
                rebalance.reschedule_heartbeat(group, member)
            if len(group.members) > self.state.settings.group_max_size:
                rebalance.prepare(group)
        self._schedule_expiration()
        return self.state.outbox.take()

    def on_unloaded(self, now_ms: int) -> Effects:
        """Cease to lead: answer all who wait with NOT_COORDINATOR."""
        error, rebalance = ErrorCode.NOT_COORDINATOR, Rebalance(self.state, now_ms)
        self.state.outbox.cancel_timer(GroupMetadataExpiration().key)
        for group in self.state.groups.values():
            if not isinstance(group, ClassicGroup):
                # No member of such a group waits for another one.
                continue
            group.transition_to(ClassicGroupState.DEAD, now_ms)
            if group.previous_state is ClassicGroupState.PREPARING_REBALANCE:
                rebalance.answer_waiting_joins(group, error)
            else:
                # A join of a stable group waits for the log, and is answered with its append.
                rebalance.answer_waiting_syncs(group, error)
        return self.state.outbox.take()

    def on_timeout(self, timeout: Timeout, now_ms: int) -> CoordinatorResult[None]:
        """Act on a timer that has fired."""
        rebalance = Rebalance(self.state, now_ms)
        match timeout:
            case GroupMetadataExpiration():
                records = tuple(cleanup_group_metadata(self.offsets, now_ms))
                self._schedule_expiration()
                effects = self.state.outbox.take()
                return CoordinatorResult(effects=effects, records=records, is_atomic=False)
            case MemberHeartbeat():
                return self._group_result(lambda: (rebalance.on_member_heartbeat(timeout), None))
            case InitialJoinPhase():
                return self._group_result(lambda: (rebalance.on_initial_join_phase(timeout), None))
            case JoinPhase():
                return self._group_result(lambda: (rebalance.on_join_phase(timeout), None))
            case SyncPhase():
                return self._group_result(lambda: (rebalance.on_sync_phase(timeout), None))
            case MemberSession() | MemberRebalance() | ClassicMemberJoin() | ClassicMemberSync():
                return self._group_result(lambda: (fence_member(self.state, timeout, now_ms), None))
            case ShareMemberSession():
                return self._group_result(lambda: (fence_share_member(self.state, timeout), None))
            case RegularExpressionsRefresh():
                return self._result(lambda: (on_refresh(self.state, timeout, now_ms), None))
            case _:
                raise TypeError(f"no timeout of groups: {timeout}")

    def on_topics_deleted(self, topics: Iterable[TopicImage]) -> CoordinatorResult[None]:
        """End all groups' offsets of topics that are gone."""
        records = tuple(self.offsets.tombstones_of_topics(topics))
        return CoordinatorResult(effects=self.state.outbox.take(), records=records, is_atomic=False)

    def on_state_topics_deleted(self, topics: Iterable[TopicImage]) -> CoordinatorResult[None]:
        """Forget the state that share groups have of topics that are gone."""
        return self._result(lambda: (forget_deleted_topics(self.state, topics), None))

    def on_topics_changed(
        self, names: Collection[str], *, has_new_topics: bool
    ) -> CoordinatorResult[None]:
        """Have groups of topics that came, changed or went look at them with the next heartbeat."""
        follow_topics(self.state, names, has_new_topics=has_new_topics)
        return CoordinatorResult(effects=self.state.outbox.take())

    # Requests.

    def consumer_group_heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        """Let a member of a consumer group join, stay or leave; its fields have been checked."""
        return self._group_result(
            lambda: consumer_group_heartbeat(self.state, context, request, now_ms)
        )

    def describe_consumer_group(
        self, group_id: str
    ) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """Describe a committed consumer group; raises RequestError if it does not exist."""
        return describe_consumer_group(self.state, group_id)

    def share_group_heartbeat(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest, now_ms: int
    ) -> CoordinatorResult[ShareHeartbeatAnswer]:
        """Let a member of a share group join, stay or leave; its fields have been checked.

        The caller has the states of partitions initialized that the answer names, and says then
        which ones are, and which are not.
        """
        return self._group_result(
            lambda: share_group_heartbeat(self.state, context, request, now_ms)
        )

    def initialize_share_group_state(
        self, group_id: str, partitions: Partitions, now_ms: int
    ) -> CoordinatorResult[None]:
        """Have members get partitions whose state is initialized."""
        return self._result(
            lambda: (partitions_initialized(self.state, group_id, partitions, now_ms), None)
        )

    def uninitialize_share_group_state(
        self, group_id: str, partitions: Partitions
    ) -> CoordinatorResult[None]:
        """Have the next heartbeat ask again for states that could not be initialized."""
        return self._result(
            lambda: (partitions_not_initialized(self.state, group_id, partitions), None)
        )

    def initialized_share_group_partitions(self, group_id: str) -> dict[bytes, frozenset[int]]:
        """Return the partitions of a share group whose state is initialized, by topic id."""
        state = self.state.share_state_partitions.get(group_id) or StatePartitions()
        return {topic_id: topic.partitions for topic_id, topic in state.initialized.items()}

    def describe_share_group(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        """Describe a committed share group; raises RequestError if it does not exist."""
        return describe_share_group(self.state, group_id)

    def alter_share_group_offsets(
        self, request: AlterShareGroupOffsetsRequest, now_ms: int
    ) -> CoordinatorResult[OffsetChange]:
        """Begin to change start offsets of a share group without members, or of a new one."""
        return self._result(lambda: alter_share_group_offsets(self.state, request, now_ms))

    def begin_share_offset_deletion(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> CoordinatorResult[OffsetDeletion]:
        """Begin to delete the state of topics of a share group without members."""
        return self._result(lambda: begin_offset_deletion(self.state, request))

    def complete_share_offset_deletion(
        self,
        group_id: str,
        topics: Mapping[bytes, str],
        refused: Sequence[DeleteShareGroupOffsetsResponseTopic],
    ) -> CoordinatorResult[DeleteShareGroupOffsetsResponse]:
        """Note that the state of topics, names by their ids, is deleted; answer with the others."""
        return self._result(lambda: complete_offset_deletion(self.state, group_id, topics, refused))

    def begin_share_group_deletions(
        self, group_ids: Sequence[str]
    ) -> CoordinatorResult[dict[str, GroupDeletion]]:
        """Begin to delete the states of share groups, before the groups are deleted.

        Other groups among them are left out of the answer.
        """
        return self._result(lambda: begin_group_deletions(self.state, group_ids))

    def join_group(
        self, context: RequestContext, request: JoinGroupRequest, promise: JoinPromise, now_ms: int
    ) -> CoordinatorResult[None]:
        """Have a member join; the session timeout and the group id have been checked."""
        state, group = self.state, self.state.find_consumer_group(request.group_id)
        if group is not None and not group.is_empty:
            return self._group_result(
                lambda: (
                    join_consumer_group(state, group, context, request, promise, now_ms),
                    None,
                )
            )
        return self._group_result(
            lambda: (join_group(state, context, request, promise, now_ms), None)
        )

    def sync_group(
        self, request: SyncGroupRequest, promise: SyncPromise
    ) -> CoordinatorResult[None]:
        """Have a member of the current generation take its assignment, or give all of them."""
        state, group = self.state, self.state.find_consumer_group(request.group_id)
        if group is not None and not group.is_empty:
            return self._group_result(
                lambda: (sync_with_consumer_group(state, group, request, promise), None)
            )
        return self._group_result(lambda: (sync_group(state, request, promise), None))

    def heartbeat(
        self, request: HeartbeatRequest, now_ms: int
    ) -> CoordinatorResult[HeartbeatResponse]:
        """Keep a member's session."""
        state, group = self.state, self.state.find_consumer_group(request.group_id)
        if group is not None:
            return self._result(lambda: ((), heartbeat_in_consumer_group(state, group, request)))
        return self._result(lambda: ((), heartbeat(state, request, now_ms)))

    def leave_group(
        self, request: LeaveGroupRequest, now_ms: int
    ) -> CoordinatorResult[LeaveGroupResponse]:
        """Remove members; of the one member of old versions, the caller has made a list."""
        group = self.state.find_consumer_group(request.group_id)
        if group is not None:
            return self._group_result(
                lambda: leave_consumer_group(self.state, group, request, now_ms)
            )
        return self._group_result(lambda: leave_group(self.state, request, now_ms))

    def commit_offsets(
        self, context: RequestContext, request: OffsetCommitRequest, now_ms: int
    ) -> CoordinatorResult[OffsetCommitResponse]:
        """Commit offsets; names and ids of topics have both been filled in."""
        return self._result(lambda: commit_offsets(self.state, context, request, now_ms))

    def commit_transactional_offsets(
        self, context: RequestContext, request: TxnOffsetCommitRequest, now_ms: int
    ) -> CoordinatorResult[TxnOffsetCommitResponse]:
        """Commit offsets in a transaction: its batch has the producer's id and epoch."""
        return self._result(
            lambda: commit_transactional_offsets(self.state, context, request, now_ms)
        )

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """Return a group's offsets, those that are committed.

        With `require_stable` the newest ones are returned: the response then has to wait for what
        has been written. Topics of None ask for all; zero ids of topics match every id.
        """
        return OffsetFetch(self.offsets, require_stable).fetch(request)

    def delete_offsets(
        self, request: OffsetDeleteRequest
    ) -> CoordinatorResult[OffsetDeleteResponse]:
        """Delete offsets of topics that no member consumes."""
        return self._result(lambda: delete_offsets(self.offsets, request))

    def delete_groups(
        self, group_ids: Sequence[str]
    ) -> CoordinatorResult[list[DeleteGroupsResponse.DeletableGroupResult]]:
        """Delete empty groups with their offsets; no id may be there twice."""
        return self._result(lambda: delete_groups(self.offsets, group_ids))

    def describe_group(self, version: int, group_id: str) -> DescribeGroupsResponse.DescribedGroup:
        """Describe a committed group."""
        return describe_group(self.state, version, group_id)

    def list_groups(
        self, states: Iterable[str], types: Iterable[str]
    ) -> list[ListGroupsResponse.ListedGroup]:
        """List committed groups by their states and types, whatever the case of the letters."""
        return list_groups(self.state, states, types)

    def _schedule_expiration(self) -> None:
        interval_ms = self.state.settings.offsets_retention_check_interval_ms
        self.state.outbox.set_timer(GroupMetadataExpiration(), interval_ms)

    def _group_result(
        self, decide: Callable[[], tuple[Decision, _ResponseT]]
    ) -> CoordinatorResult[_ResponseT]:
        try:
            decision, response = decide()
        except RequestError as error:
            return CoordinatorResult(effects=self.state.outbox.take(), error=error)
        return CoordinatorResult(
            effects=self.state.outbox.take(),
            response=response,
            records=decision.records,
            append=decision.append,
            replay_records=decision.replay_records,
        )

    def _result(
        self, decide: Callable[[], tuple[Sequence[CoordinatorRecord], _ResponseT]]
    ) -> CoordinatorResult[_ResponseT]:
        try:
            records, response = decide()
        except RequestError as error:
            return CoordinatorResult(effects=self.state.outbox.take(), error=error)
        effects = self.state.outbox.take()
        return CoordinatorResult(effects=effects, response=response, records=tuple(records))
