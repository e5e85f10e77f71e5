"""A partition that this broker has a replica of: its log, and its part as leader or follower.

Time is an argument. A request that waits for a partition is called when that changes.
"""

from collections.abc import Callable
from functools import partial

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.future_replica import FutureReplica
from kvorum.broker.log_read import LogReadInfo, bytes_available, read_records
from kvorum.broker.partition_leader.isr_changes import IsrChanges
from kvorum.broker.partition_leader.leader import IsrProposal, LocalBroker, PartitionLeader
from kvorum.broker.partition_leader.outcomes import Answer, LeaderRefusesError
from kvorum.broker.partition_leader.replica_state import FollowerFetch
from kvorum.broker.partition_watchers import PartitionWatchers
from kvorum.broker.read_ahead import ReadAhead
from kvorum.metadata.partition import PartitionRegistration
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.verification_state import (
    NO_TRANSACTION,
    TransactionAppend,
    VerificationGuard,
)
from kvorum.storage.topic_log.log_validator import InspectedBatch
from kvorum.storage.topic_log.unified_log import LogAppendInfo, UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import BatchContent
from kvorum.wire.records.legacy import Entry
from kvorum.wire.records.size_check import SizeCheck

ALL_IN_SYNC = -1
"""The value of ``acks`` upon which every replica in sync must have the records."""


class Partition:
    """A replica of one partition: its log, and what it needs while it leads."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        log: UnifiedLog,
        broker: LocalBroker,
        *,
        flush_log: Callable[[UnifiedLog], None],
        lag_max_ms: float,
        topic_stats: BrokerTopicStats,
        isr_changes: IsrChanges,
    ) -> None:
        """`flush_log` has finished segments made durable, without waiting for it.

        `lag_max_ms` is ``replica.lag.time.max.ms``. All partitions have the same `topic_stats` and
        `isr_changes`.
        """
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.future_replica: FutureReplica | None = None
        """The log in the directory that the replica moves to; None while it stays (KIP-113)."""
        self._broker = broker
        self._flush_log = flush_log
        self._lag_max_ms = lag_max_ms
        self._topic_stats = topic_stats
        self._isr_changes = isr_changes
        self.leader: PartitionLeader | None = None
        """This broker's part as the leader; None while it does not lead."""
        self.leader_epoch = NO_EPOCH
        """The leader epoch that the metadata log has, -1 before the first."""
        self._is_closed = False
        self.is_offline = False
        """Whether the log directory has failed: the log is not there to be used."""
        self.watchers = PartitionWatchers()

    @property
    def key(self) -> tuple[bytes, int]:
        """The topic id and the index."""
        return self.topic_id, self.topic_partition.partition

    @property
    def logs(self) -> tuple[UnifiedLog, ...]:
        """The current log, and the one in the directory that the replica moves to."""
        future = self.future_replica
        return (self.log,) if future is None else (self.log, future.log)

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        return self.leader is not None

    def make_leader(
        self, registration: PartitionRegistration, *, min_insync_replicas: int, now_ms: float
    ) -> None:
        """Lead the partition, or go on leading it, as the metadata log has it."""
        leader = self.leader
        if leader is None:
            leader = PartitionLeader(
                self._broker,
                topic_id=self.topic_id,
                partition_index=self.topic_partition.partition,
                lag_max_ms=self._lag_max_ms,
                min_insync_replicas=min_insync_replicas,
                high_watermark=self.log.high_watermark,
            )
        if registration.leader_epoch > self.leader_epoch:
            self.log.local_log.assign_epoch(registration.leader_epoch)
            self.leader_epoch = registration.leader_epoch
        self.leader = leader
        log = self.log.local_log
        leader.lead(
            registration,
            log_end_offset=log.log_end_offset,
            stored_end_offset=log.stored_end_offset,
            now_ms=now_ms,
        )
        self._follow_high_watermark(leader)
        if log.writes.is_behind:
            # The appends of its time as a follower count later.
            log.writes.when_done(partial(self._on_stored, leader, log.log_end_offset, now_ms))

    def make_follower(self, registration: PartitionRegistration) -> bool:
        """Follow from the next fetch on; return whether the leader epoch is a new one.

        Requests that wait for this leader are answered.
        """
        is_new = registration.leader_epoch > self.leader_epoch
        self.leader = None
        self.leader_epoch = registration.leader_epoch
        self.watchers.notify()
        return is_new

    def close(self) -> None:
        """Be no replica any more."""
        self.leader = None
        self._is_closed = True
        self.watchers.notify()

    def mark_offline(self) -> None:
        """Have no log any more, because its directory has failed (KIP-112)."""
        self.is_offline = True
        self.future_replica = None
        self.close()

    def append_records_to_leader(
        self,
        batch: RecordBatch,
        *,
        required_acks: int,
        wall_ms: int,
        now_ms: float,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction: TransactionAppend = NO_TRANSACTION,
        inspected: InspectedBatch | None = None,
    ) -> LogAppendInfo:
        """Append a batch; `wall_ms` is the time of day, `now_ms` that of timeouts.

        On a slow disk nothing may be answered before `DiskQueue.when_done` has called.
        `inspected` is what its `inspection` has returned, if that was done before.
        Raises LeaderRefusesError, RecordValidationError, ProducerError, or StorageError.
        """
        leader = self.demand_leader()
        if required_acks == ALL_IN_SYNC:
            leader.check_append()
        info = self.log.append_as_leader(
            batch,
            leader_epoch=leader.leader_epoch,
            now_ms=wall_ms,
            origin=origin,
            transaction=transaction,
            inspected=inspected,
        )
        self._topic_stats.on_append(
            self.topic_partition.topic,
            size_bytes=batch.size,
            message_count=info.last_offset - info.first_offset + 1,
        )
        self._flush_finished_segments()
        log = self.log.local_log
        log.writes.when_done(partial(self._on_stored, leader, log.log_end_offset, now_ms))
        return info

    def _on_stored(self, leader: PartitionLeader, end_offset: int, now_ms: float) -> None:
        """Count what is stored up to an offset, if the part that has appended it goes on."""
        if self.leader is not leader:
            return
        if self.log.writes.has_failed:
            self.watchers.notify()
            return
        leader.on_append(end_offset, now_ms)
        if not self._follow_high_watermark(leader):
            # Followers may read what is not committed yet.
            self.watchers.notify()

    def inspection(
        self,
        batch: RecordBatch,
        *,
        required_acks: int,
        wall_ms: int,
        content: BatchContent | None = None,
    ) -> Callable[[SizeCheck], InspectedBatch]:
        """Return what looks at the records of a client's batch, which any thread may call.

        `content` has them, if they are unpacked already; else the check is called with the size of
        what is unpacked so far. Both raise what `append_records_to_leader` does.
        """
        leader = self.demand_leader()
        if required_acks == ALL_IN_SYNC:
            leader.check_append()
        return self.log.inspection(batch, now_ms=wall_ms, content=content)

    def maybe_start_transaction_verification(
        self,
        producer_id: int,
        *,
        sequence: int,
        epoch: int,
        supports_epoch_bump: bool,
        wall_ms: int,
    ) -> VerificationGuard | None:
        """Return the guard of a batch that begins a transaction; None if one of its epoch is open.

        See `ProducerState`. Raises LeaderRefusesError, or ProducerError.
        """
        self.demand_leader()
        return self.log.producers.maybe_start_transaction_verification(
            producer_id,
            sequence=sequence,
            epoch=epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=wall_ms,
        )

    def append_records_to_follower(
        self, records: bytes | memoryview, *, leader_epoch: int, wall_ms: int
    ) -> Entry | None:
        """Append what the leader of an epoch has returned; return the last batch of it, if any.

        Raises CorruptBatchError, or StorageError.
        """
        last = self.log.append_as_follower(records, leader_epoch=leader_epoch, now_ms=wall_ms)
        self._topic_stats.replication_bytes_in += len(records)
        self._flush_finished_segments()
        return last

    def truncate_to(self, offset: int, *, now_ms: int, fully: bool = False) -> None:
        """Truncate the log to `offset`, or wholly so that it starts there, in a thread.

        `DiskQueue.when_done` calls when that has ended. Raises StorageError where it is done at
        once. The future log may have what goes, and is to be truncated too.
        """
        self.log.truncate_behind(offset, now_ms=now_ms, fully=fully)
        if self.future_replica is not None:
            self.future_replica.on_truncated(offset)

    def maybe_create_future_replica(self, log: UnifiedLog) -> FutureReplica:
        """Return the copy of the current log to a future log, begun or under way."""
        future = self.future_replica
        if future is None or future.log is not log:
            future = FutureReplica(self.log, log, self.watchers, flush_log=self._flush_log)
            self.future_replica = future
        return future

    def replace_log(self, log: UnifiedLog) -> None:
        """Use the log that was the future one; requests that wait read from it.

        It takes over a leader epoch that has begun at the end of the log, and has no record yet.
        """
        epoch, known = self.log.local_log.latest_epoch, log.local_log.latest_epoch
        if epoch is not None and (known is None or known < epoch):
            log.local_log.assign_epoch(epoch)
        self.log = log
        self.future_replica = None
        self.watchers.notify()

    def _flush_finished_segments(self) -> None:
        if self.log.local_log.has_unflushed_segments:
            self._flush_log(self.log)

    def follow_leader(self, high_watermark: int, log_start_offset: int, *, wall_ms: int) -> None:
        """Take over the leader's high watermark, as far as this log goes, and its log's start."""
        self.log.update_high_watermark(high_watermark)
        self.log.delete_records(log_start_offset, now_ms=wall_ms)
        self.watchers.notify()

    def check_enough_replicas_reach_offset(self, required_offset: int) -> ErrorCode | None:
        """Return the code of a write with ``acks=all``, None while it has to wait."""
        if self.leader is None:
            return self._refusal
        return self.leader.check_acks_all(required_offset)

    def check_current_leader_epoch(self, epoch: int) -> None:
        """Raise LeaderRefusesError for a request of another leader epoch; -1 passes."""
        if epoch in {NO_EPOCH, self.leader_epoch}:
            return
        is_old = epoch < self.leader_epoch
        raise LeaderRefusesError(
            ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        )

    def fetch_records(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: IsolationLevel,
        leader_epoch: int,
        last_fetched_epoch: int = NO_EPOCH,
        is_leader_needed: bool = True,
        ahead: ReadAhead | None = None,
    ) -> LogReadInfo:
        """Read for a consumer, as `read_records` does.

        Raises LeaderRefusesError; OffsetOutOfRangeError, and other StorageErrors.
        """
        self.check_current_leader_epoch(leader_epoch)
        if is_leader_needed or self._is_closed:
            self.demand_leader()
        if self.log.local_log.is_truncating:
            # A consumer of a follower goes on at the leader.
            raise LeaderRefusesError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return read_records(
            self.log,
            offset,
            max_bytes,
            isolation=isolation,
            last_fetched_epoch=last_fetched_epoch,
            ahead=ahead,
        )

    def fetch_offset_snapshot(self, leader_epoch: int) -> LogReadInfo:
        """Return the offsets for a consumer that reads elsewhere; raises LeaderRefusesError."""
        self.check_current_leader_epoch(leader_epoch)
        log = self.log
        start = log.log_start_offset
        return LogReadInfo(log.high_watermark, log.last_stable_offset, start, b"")

    def fetch_records_of_follower(
        self,
        fetch: FollowerFetch,
        max_bytes: int,
        *,
        last_fetched_epoch: int,
        now_ms: float | None,
        ahead: ReadAhead | None = None,
    ) -> LogReadInfo:
        """Read up to the end of the log for a follower, as `read_records` does.

        `now_ms` is None where the same fetch is read again: the follower's progress is known then.
        Raises LeaderRefusesError; OffsetOutOfRangeError, and other StorageErrors.
        """
        self.check_current_leader_epoch(fetch.leader_epoch)
        leader = self.demand_leader()
        leader.check_fetch(fetch)
        read = read_records(
            self.log,
            fetch.offset,
            max_bytes,
            isolation=None,
            last_fetched_epoch=last_fetched_epoch,
            ahead=ahead,
        )
        if read.diverging is None and now_ms is not None:
            low_watermark = self.low_watermark
            proposal = leader.on_fetch(fetch, now_ms)
            if not self._follow_high_watermark(leader) and self.low_watermark != low_watermark:
                self.watchers.notify()
            self._isr_changes.propose(proposal)
        return read

    def shrink_isr(self, now_ms: float) -> None:
        """Propose an ISR without the followers that lag too far behind, if there are any."""
        if self.leader is not None:
            self._isr_changes.propose(self.leader.shrink(now_ms))

    def on_altered(self, proposal: IsrProposal, answer: Answer, now_ms: float) -> None:
        """Take in the controller's answer to a proposal."""
        leader = self.leader
        if leader is not None:
            self._isr_changes.on_answer(leader.state, proposal, answer)
            again = leader.on_answer(proposal, answer, now_ms)
            self._follow_high_watermark(leader)
            self._isr_changes.propose(again)

    def bytes_available(
        self, offset: int, max_bytes: int, *, isolation: IsolationLevel | None, wanted: int
    ) -> int | None:
        """Return how many bytes there are for a fetch; see `log_read.bytes_available`."""
        return bytes_available(self.log, offset, max_bytes, isolation=isolation, wanted=wanted)

    def demand_leader(self) -> PartitionLeader:
        """Return this broker's part as the leader; raise LeaderRefusesError if it does not lead."""
        if self.leader is None:
            raise LeaderRefusesError(self._refusal)
        return self.leader

    @property
    def _refusal(self) -> ErrorCode:
        """Why this broker does not answer as a leader."""
        if self.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    @property
    def low_watermark(self) -> int:
        """The offset below which no replica that is alive has records, as far as is known."""
        start = self.log.log_start_offset
        if self.leader is not None:
            start = self.leader.low_watermark(start)
        if self.future_replica is None:
            return start
        return min(start, self.future_replica.log.log_start_offset)

    def delete_records(self, offset: int, *, now_ms: int) -> None:
        """Move the log's start up to `offset`; the followers' starts follow with their fetches.

        Raises LeaderRefusesError, and OffsetOutOfRangeError above the high watermark.
        """
        self.demand_leader()
        self.log.delete_records(offset, now_ms=now_ms)
        self.watchers.notify()

    def _follow_high_watermark(self, leader: PartitionLeader) -> bool:
        """Return whether the high watermark has moved."""
        if leader.high_watermark == self.log.high_watermark:
            return False
        self.log.update_high_watermark(leader.high_watermark)
        self.watchers.notify()
        return True
