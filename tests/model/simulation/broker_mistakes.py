"""Mistakes in the code of a broker, its controller and its groups: for each property one at least.

Each is made in the code that a node runs, and breaks that property in a world of brokers. Most are
edits as those of the ledger (`tests.model.mutation`); what takes the place of more is a function.
"""

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.model.mutation.mutant import Edit
from tests.model.simulation.consumer_group_mistakes import CONSUMER_GROUP_MISTAKES
from tests.model.simulation.group_mistakes import GROUP_MISTAKES
from tests.model.simulation.handler_mistakes import HANDLER_MISTAKES
from tests.model.simulation.log_mistakes import LOG_MISTAKES
from tests.model.simulation.login_mistakes import LOGIN_MISTAKES
from tests.model.simulation.mistake import Mistake, edited, in_place_of, of_ledger
from tests.model.simulation.replication_mistakes import REPLICATION_MISTAKES
from tests.model.simulation.share_mistakes import SHARE_MISTAKES
from tests.model.simulation.stored_transaction_mistakes import STORED_TRANSACTION_MISTAKES
from tests.model.simulation.transaction_mistakes import TRANSACTION_MISTAKES

from kvorum.broker.fetcher import replica_fetcher
from kvorum.broker.fetcher.fetch_requests import PartitionFetchState, initial_fetch_state
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.leader import (
    CommittedPartitionState,
    PartitionLeader,
    PendingExpandIsr,
)
from kvorum.controller.apis import alter_partition
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.partitions import promises
from kvorum.simulation.properties.catalogue import P6
from kvorum.storage.log.segment import Segment
from kvorum.storage.topic_log import unified_log
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.records import RecordBatch, read_batches

# pyright: reportPrivateUsage=false
# (a mistake is made inside of a class)


def _committed_isr_only(patch: pytest.MonkeyPatch) -> None:
    def members(self: PendingExpandIsr) -> frozenset[int]:
        return self.committed.members

    def not_even_waiting(self: PartitionLeader, _: int) -> bool:
        return False

    patch.setattr(PendingExpandIsr, "maximal", property(members))
    raise_it = PartitionLeader._raise_high_watermark

    def without_those_who_join(self: PartitionLeader, now_ms: float) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(PartitionLeader, "_may_join", not_even_waiting)
            raise_it(self, now_ms)

    patch.setattr(PartitionLeader, "_raise_high_watermark", without_those_who_join)


refusal_code = alter_partition.refusal_code


def lenient_refusal_code(
    cluster: ClusterImage,
    partition: PartitionRegistration,
    wanted: AlterPartitionRequest.PartitionData,
    *,
    broker_id: int,
    isr: list[tuple[int, int]],
) -> ErrorCode:
    wanted.leader_epoch = partition.leader_epoch
    wanted.partition_epoch = partition.partition_epoch
    return refusal_code(cluster, partition, wanted, broker_id=partition.leader, isr=isr)


lead = PartitionLeader.lead


def lead_and_keep_the_change(
    leader: PartitionLeader, partition: PartitionRegistration, **ends: Any
) -> bool:
    before = leader.state
    told = lead(leader, partition, **ends)
    if not isinstance(before, CommittedPartitionState):
        leader.state = before
    return told


def truncating_to_the_high_watermark(partition: Partition, epoch: int) -> PartitionFetchState:
    """As before KIP-101: what is committed may be above a follower's high watermark."""
    state = initial_fetch_state(partition, epoch)
    return replace(state, fetch_offset=partition.log.high_watermark, must_truncate=True)


def _take_answers_of_another_epoch(patch: pytest.MonkeyPatch) -> None:
    def same_offset(self: PartitionFetchState, asked: PartitionFetchState) -> bool:
        return self.fetch_offset == asked.fetch_offset

    def any_epoch(records: bytes, *, leader_epoch: int) -> list[RecordBatch]:
        return list(read_batches(records, is_cut_allowed=leader_epoch >= 0))

    patch.setattr(PartitionFetchState, "is_same_fetch", same_offset)
    patch.setattr(unified_log, "replicated_batches", any_epoch)


def _sync_nothing(patch: pytest.MonkeyPatch) -> None:
    def counted_only(_: Segment) -> None:
        return None

    patch.setattr(Segment, "sync", counted_only)
    patch.setattr(Segment, "sync_with_indexes", counted_only)


FORMER_MISTAKES: Final = (
    Mistake(
        "the high watermark goes by the committed ISR",
        promises.COMMITTED_IN_SYNC,
        11,
        _committed_isr_only,
    ),
    Mistake(
        "a replica that is to leave the ISR has left it",
        promises.COMMITTED_IN_SYNC,
        4,
        edited(
            Edit(
                within="_PendingIsr.maximal",
                old="self.committed.members",
                new="self.committed.members - getattr(self, 'leaving', frozenset())",
            )
        ),
    ),
    Mistake(
        "the high watermark moves below min.insync.replicas",
        promises.LEADER_COMPLETE,
        8,
        edited(
            Edit(
                within="PartitionLeader.is_under_min_isr",
                old="len(self.state.members) < self.min_insync_replicas",
                new="False",
            )
        ),
    ),
    Mistake(
        "lost logs are not noticed",
        promises.LEADER_COMPLETE,
        28,
        edited(
            Edit(
                within="register_broker",
                old="_was_shutdown_clean(request, existing, context)",
                new="True",
            )
        ),
    ),
    Mistake(
        "a change is never given up",
        promises.WRITES_END,
        2,
        in_place_of(PartitionLeader, "lead", lead_and_keep_the_change),
    ),
    Mistake(
        "a follower truncates to its high watermark",
        promises.LEADER_COMPLETE,
        13,
        in_place_of(replica_fetcher, "initial_fetch_state", truncating_to_the_high_watermark),
    ),
    Mistake(
        "producers of truncated records are remembered",
        promises.READS_COMMITTED,
        None,
        of_ledger("producers behind a truncation"),
    ),
    Mistake("a flush makes nothing durable", P6, 1, _sync_nothing),
    Mistake(
        "changes by past leaders are accepted",
        promises.LEADER_COMPLETE,
        19,
        in_place_of(alter_partition, "refusal_code", lenient_refusal_code),
    ),
    Mistake(
        "the start of the leader's epoch is ignored",
        promises.OFFSETS_KEPT,
        12,
        edited(
            Edit(
                within="PartitionLeader.lead",
                old="self.epoch_start_offset = log_end_offset",
                new="self.epoch_start_offset = 0",
            )
        ),
    ),
    Mistake(
        "a report of where a log is takes the place of its move's",
        promises.COMPACTED,
        None,
        edited(
            Edit(
                within="ReplicaAlterLogDirsManager.has_reported",
                old="self._thread.has_reported(key)",
                new="False",
            )
        ),
    ),
    Mistake(
        "a flush of a log that has moved takes its directory offline",
        promises.WRITES_END,
        None,
        edited(
            Edit(
                within="LocalLog._flush_stored",
                old="self.recovery_point if self.is_closed else self._flush_all()",
                new="self._flush_all()",
            )
        ),
    ),
    Mistake(
        "a log that moves keeps what its replica has lost",
        promises.READ_IS_COMMITTED,
        None,
        edited(
            Edit(within="Partition.truncate_to", old="self.future_replica is not None", new="False")
        ),
    ),
    Mistake(
        "answers of another epoch are taken",
        promises.ALL_IN_SYNC_AGAIN,
        1,
        _take_answers_of_another_epoch,
    ),
)
MISTAKES: Final = (
    *FORMER_MISTAKES,
    *REPLICATION_MISTAKES,
    *LOG_MISTAKES,
    *LOGIN_MISTAKES,
    *GROUP_MISTAKES,
    *CONSUMER_GROUP_MISTAKES,
    *SHARE_MISTAKES,
    *HANDLER_MISTAKES,
    *STORED_TRANSACTION_MISTAKES,
    *TRANSACTION_MISTAKES,
)
