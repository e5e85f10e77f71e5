"""The ledger of what clients have read or got acknowledged, and of what replicas have written.

**Exemption.** Where a topic allows unclean elections and one takes place, the records that its
leader lacks may be lost: the ledger forgets these, and nothing else, and lets replicas that were in
earlier leader epochs truncate below their high watermarks. Records below an offset that a client
has asked to delete are compared no more: they may come back with a crash, without the leader epochs
that a follower needs to find out that it has others. Nothing else is exempt: which brokers may lose
power at once is decided by `unclean_ends.Budget`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.promises import check_change
from kvorum.simulation.partitions.settings import ClusterSettings
from kvorum.simulation.partitions.stored_batches import StoredBatch, batches_of, stored
from kvorum.simulation.properties.catalogue import Checks, Property, PropertyViolatedError
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import INT32_MAX, NO_SEQUENCE

NONE_YET = -1
_GAP_MAX: Final = 1 << 30
_DELETED: Final = StoredBatch(-1, -1, -1, 0, -1, -1, -1, -1)


@dataclass(slots=True)
class _Known:
    """The state of one partition.

    `committed` has for each offset the batch that clients could read there, `written` the batches
    by base offset and leader epoch, `acknowledged` the checksums by base offset. Clients have asked
    to delete what is below `deleted`, or retention has done so; leaders have up to `leader_start`.
    `unclean_epoch` is the last one that an unclean election began, and `unclean_since` the first
    such one behind what was last forgotten.
    """

    committed: list[StoredBatch] = field(default_factory=list[StoredBatch])
    written: dict[tuple[int, int], StoredBatch] = field(
        default_factory=dict[tuple[int, int], StoredBatch]
    )
    acknowledged: dict[int, int] = field(default_factory=dict[int, int])
    high_watermarks: dict[int, int] = field(default_factory=dict[int, int])
    deleted: int = 0
    leader_start: int = 0
    last_epoch: int = NONE_YET
    unclean_epoch: int = NONE_YET
    unclean_since: int = NONE_YET
    is_to_forget: bool = False


class Replica:
    """A broker's replica as the ledger looks at it."""

    def __init__(self, broker_id: int, index: int, log: UnifiedLog) -> None:
        self.broker_id, self.index, self.log = broker_id, index, log

    def __str__(self) -> str:
        log = self.log
        return (
            f"partition {self.index} of broker {self.broker_id}: "
            f"start {log.log_start_offset}, "
            f"high watermark {log.high_watermark}, end {log.stored_end_offset}, "
            f"epochs {[tuple(one) for one in log.local_log.epoch_starts]}"
        )


class PartitionLedger:
    """The books of all partitions; each method raises PropertyViolatedError.

    `in_sync` returns the logs of the members of a partition's committed ISR that can be looked at.
    Where the logs of a world are compacted, records are compared in place of batches.
    """

    def __init__(
        self,
        in_sync: Callable[[int], Sequence[Replica]],
        settings: ClusterSettings,
        checks: Checks,
    ) -> None:
        self._known: defaultdict[int, _Known] = defaultdict(_Known)
        self._settings = settings
        self._is_compacted = settings.is_compacted
        self._in_sync = in_sync
        self.counts: Counter[str] = Counter()
        self.checks = checks
        self.pruned: set[int] = set()
        """The partitions of which leaders delete records that their coordinators need no longer."""
        self.strangers: set[int] = set()
        """The ids of producers that may not write."""

    def _stored(self, log: UnifiedLog, start: int, end: int) -> list[StoredBatch]:
        return stored(batches_of(log, start, end), by_record=self._is_compacted)

    def on_lead(self, replica: Replica, leader_epoch: int) -> None:
        """Check that a broker which begins to lead has every record that could be read."""
        known = self._known[replica.index]
        if leader_epoch <= known.last_epoch:
            return
        known.last_epoch = leader_epoch
        self.counts["leaders"] += 1
        if known.is_to_forget and leader_epoch >= known.unclean_epoch:
            self._forget_lost(known, replica)
        elif known.is_to_forget and leader_epoch >= known.unclean_since:
            # It hears late of its own unclean election: the next one has taken place already.
            return
        self._check_start(known, replica)
        start = replica.log.log_start_offset
        if known.unclean_epoch > NONE_YET and start <= known.deleted:
            # A former leader has deleted more than an unclean election has left.
            known.committed += [_DELETED] * (start - len(known.committed))
        if not self._holds(replica, len(known.committed)):
            self._fail(promises.LEADER_COMPLETE, replica)
        self.checks.held(promises.LEADER_COMPLETE)
        self._check_latest(known, replica)

    def on_delete(self, index: int, offset: int) -> None:
        """Note that a client wants the records below an offset deleted."""
        known = self._known[index]
        known.deleted = max(known.deleted, offset)
        self.counts["deletes"] += 1

    def on_bounds(self, replica: Replica, *, is_leader: bool, is_new: bool, wall_ms: int) -> None:
        """Check where a replica starts, and that its high watermark is within its log.

        `is_new` means that the log comes from the disk. A process that has ended while it deleted
        as a leader may follow now. `wall_ms` is the time of day for its broker.
        """
        known, log = self._known[replica.index], replica.log
        start = log.log_start_offset
        # A log that starts within its first batch may start above what is stored of that so far.
        if not start <= log.high_watermark <= max(log.stored_end_offset, start):
            self._fail(promises.WATERMARK_IN_LOG, replica)
        self.checks.held(promises.WATERMARK_IN_LOG)
        if replica.index in self.pruned and (is_leader or is_new):
            known.deleted = max(known.deleted, min(start, len(known.committed)))
        is_asked_for = start <= (known.deleted if is_leader or is_new else known.leader_start)
        if is_leader or is_new:
            known.leader_start = max(known.leader_start, start)
        if known.unclean_epoch > NONE_YET:
            return
        has_retention = self._settings.has_retention(replica.index)
        is_deletion = is_leader or has_retention
        watched = promises.NOTHING_DELETED if is_deletion else promises.STARTS_FOLLOW
        if not is_asked_for and not has_retention:
            self._fail(watched, replica, f"; leaders {known.leader_start}")
        self.checks.held(watched)
        if is_asked_for:
            return
        # A log that was truncated since is smaller than when it deleted them.
        is_noted = is_new or start <= known.deleted
        if not is_noted and not self._is_expired(known.committed[start - 1], replica, wall_ms):
            self._fail(promises.NOTHING_DELETED, replica, f"; {known.committed[start - 1]}")
        self.counts["retention"] += 1
        known.deleted = max(known.deleted, start)

    def _is_expired(self, last_deleted: StoredBatch, replica: Replica, wall_ms: int) -> bool:
        """Return whether retention may have deleted a batch that lay below a log's start."""
        settings, log = self._settings, replica.log.local_log
        is_large = 0 <= settings.retention_bytes <= log.size_bytes
        is_old = 0 <= settings.retention_ms < wall_ms - last_deleted.max_timestamp
        return is_large or is_old

    def _check_start(self, known: _Known, replica: Replica) -> None:
        if replica.log.log_start_offset > known.deleted and known.unclean_epoch == NONE_YET:
            self._fail(promises.NOTHING_DELETED, replica)
        self.checks.held(promises.NOTHING_DELETED)

    def _forget_lost(self, known: _Known, replica: Replica) -> None:
        log = replica.log
        kept = log.log_start_offset
        for batch in self._stored(log, kept, log.stored_end_offset):
            if known.committed[batch.last_offset : batch.last_offset + 1] != [batch]:
                break
            kept = batch.last_offset + 1
        # Not before: reading may be where the broker's process ends.
        known.is_to_forget = False
        self.counts["lost by unclean elections"] += max(len(known.committed) - kept, 0)
        del known.committed[kept:]
        # The leader may have deleted more than is still known.
        known.committed += [_DELETED] * (log.log_start_offset - len(known.committed))
        for offset in [one for one in known.acknowledged if one >= kept]:
            del known.acknowledged[offset]

    def _holds(self, replica: Replica, end: int) -> bool:
        """Return whether a log has what is committed from its start up to `end`."""
        known, log = self._known[replica.index], replica.log
        committed = known.committed
        start = log.log_start_offset
        if log.stored_end_offset < end or start > len(committed):
            return False
        return all(
            committed[batch.last_offset] == batch
            for batch in self._stored(log, start, end)
            if batch.last_offset >= known.deleted
        )

    def _check_latest(self, known: _Known, replica: Replica) -> None:
        """Check that compaction has left the latest record of each key, unless it is a tombstone.

        A tombstone goes after a while, and a replica may then keep a value that it has not seen
        deleted.
        """
        if not self._is_compacted:
            return
        log, committed = replica.log.local_log, known.committed
        latest = {one.key: one for one in committed if one.key is not None}
        kept = self._stored(replica.log, log.log_start_offset, log.stored_end_offset)
        offsets = {one.base_offset for one in kept}
        for one in latest.values():
            if not one.is_tombstone and one.base_offset not in offsets:
                self._fail(promises.LATEST_STAYS, replica, f"; {one}")
            self.checks.held(promises.LATEST_STAYS)

    def on_append(self, replica: Replica, before_end: int, *, leader_epoch: int) -> None:
        """Check what was written behind `before_end` against the other replicas.

        `leader_epoch` is the last one that the replica's broker knows of.
        """
        known, log = self._known[replica.index], replica.log
        start = max(before_end, log.log_start_offset)
        for batch in self._stored(log, start, log.stored_end_offset):
            place = batch.base_offset, batch.leader_epoch
            if batch.leader_epoch > leader_epoch:
                self._fail(promises.KNOWN_EPOCHS, replica)
            if known.written.setdefault(place, batch) != batch:
                self._fail(promises.ONE_BATCH, replica)
            self.checks.held(promises.KNOWN_EPOCHS, promises.ONE_BATCH)
            if batch.producer_id in self.strangers:
                self._fail(promises.PERMITTED, replica, f"; {batch}")

    def on_truncation(self, replica: Replica, *, below: int, latest_epoch: int) -> None:
        """Check a truncation of a log whose high watermark was `below`, its last epoch `latest`."""
        self.counts["truncations"] += 1
        known = self._known[replica.index]
        if replica.log.stored_end_offset < below and latest_epoch >= known.unclean_epoch:
            self._fail(promises.NO_TRUNCATION, replica)
        self.checks.held(promises.NO_TRUNCATION)

    def on_high_watermark(self, replica: Replica, *, leader_epoch: int) -> None:
        """Note what can be read of a leader from now on, and check what could be read before."""
        known, log = self._known[replica.index], replica.log
        if leader_epoch < known.unclean_epoch:
            return
        reached = log.high_watermark
        before = known.high_watermarks.get(leader_epoch, 0)
        if reached < before:
            self._fail(promises.WATERMARK_RISES, replica)
        self.checks.held(promises.WATERMARK_RISES)
        known.high_watermarks[leader_epoch] = reached
        self._compare(known, replica, start=before, may_add=True)
        if leader_epoch == known.last_epoch and reached > before:
            for member in self._in_sync(replica.index):
                if member.log.stored_end_offset < reached:
                    self._fail(promises.COMMITTED_IN_SYNC, replica, f"; {member}")
                self.checks.held(promises.COMMITTED_IN_SYNC)

    def on_follower_high_watermark(self, replica: Replica, *, before: int) -> None:
        """Check what a consumer may read of a follower."""
        known = self._known[replica.index]
        if known.unclean_epoch <= NONE_YET:
            self._compare(known, replica, start=before, may_add=False)

    def _compare(self, known: _Known, replica: Replica, *, start: int, may_add: bool) -> None:
        committed, log = known.committed, replica.log
        # A high watermark may lie within a batch, which is noted with the next one.
        start = max(min(start, len(committed)), log.log_start_offset)
        for batch in self._stored(log, start, log.high_watermark):
            for offset in range(max(batch.base_offset, start), batch.last_offset + 1):
                if offset == len(committed) and may_add:
                    committed.append(batch)
                    self.counts["committed records"] += 1
                elif offset < known.deleted:
                    continue
                elif offset >= len(committed) or committed[offset] != batch:
                    self._fail(promises.ONE_RECORD, replica)
                else:
                    self.checks.held(promises.ONE_RECORD)

    def on_read(self, index: int, read: Sequence[RecordBatch], *, message: str) -> None:
        """Check what a consumer has read."""
        known = self._known[index]
        if known.unclean_epoch > NONE_YET:
            return
        for batch in stored(read, by_record=self._is_compacted):
            self.counts["read batches"] += 1
            if batch.last_offset < known.deleted:
                continue
            if known.committed[batch.last_offset : batch.last_offset + 1] != [batch]:
                raise PropertyViolatedError(promises.READ_IS_COMMITTED, f"{batch}, {message}")
            self.checks.held(promises.READ_IS_COMMITTED)

    def acknowledge(self, index: int, offset: int, crc: int) -> None:
        """Note that a batch was acknowledged to its writer, with all replicas in sync."""
        known = self._known[index]
        self.counts["acknowledged batches"] += 1
        is_committed = offset < len(known.committed) and (
            self._is_compacted or known.committed[offset].crc == crc
        )
        if known.unclean_epoch > NONE_YET and not is_committed:
            # It was acknowledged before the unclean election, and the answer was late.
            return
        known.acknowledged[offset] = crc
        if not is_committed:
            message = f"partition {index}, offset {offset}"
            raise PropertyViolatedError(promises.ACKNOWLEDGED, message)
        self.checks.held(promises.ACKNOWLEDGED)

    def batch_start(self, index: int, offset: int) -> int | None:
        """Return where the batch begins that holds a committed offset; None beyond them."""
        committed = self._known[index].committed
        return committed[offset].base_offset if offset < len(committed) else None

    def deleted_to(self, index: int) -> int:
        """Return the offset below which records of a partition may be deleted."""
        return self._known[index].deleted

    def has_deletions(self, index: int) -> bool:
        """Return whether records of a partition were deleted; a start forgets their producers."""
        return self._known[index].deleted > 0

    def is_exempt(self, index: int) -> bool:
        """Return whether an unclean election may have lost records of a partition."""
        return self._known[index].unclean_epoch > NONE_YET

    def on_change(self, before: PartitionRegistration, after: PartitionRegistration) -> None:
        """Check a committed change of a partition."""
        check_change(before, after, self.checks)
        self.counts["ISR changes"] += after.isr != before.isr
        self.counts["reassignments"] += before.is_reassigning and not after.is_reassigning

    def on_unclean_election(self, index: int, leader_epoch: int) -> None:
        """Note that a replica was elected that was not in sync, in a topic that allows it."""
        self.counts["unclean elections"] += 1
        known = self._known[index]
        known.unclean_epoch = leader_epoch
        if not known.is_to_forget:
            known.unclean_since = leader_epoch
        known.is_to_forget = True

    def check_end(
        self, index: int, replicas: Sequence[Replica], *, wall_ms: int, has_sequences: bool
    ) -> None:
        """Check, after faults and writes have ended, that all replicas have every record.

        Segments whose records are from before `wall_ms` are compacted by now. Producers number
        their batches, but for a coordinator that writes for them.
        """
        known = self._known[index]
        message = "; ".join(map(str, replicas))
        start = max(known.deleted, *(replica.log.log_start_offset for replica in replicas))
        for replica in replicas:
            self._check_start(known, replica)
            if replica.log.high_watermark != replica.log.stored_end_offset:
                raise PropertyViolatedError(promises.ALL_COMMITTED, message)
            self.checks.held(promises.ALL_COMMITTED)
        if self._is_compacted:
            self._check_compacted(known, replicas, wall_ms, has_sequences=has_sequences)
            return
        first = self._stored(replicas[0].log, start, replicas[0].log.stored_end_offset)
        for replica in replicas[1:]:
            if self._stored(replica.log, start, replica.log.stored_end_offset) != first:
                raise PropertyViolatedError(promises.ALL_THE_SAME, message)
            self.checks.held(promises.ALL_THE_SAME)
        crcs = {batch.base_offset: batch.crc for batch in first}
        for offset, crc in known.acknowledged.items():
            if offset >= start and crcs.get(offset) != crc:
                raise PropertyViolatedError(promises.NOTHING_LOST, f"{offset}; {message}")
            self.checks.held(promises.NOTHING_LOST)
        if has_sequences:
            self._check_sequences(first, message)

    def _check_compacted(
        self, known: _Known, replicas: Sequence[Replica], wall_ms: int, *, has_sequences: bool
    ) -> None:
        """Check that every replica has what was committed, as far as it is not compacted away."""
        for replica in replicas:
            if not self._holds(replica, len(known.committed)):
                self._fail(promises.ALL_THE_SAME, replica)
            self.checks.held(promises.ALL_THE_SAME)
            self._check_latest(known, replica)
            log = replica.log.local_log
            kept = self._stored(replica.log, log.log_start_offset, log.stored_end_offset)
            if has_sequences:
                self._check_sequences(kept, str(replica))
            # Neither is the last segment compacted, nor what lies behind one that is too young.
            end = next(
                segment.base_offset
                for segment in log.segments
                if segment is log.segments[-1] or segment.max_timestamp >= wall_ms
            )
            keys = [one.key for one in kept if one.key is not None and one.base_offset < end]
            if len(set(keys)) < len(keys):
                self._fail(promises.COMPACTED, replica)
            self.checks.held(promises.COMPACTED)

    def _check_sequences(self, batches: Sequence[StoredBatch], message: str) -> None:
        following: dict[tuple[int, int], int] = {}
        for batch in batches:
            producer = batch.producer_id, batch.producer_epoch
            if batch.producer_id < 0 or batch.base_sequence == NO_SEQUENCE:
                continue
            ahead = (batch.base_sequence - following.get(producer, batch.base_sequence)) & INT32_MAX
            # Compaction leaves gaps, and what is written twice lies behind.
            if ahead > (_GAP_MAX if self._is_compacted else 0):
                raise PropertyViolatedError(
                    promises.ONCE_IN_ORDER,
                    f"{batch} where {following[producer]} is next; {message}",
                )
            self.checks.held(promises.ONCE_IN_ORDER)
            count = batch.last_offset - batch.base_offset + 1
            following[producer] = (batch.base_sequence + count) & INT32_MAX

    def _fail(self, broken: Property, replica: Replica, message: str = "") -> None:
        committed = len(self._known[replica.index].committed)
        raise PropertyViolatedError(broken, f"{replica}; committed {committed}{message}")
