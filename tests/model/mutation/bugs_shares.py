"""Bugs in share groups (KIP-932): the state that coordinators keep, and records in flight."""

from tests.model.mutation.mutant import conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-19456",
        cause="a write changed the state epoch and the leader epoch of a share partition",
        breaks="epochs of share partitions",
        within="ShareCoordinatorShard.write_state",
        old="self._record_of_change(key, kept, change, now_ms)",
        new="""
            self._record_of_change(
                key,
                kept,
                replace(
                    change, state_epoch=wanted.state_epoch, leader_epoch=wanted.leader_epoch
                ),
                now_ms,
            )
        """,
    ),
    conformity_bug(
        id="KAFKA-20694",
        cause="the leader epoch -1 of a read, which is none, was taken for one",
        breaks="epochs of share partitions",
        within="ShareCoordinatorShard.read_state",
        old="check_not_negative(leader_epoch, NEGATIVE_LEADER_EPOCH)",
    ),
    safety_bug(
        id="share state epoch unchecked",
        cause="a write for a state that had been begun again since was kept",
        breaks="epochs of share partitions",
        within="ShareCoordinatorShard.write_state",
        old="check_state_epoch(kept, wanted.state_epoch)",
    ),
    safety_bug(
        id="share state without its end",
        cause="a new leader left out the stored states of the records after the start offset",
        breaks="an accepted record is not delivered again",
        within="load",
        old="result.state_batches",
        new="()",
        room="broker.share_partition",
    ),
    safety_bug(
        id="share deliveries forgotten",
        cause="a new leader counted the deliveries of records from the beginning",
        breaks="the delivery count of a record rises",
        within="_put",
        old="stored.delivery_count",
        new="0",
        room="broker.share_partition",
    ),
    safety_bug(
        id="share acknowledgement answered",
        cause="an acknowledgement was answered before it was written",
        breaks="an accepted record is not delivered again",
        within="LedSharePartition._decided",
        old="shield(self._runtime, self._write(write))",
        new="self._begin_write(write) or _answered(AcknowledgeResult(ErrorCode.NONE))",
    ),
    safety_bug(
        id="share acknowledgement closed",
        cause="an acknowledgement ended with its client's connection, its records in between",
        breaks="every record is delivered until it is done with",
        within="LedSharePartition._decided",
        old="shield(self._runtime, self._write(write))",
        new="self._write(write)",
    ),
    safety_bug(
        id="share writes overtaken",
        cause="a later write of a share partition could be kept before an earlier one",
        breaks="the order of a share partition's writes",
        within="LedSharePartition._write",
        old="""
            async with self._write_order:
                response = await self._persister.write_state(
                    WriteShareGroupStateRequest(key.group_id, [topic])
                )
        """,
        new="""
            response = await self._persister.write_state(
                WriteShareGroupStateRequest(key.group_id, [topic])
            )
        """,
    ),
    conformity_bug(
        id="share delivery limit ignored",
        cause="a record was delivered as often as it was released",
        breaks="share.delivery.count.limit",
        within="InFlightState._state_within_limit",
        old="self.delivery_count < settings.delivery_count_limit",
        new="True",
    ),
    safety_bug(
        id="share lock of another",
        cause="a member could say what becomes of records that another one had acquired",
        breaks="an acquired record has one member",
        within="Acknowledgement._check_owner",
        old="state.member_id != self._member_id",
        new="False",
    ),
    safety_bug(
        id="share locks end together",
        cause="when one acquisition lock expired, all others did",
        breaks="an acquired record has one member",
        within="AcquisitionLocks.expired",
        old="deadline_ms is None or deadline_ms > now_ms",
        new="deadline_ms is None",
    ),
    liveness_bug(
        id="share session without release",
        cause="the records of a member whose session had ended stayed acquired",
        breaks="a member's records are released at its end",
        within="SharePartitionManager.release_session",
        old="""
            Task(
                self._at_each(
                    key.group_id,
                    dict.fromkeys(partitions),
                    lambda led, _: led.release_acquired_records(key.member_id),
                ),
                lambda _: None,
            )
        """,
    ),
    liveness_bug(
        id="share release unseen",
        cause="nobody looked for records that were released",
        breaks="a released record is delivered again",
        within="complete",
        old="""
            if run.state.state is RecordState.AVAILABLE:
                records.may_have_available = True
        """,
        room="broker.share_partition",
    ),
    safety_bug(
        id="dead letters of the leader before",
        cause="a new leader left the records alone that were on their way to the dead-letter queue",
        breaks="a dead letter comes to its queue",
        within="_put",
        old="state is not RecordState.ARCHIVING",
        new="True",
        room="broker.share_partition",
    ),
    safety_bug(
        id="dead letter sent once",
        cause="a dead letter was given up that a leader could not take at the moment",
        breaks="a dead letter comes to its queue",
        within="ShareGroupDLQManager._written",
        old="is_last or error.code not in PASSING",
        new="True",
    ),
    safety_bug(
        id="dead letter of another record",
        cause="a dead letter had the key and the value of the record before",
        breaks="a dead letter is a copy of its record",
        within="OriginalRecords._collect_from",
        old="self.records[record.offset] = OriginalRecord(record.key, record.value)",
        new="self.records[record.offset + 1] = OriginalRecord(record.key, record.value)",
    ),
    liveness_bug(
        id="dead letters one by one",
        cause="each dead letter was archived by a write of its own, which others waited for",
        breaks="dead letters are archived together",
        within="LedSharePartition._archive_copied",
        old="""
            if self._is_archiving:
                return
        """,
    ),
    safety_bug(
        id="share partition of one epoch",
        cause="a higher epoch of the same leader gave acquired records to others",
        breaks="an acquired record has one member",
        within="LedSharePartition.is_led",
        old="self.replica.is_leader",
        new="self.replica.is_leader and self.replica.leader_epoch == self.leader_epoch",
    ),
    conformity_bug(
        id="share group before its beginning",
        cause="a group began at what a new leader knew to be committed, which was less than was",
        breaks="share.auto.offset.reset",
        within="start_offset",
        old="not leader.is_offset_available",
        new="False",
    ),
)
