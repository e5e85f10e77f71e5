"""Mistakes in the state of a partition, in leaders and in followers, as edits."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited, of_ledger

from kvorum.simulation.partitions import promises

REPLICATION_MISTAKES: Final = (
    Mistake(
        "a change raises the partition epoch by two",
        promises.EPOCH_RISES,
        1,
        edited(
            Edit(
                within="merge_partition_change",
                old="partition.partition_epoch + 1",
                new="partition.partition_epoch + 2",
            )
        ),
    ),
    Mistake(
        "a leader from the ELR is not put into the ISR",
        promises.LEADER_IN_ISR,
        1,
        edited(
            Edit(
                within="PartitionChangeBuilder._elect",
                old="self.isr = (elected.leader,)",
                new="self.isr = ()",
            )
        ),
    ),
    Mistake(
        "who stays in the ISR becomes eligible as well",
        promises.ISR_OF_REPLICAS,
        1,
        edited(
            Edit(
                within="PartitionChangeBuilder._find_eligible_leaders",
                old="{*self.isr, *self.unclean_shutdown_replicas}",
                new="{*self.unclean_shutdown_replicas}",
            )
        ),
    ),
    Mistake(
        "a new leader goes on in the epoch of the former one",
        promises.NEW_LEADER_EPOCH,
        1,
        edited(
            Edit(
                within="merge_partition_change",
                old="partition.leader_epoch + names_leader",
                new="partition.leader_epoch",
            )
        ),
    ),
    Mistake(
        "a leader does not tell a follower where their logs diverge",
        promises.ONE_RECORD,
        5,
        edited(
            Edit(
                within="Partition.fetch_records_of_follower",
                old="last_fetched_epoch",
                new="NO_EPOCH",
            )
        ),
    ),
    Mistake(
        "two leaders write in one epoch",
        promises.ONE_BATCH,
        2,
        edited(
            Edit(
                within="Partition.append_records_to_leader",
                old="leader.leader_epoch",
                new="leader.leader_epoch // 2",
            ),
            Edit(
                within="Partition.make_leader",
                old="self.log.local_log.assign_epoch(registration.leader_epoch)",
                new="self.log.local_log.assign_epoch(registration.leader_epoch // 2)",
            ),
        ),
    ),
    Mistake(
        "a follower that diverges truncates all of its log",
        promises.NO_TRUNCATION,
        1,
        edited(
            Edit(
                within="ReplicaFetcher._on_divergence",
                old="self.truncate(state, offset)",
                new="self.truncate(state, log.log_start_offset)",
            )
        ),
    ),
    Mistake(
        "a leader's high watermark follows the slowest replica down",
        promises.WATERMARK_RISES,
        4,
        of_ledger("KAFKA-3978"),
    ),
    Mistake(
        "records are deleted up to the high watermark, whatever was asked for",
        promises.NOTHING_DELETED,
        1,
        edited(
            Edit(
                within="Partition.delete_records",
                old="self.log.delete_records(offset, now_ms=now_ms)",
                new="self.log.delete_records(self.log.high_watermark, now_ms=now_ms)",
            )
        ),
    ),
    Mistake(
        "a write is acknowledged before the others have it",
        promises.ACKNOWLEDGED,
        1,
        edited(
            Edit(
                within="PartitionLeader.check_acks_all",
                old="self.high_watermark < required_offset",
                new="False",
            )
        ),
    ),
    Mistake(
        "a follower names the leader's epoch as that of its last record",
        promises.FETCHED_FROM_END,
        1,
        edited(
            Edit(
                within="_fetch_partition",
                old="state.last_fetched_epoch",
                new="state.leader_epoch",
                room="broker.fetcher",
            )
        ),
    ),
    Mistake(
        "a follower asks again in an epoch that is over",
        promises.FENCED_STAY_AWAY,
        1,
        edited(
            Edit(
                within="ReplicaFetcher.on_error",
                old='self._fail(state, "The leader is of a later epoch")',
                new="self._delay((state.partition.key,), now_ms)",
            )
        ),
    ),
    Mistake(
        "any replica serves former clients",
        promises.FORMER_CLIENTS_ASK_LEADERS,
        1,
        of_ledger("KAFKA-9004"),
    ),
    Mistake(
        "a leader writes in the next epoch",
        promises.KNOWN_EPOCHS,
        1,
        edited(
            Edit(
                within="Partition.append_records_to_leader",
                old="leader.leader_epoch",
                new="leader.leader_epoch + 1",
            )
        ),
    ),
    Mistake(
        "a follower deletes all that is committed",
        promises.STARTS_FOLLOW,
        1,
        edited(
            Edit(
                within="Partition.follow_leader",
                old="self.log.delete_records(log_start_offset, now_ms=wall_ms)",
                new="self.log.delete_records(self.log.high_watermark, now_ms=wall_ms)",
            )
        ),
    ),
    Mistake(
        "a follower's high watermark stays one record behind",
        promises.ALL_COMMITTED,
        1,
        edited(
            Edit(
                within="Partition.follow_leader",
                old="self.log.update_high_watermark(high_watermark)",
                new="""
                    self.log.update_high_watermark(
                        max(high_watermark - 1, self.log.high_watermark)
                    )
                """,
            )
        ),
    ),
    Mistake(
        "a follower is in sync by the time of its last record alone",
        promises.IDLE_STAY_IN_SYNC,
        2,
        edited(
            Edit(
                within="ReplicaProgress.is_caught_up",
                old="""(
                    self.log_end_offset == leader_end_offset
                    or now_ms - self.last_caught_up_ms <= lag_max_ms
                )""",
                new="now_ms - self.last_caught_up_ms <= lag_max_ms",
            )
        ),
    ),
    Mistake(
        "a fetch of an ended process is served",
        promises.ENDED_PROCESS_IS_REFUSED,
        None,
        of_ledger("KAFKA-15221"),
    ),
    Mistake(
        "a process fetches in the epoch before its own, and is served",
        promises.ENDED_PROCESS_IS_REFUSED,
        1,
        edited(
            Edit(
                within="PartitionLeader.on_fetch",
                old="self._is_of_past_incarnation(fetch)",
                new="False",
            ),
            Edit(
                within="ReplicaFetcherThread._fetch",
                old="self._broker.epoch()",
                new="self._broker.epoch() - 1",
            ),
        ),
    ),
    Mistake(
        "a follower fetches on before its slow disk has stored what it got",
        promises.FETCHED_FROM_END,
        1,
        edited(
            Edit(
                within="PartitionFetchState.is_ready",
                old="not self.partition.log.writes.is_behind",
                new="True",
            )
        ),
    ),
    Mistake(
        "a leader counts what its slow disk has yet to store",
        promises.ACKNOWLEDGED,
        None,
        edited(
            Edit(
                within="Partition.append_records_to_leader",
                old="""
                log.writes.when_done(
                    partial(self._on_stored, leader, log.log_end_offset, now_ms)
                )
                """,
                new="self._on_stored(leader, log.log_end_offset, now_ms)",
            )
        ),
    ),
)
