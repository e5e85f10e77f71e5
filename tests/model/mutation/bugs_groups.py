"""Bugs in the group coordinator: joins, static members, timers, expiry of offsets, loading."""

from tests.model.mutation.mutant import conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-18263",
        cause="a failed append of a static rejoin left a part of the new membership",
        breaks="static membership",
        within="StaticRejoinAppend.failed",
        old="self.old.rebalance_timeout_ms",
        new="self.new.rebalance_timeout_ms",
    ),
    conformity_bug(
        id="KAFKA-15647",
        cause="errors of the log reached members as they were",
        breaks="errors of a coordinator",
        within="append_error_to_response_error",
        old="_ANSWERS.get(error, error)",
        new="error",
    ),
    liveness_bug(
        id="KAFKA-14009",
        cause="the rebalance timeout that a static member came back with was ignored",
        breaks="length of a rebalance",
        within="Join._update",
        old="self._rebalance_timeout_ms()",
        new="""
            (
                self._rebalance_timeout_ms()
                if self.request.member_id
                else member.rebalance_timeout_ms
            )
        """,
    ),
    conformity_bug(
        id="KAFKA-14201",
        cause="commits with an instance id and without a generation were refused",
        breaks="commits of simple consumers",
        within="check_commit",
        old="generation_id < 0 and group.is_empty",
        new="generation_id < 0 and group.is_empty and request.group_instance_id is None",
    ),
    liveness_bug(
        id="KAFKA-13435",
        cause="a static leader that came back could not know that it leads",
        breaks="static membership",
        within="StaticRejoinAppend.completed",
        old="group.leader_id if may_skip else self.leader",
        new="self.leader",
    ),
    liveness_bug(
        id="KAFKA-12890",
        cause="a group stayed in CompletingRebalance if a member never synced",
        breaks="rebalances end",
        within="Rebalance.complete_join",
        old="self.shard.outbox.set_timer(timeout, group.rebalance_timeout_ms)",
    ),
    safety_bug(
        id="KAFKA-10284",
        cause="the new id of a static member was only in memory",
        breaks="static membership",
        within="Join._rejoin",
        old="return Decision((new_group_record(group, assignment),), append)",
        new="""
            append.completed(self.rebalance.now_ms)
            return Decision()
        """,
    ),
    safety_bug(
        id="KAFKA-10401",
        cause="a record did not say when the group had become empty",
        breaks="expiry of offsets",
        within="group_of_record",
        old="None if stamp == NO_TIMESTAMP else stamp",
        new="None",
    ),
    conformity_bug(
        id="KAFKA-9844",
        cause="joins at the same time led to more members than a group may have",
        breaks="group.max.size",
        within="Join._is_accepted",
        old="is_awaiting or group.awaiting_join_count < size_max",
        new="True",
    ),
    liveness_bug(
        id="KAFKA-9752",
        cause="a new member whose join waited for ever kept the phase open",
        breaks="rebalances end",
        within="ClassicGroupMember.has_satisfied_heartbeat",
        old="if self.is_new: return False",
    ),
    safety_bug(
        id="KAFKA-8500",
        cause="the one whose instance id another has taken was not fenced while it waited",
        breaks="static membership",
        within="replace_static_member",
        old="rebalance.answer_join(group, old, response)",
        new="group.set_awaiting_join(old, None)",
        room="groups.classic",
    ),
    conformity_bug(
        id="KAFKA-8220",
        cause="static members were removed when they slept through a join phase",
        breaks="static membership",
        within="Rebalance.complete_join",
        old="member.awaiting_join is None and not member.is_static",
        new="member.awaiting_join is None",
    ),
    liveness_bug(
        id="KAFKA-7909",
        cause="a member that was only expected kept the join phase open after its session",
        breaks="rebalances end",
        within="Join._join_new_member",
        old="""
            self.shard.outbox.set_timer(
                MemberHeartbeat(self.group.group_id, member_id),
                self.request.session_timeout_ms,
            )
        """,
    ),
    safety_bug(
        id="KAFKA-4704",
        cause="the tombstone of a group was no end of it when the log was loaded",
        breaks="loading",
        within="GroupCoordinatorShard.replay",
        old="self.state.groups.remove(key.group)",
        new="raise ValueError(key.group)",
    ),
    liveness_bug(
        id="KAFKA-14869",
        cause="a record of an unknown type ended the load",
        breaks="loading",
        within="decode_record",
        old="return None",
        new="raise ValueError(str(type_id))",
        room="groups",
    ),
    safety_bug(
        id="KAFKA-19163",
        cause="a group with only offsets of an open transaction was deleted",
        breaks="committed offsets stay",
        within="cleanup_group_metadata",
        old="not has_others and not offsets.pending.has_group(group_id) and group.is_empty",
        new="not has_others and group.is_empty",
    ),
    safety_bug(
        id="KAFKA-19154",
        cause="the offset of a deleted topic was that of a new one with its name",
        breaks="offsets are of one topic",
        within="OffsetAndMetadata.has_other_topic_id",
        old="ZERO_UUID not in {self.topic_id, topic_id} and self.topic_id != topic_id",
        new="False",
    ),
    liveness_bug(
        id="KAFKA-16371",
        cause="an offset whose metadata is too long was pending for ever",
        breaks="offsets become stable",
        within="commit_transactional_offsets",
        old="error is ErrorCode.NONE",
        new="True",
        room="groups.offsets",
    ),
    safety_bug(
        id="KAFKA-13636",
        cause="offsets of a group that rebalances expired",
        breaks="committed offsets stay",
        within="_expiration_base",
        old="""
            if (
                group.uses_consumer_group_protocol
                and group.subscribed_topics is not None
                and is_stable
            ):
                return _commit_timestamp
            return None
        """,
        new="return _commit_timestamp",
    ),
    safety_bug(
        id="KAFKA-8069",
        cause="an offset without an expire timestamp expired when it was loaded",
        breaks="committed offsets stay",
        within="OffsetAndMetadata.is_expired",
        old="self.expire_timestamp != NO_EXPIRE_TIMESTAMP",
        new="self.expire_timestamp <= now_ms",
    ),
    conformity_bug(
        id="KAFKA-2000",
        cause="offsets of a deleted topic stayed",
        breaks="offsets are of one topic",
        within="OffsetStore.tombstones_of_topic",
        old="offset.topic_id in {ZERO_UUID, topic.id}",
        new="offset.topic_id == ZERO_UUID",
    ),
    safety_bug(
        id="KAFKA-18672",
        cause="a value of a later version was read as one of the latest that is known",
        breaks="loading",
        within="decode_record",
        old="decoded(_VALUES[type_id], value, version)",
        new="decoded(_VALUES[type_id], value, min(version, _VALUES[type_id].MAX_VERSION))",
        room="groups",
    ),
    liveness_bug(
        id="KAFKA-10614",
        cause="a resignation that came late ended the coordinator of a later epoch",
        breaks="a leader coordinates",
        within="CoordinatorRuntime._resign",
        old="known.leader_epoch < change.leader_epoch",
        new="True",
    ),
    safety_bug(
        id="KAFKA-16118",
        cause="a replica that was taken away went on coordinating",
        breaks="who does not lead does not coordinate",
        within="coordinator_elections",
        old="gone + followed",
        new="followed",
    ),
    safety_bug(
        id="KAFKA-20634",
        cause="what another leader had committed completed the operations of a former one",
        breaks="what is answered is committed",
        within="CoordinatorContext._on_high_watermark",
        old="self.state is not CoordinatorState.ACTIVE or not self.partition.is_leader",
        new="self.state is not CoordinatorState.ACTIVE",
    ),
    liveness_bug(
        id="KAFKA-9065",
        cause="a load never ended where compaction had removed the end of the log",
        breaks="loading",
        within="CoordinatorLoader._load_part",
        old="self._offset = batch.next_offset",
        new="self._offset = max((one.offset + 1 for one in batch.records()), default=self._offset)",
    ),
    liveness_bug(
        id="KAFKA-19857",
        cause="giving a coordinator up stopped half-way, and left who waited",
        breaks="operations end",
        within="CoordinatorContext.unload",
        old="self._release()",
        new="self._timer.cancel_all()",
    ),
    conformity_bug(
        id="KAFKA-16831",
        cause="the batch of a coordinator grew beyond what the topic allows",
        breaks="size of batches",
        within="CoordinatorBatch.has_room_for",
        old="not self._records or self._size + sum(map(size_max_of, records)) <= self._size_max",
        new="True",
    ),
    safety_bug(
        id="shared batch taken back",
        cause="a batch that the log refused was taken back for its last operation alone",
        breaks="what is refused is not there",
        within="CoordinatorContext._fail",
        old="self._shard.timeline.revert(batch.base_offset)",
        new="self._shard.timeline.revert(self._shard.timeline.written_offset - 1)",
    ),
    safety_bug(
        id="shared batch answered",
        cause="an operation was answered before the batch that it shares was appended",
        breaks="what is answered is committed",
        within="CoordinatorContext._append",
        old="batch.events.append(event)",
        new="event.complete(None)",
    ),
)
