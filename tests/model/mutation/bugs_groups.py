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
        old="rebalance_timeout_ms(self.context.version, self.request)",
        new="""
            (
                rebalance_timeout_ms(self.context.version, self.request)
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
        within="OffsetStore.tombstones_of_topics",
        old="offset.topic_id in {ZERO_UUID, topic.id}",
        new="offset.topic_id == ZERO_UUID",
    ),
    safety_bug(
        id="KAFKA-18672",
        cause="a value of a later version was read as one of the latest that is known",
        breaks="loading",
        within="decode_record",
        old="decoded(value_type, value, version)",
        new="decoded(value_type, value, min(version, value_type.MAX_VERSION))",
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
    safety_bug(
        id="KAFKA-19431",
        cause="members were given topics that they had just ceased to subscribe to",
        breaks="a member has what it subscribes to",
        within="Reconciliation._maybe_shrink",
        old="not self.has_subscription_changed",
        new="True",
    ),
    liveness_bug(
        id="KAFKA-18916",
        cause="the deletion of a topic that an expression matches began no rebalance",
        breaks="groups follow their topics",
        within="ConsumerGroup.is_subscribed_to",
        old="any(topic in resolved.topics for resolved in self.resolved_regexes.values())",
        new="False",
    ),
    liveness_bug(
        id="KAFKA-16367",
        cause="a heartbeat that says all was answered without the assignment",
        breaks="lost answers are repeated",
        within="Heartbeat._response",
        old="""
            request.member_epoch == JOIN_EPOCH or is_full or reconciled.assigned != member.assigned
        """,
        new="request.member_epoch == JOIN_EPOCH or reconciled.assigned != member.assigned",
    ),
    conformity_bug(
        id="KAFKA-17228",
        cause="a static member could not take the place that it has by the classic protocol",
        breaks="static membership",
        within="Heartbeat._static_member",
        old="not has_left and not existing.uses_classic_protocol",
        new="not has_left",
    ),
    conformity_bug(
        id="KAFKA-17733",
        cause="a classic member that was assigned nothing kept its group from the new protocol",
        breaks="groups are upgraded",
        within="_assigned",
        old="if not member.assignment: return {}",
        room="groups.consumer.upgrade",
    ),
    conformity_bug(
        id="KAFKA-20268",
        cause="the first epoch of a group was that of a member which joins",
        breaks="epochs of a group",
        within="GroupEpochs",
        old="""
            group_epoch: int = FIRST_EPOCH
            metadata_hash: int = 0
            assignment_epoch: int = FIRST_EPOCH
        """,
        new="""
            group_epoch: int = 0
            metadata_hash: int = 0
            assignment_epoch: int = 0
        """,
    ),
    safety_bug(
        id="owner not waited for",
        cause="a partition was given to a member before another had dropped it",
        breaks="a partition has one owner",
        within="Reconciliation._approach_target",
        old="one in pending or self.owner_epoch(topic_id, one) == NOT_OWNED",
        new="True",
    ),
    safety_bug(
        id="dropping is not owning",
        cause="what a member has yet to give up had no owner",
        breaks="a partition has one owner",
        within="ConsumerGroup._own",
        old="_places(member.assigned, member.pending_revocation)",
        new="_places(member.assigned)",
    ),
    safety_bug(
        id="silence is consent",
        cause="a member that did not say what it owns counted as one that owns nothing",
        breaks="a partition has one owner",
        within="Reconciliation._may_own",
        old="if self.owned is None: return True",
        new="if self.owned is None: return False",
    ),
    liveness_bug(
        id="lost answer fences",
        cause="a member that had missed the answer with its new epoch was fenced",
        breaks="lost answers are repeated",
        within="Heartbeat._check_epoch",
        old="received == member.member_epoch or self._has_missed_answer(member)",
        new="received == member.member_epoch",
    ),
    safety_bug(
        id="epoch before owns all",
        cause="a member of the epoch before was served whatever it said it owned",
        breaks="a partition has one owner",
        within="Heartbeat._has_missed_answer",
        old="return owned is not None and member.has_all_of(owned)",
        new="return True",
    ),
    safety_bug(
        id="late rebalance timeout",
        cause="the timeout of an earlier epoch fenced a member that had moved on",
        breaks="a member is known for its session",
        within="fence_member",
        old="isinstance(timeout, MemberRebalance) and member.member_epoch != timeout.member_epoch",
        new="False",
    ),
    liveness_bug(
        id="partitions never dropped",
        cause="a member that did not drop its partitions kept them for ever",
        breaks="rebalances end",
        within="MemberUpdate.reconcile",
        old="self.shard.outbox.set_timer(timeout, timeout_ms, is_retried=True)",
        new="del timeout, timeout_ms",
    ),
    safety_bug(
        id="away is gone",
        cause="a static member that left for a while lost its partitions to others",
        breaks="static membership",
        within="leave",
        old="_at_epoch_zero(member.assigned)",
        new="{}",
        room="groups.consumer",
    ),
    liveness_bug(
        id="sessions end with the coordinator",
        cause="a new coordinator began no sessions for the members that it had loaded",
        breaks="dead members are fenced",
        within="GroupCoordinatorShard.on_loaded",
        old="start_timers(self.state, group)",
    ),
    safety_bug(
        id="session of the join alone",
        cause="a session was not begun again by heartbeats after the join",
        breaks="a member is known for its session",
        within="Heartbeat.decide",
        old="self._schedule_session(group, reconciled)",
        new="""
            if self.request.member_epoch == JOIN_EPOCH:
                self._schedule_session(group, reconciled)
        """,
    ),
    liveness_bug(
        id="departure unnoticed",
        cause="a member that left began no epoch, so nobody got its partitions",
        breaks="partitions have an owner",
        within="remove_members",
        old="group.epochs().group_epoch + 1",
        new="group.epochs().group_epoch",
    ),
    safety_bug(
        id="commit of another's",
        cause="a member committed in an earlier epoch for partitions that it did not have then",
        breaks="committed offsets stay",
        within="_has_had",
        old="since is None or since > epoch",
        new="False",
        room="groups.consumer",
    ),
    liveness_bug(
        id="expression outlives its members",
        cause="an expression stayed matched when its last subscriber had left",
        breaks="groups follow their topics",
        within="remove_members",
        old="regex and group.regex_subscriber_count(regex) == count",
        new="False",
    ),
    liveness_bug(
        id="late leader without coordinator",
        cause="a partition that led only when its log was tried again had no coordinator",
        breaks="a leader coordinates",
        within="CoordinatorRuntime._elect",
        old="self._elected_early[change.partition] = change",
    ),
)
