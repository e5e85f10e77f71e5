"""Bugs in the group coordinator: joins, static members, timers, expiry of offsets, loading."""

from __future__ import annotations

from tests.model.mutation.mutant import Kind, mutant

MUTANTS = (
    mutant(
        id="KAFKA-18263",
        cause="a failed append of a static rejoin left a part of the new membership",
        breaks="static membership",
        kind=Kind.SAFETY,
        within="StaticRejoinAppend.failed",
        old="self.old.rebalance_timeout_ms",
        new="self.new.rebalance_timeout_ms",
    ),
    mutant(
        id="KAFKA-15647",
        cause="errors of the log reached members as they were",
        breaks="errors of a coordinator",
        kind=Kind.CONFORMITY,
        within="append_error_to_response_error",
        old="_ANSWERS.get(error, error)",
        new="error",
    ),
    mutant(
        id="KAFKA-14009",
        cause="the rebalance timeout that a static member came back with was ignored",
        breaks="length of a rebalance",
        kind=Kind.LIVENESS,
        within="StaticRejoin.decide",
        old="self.rebalance_timeout_ms",
        new="old.rebalance_timeout_ms",
    ),
    mutant(
        id="KAFKA-14201",
        cause="commits with an instance id and without a generation were refused",
        breaks="commits of simple consumers",
        kind=Kind.CONFORMITY,
        within="check_commit",
        old="generation_id < 0 and group.is_empty",
        new="generation_id < 0 and group.is_empty and group_instance_id is None",
    ),
    mutant(
        id="KAFKA-13435",
        cause="a static leader that came back could not know that it leads",
        breaks="static membership",
        kind=Kind.LIVENESS,
        within="StaticRejoinAppend.completed",
        old="group.leader_id if may_skip else self.leader",
        new="self.leader",
    ),
    mutant(
        id="KAFKA-12890",
        cause="a group stayed in CompletingRebalance if a member never synced",
        breaks="rebalances end",
        kind=Kind.LIVENESS,
        within="Rebalance.complete_join",
        old="self.shard.outbox.set_timer(timeout, group.rebalance_timeout_ms)",
        new="",
    ),
    mutant(
        id="KAFKA-10284",
        cause="the new id of a static member was only in memory",
        breaks="static membership",
        kind=Kind.SAFETY,
        within="StaticRejoin.decide",
        old="return Decision((new_group_record(group, assignment),), append)",
        new="""
            append.completed(self.rebalance.now_ms)
            return Decision()
        """,
    ),
    mutant(
        id="KAFKA-10401",
        cause="a record did not say when the group had become empty",
        breaks="expiry of offsets",
        kind=Kind.SAFETY,
        within="group_of_record",
        old="None if stamp == NO_TIMESTAMP else stamp",
        new="None",
    ),
    mutant(
        id="KAFKA-9844",
        cause="joins at the same time led to more members than a group may have",
        breaks="group.max.size",
        kind=Kind.CONFORMITY,
        within="Join._is_accepted",
        old="is_awaiting or group.awaiting_join_count < size_max",
        new="True",
    ),
    mutant(
        id="KAFKA-9752",
        cause="a new member whose join waited for ever kept the phase open",
        breaks="rebalances end",
        kind=Kind.LIVENESS,
        within="ClassicGroupMember.has_satisfied_heartbeat",
        old="""
            if self.is_new:
                return False
        """,
        new="",
    ),
    mutant(
        id="KAFKA-8500",
        cause="the one whose instance id another has taken was not fenced while it waited",
        breaks="static membership",
        kind=Kind.SAFETY,
        within="replace_static_member",
        old="rebalance.answer_join(group, old, response)",
        new="group.set_awaiting_join(old, None)",
        room="groups.classic",
    ),
    mutant(
        id="KAFKA-8220",
        cause="static members were removed when they slept through a join phase",
        breaks="static membership",
        kind=Kind.CONFORMITY,
        within="Rebalance.complete_join",
        old="member.awaiting_join is None and not member.is_static",
        new="member.awaiting_join is None",
    ),
    mutant(
        id="KAFKA-7909",
        cause="a member that was only expected kept the join phase open after its session",
        breaks="rebalances end",
        kind=Kind.LIVENESS,
        within="Join._join_new_member",
        old="""
            self.shard.outbox.set_timer(
                MemberHeartbeat(self.group.group_id, member_id),
                self.request.session_timeout_ms,
            )
        """,
        new="",
    ),
    mutant(
        id="KAFKA-4704",
        cause="the tombstone of a group was no end of it when the log was loaded",
        breaks="loading",
        kind=Kind.SAFETY,
        within="GroupCoordinatorShard.replay",
        old="self.state.groups.remove(key.group)",
        new="raise ValueError(key.group)",
    ),
    mutant(
        id="KAFKA-14869",
        cause="a record of an unknown type ended the load",
        breaks="loading",
        kind=Kind.LIVENESS,
        within="decode_record",
        old="type_id in _OTHER_TYPES and value is not None",
        new="value is not None",
        room="groups",
    ),
    mutant(
        id="KAFKA-19163",
        cause="a group with only offsets of an open transaction was deleted",
        breaks="committed offsets stay",
        kind=Kind.SAFETY,
        within="cleanup_group_metadata",
        old="not has_others and not offsets.pending.has_group(group_id) and group.is_empty",
        new="not has_others and group.is_empty",
    ),
    mutant(
        id="KAFKA-19154",
        cause="the offset of a deleted topic was that of a new one with its name",
        breaks="offsets are of one topic",
        kind=Kind.SAFETY,
        within="OffsetAndMetadata.has_other_topic_id",
        old="ZERO_UUID not in {self.topic_id, topic_id} and self.topic_id != topic_id",
        new="False",
    ),
    mutant(
        id="KAFKA-16371",
        cause="an offset whose metadata is too long was pending for ever",
        breaks="offsets become stable",
        kind=Kind.LIVENESS,
        within="commit_transactional_offsets",
        old="error is ErrorCode.NONE",
        new="True",
        room="groups.offsets",
    ),
    mutant(
        id="KAFKA-13636",
        cause="offsets of a group that rebalances expired",
        breaks="committed offsets stay",
        kind=Kind.SAFETY,
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
    mutant(
        id="KAFKA-8069",
        cause="an offset without an expire timestamp expired when it was loaded",
        breaks="committed offsets stay",
        kind=Kind.SAFETY,
        within="OffsetAndMetadata.is_expired",
        old="self.expire_timestamp != NO_EXPIRE_TIMESTAMP",
        new="self.expire_timestamp <= now_ms",
    ),
    mutant(
        id="KAFKA-2000",
        cause="offsets of a deleted topic stayed",
        breaks="offsets are of one topic",
        kind=Kind.CONFORMITY,
        within="OffsetStore.tombstones_of_topic",
        old="offset.topic_id in {ZERO_UUID, topic.topic_id}",
        new="offset.topic_id == ZERO_UUID",
    ),
    mutant(
        id="KAFKA-18672",
        cause="a value of a later version was read as one of the latest that is known",
        breaks="loading",
        kind=Kind.SAFETY,
        within="decode_record",
        old="_decoded(_VALUES[type_id], value, version)",
        new="""
            _decoded(
                _VALUES[type_id], value, min(version, _VALUES[type_id].MAX_VERSION)
            )
        """,
        room="groups",
    ),
    mutant(
        id="KAFKA-10614",
        cause="a resignation that came late ended the coordinator of a later epoch",
        breaks="a leader coordinates",
        kind=Kind.LIVENESS,
        within="CoordinatorRuntime._resign",
        old="known.leader_epoch < change.leader_epoch",
        new="True",
    ),
    mutant(
        id="KAFKA-16118",
        cause="a replica that was taken away went on coordinating",
        breaks="who does not lead does not coordinate",
        kind=Kind.SAFETY,
        within="_compare",
        old="known is not None and broker_id in known.replicas",
        new="False",
        room="broker.coordinators",
    ),
    mutant(
        id="KAFKA-20634",
        cause="what another leader had committed completed the operations of a former one",
        breaks="what is answered is committed",
        kind=Kind.SAFETY,
        within="CoordinatorContext._on_high_watermark",
        old="self.state is not CoordinatorState.ACTIVE or not self.partition.is_leader",
        new="self.state is not CoordinatorState.ACTIVE",
    ),
    mutant(
        id="KAFKA-9065",
        cause="a load never ended where compaction had removed the end of the log",
        breaks="loading",
        kind=Kind.LIVENESS,
        within="CoordinatorLoader._load_part",
        old="self._offset = batch.next_offset",
        new="self._offset = max((one.offset + 1 for one in batch.records()), default=self._offset)",
    ),
    mutant(
        id="KAFKA-19857",
        cause="giving a coordinator up stopped half-way, and left who waited",
        breaks="operations end",
        kind=Kind.LIVENESS,
        within="CoordinatorContext.unload",
        old="self._release()",
        new="self._timer.cancel_all()",
    ),
)
