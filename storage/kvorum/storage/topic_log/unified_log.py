"""The log of a topic's partition (Kafka's UnifiedLog): a partition log that knows its producers.

A leader's appends are validated, given offsets and times, and checked against what is known of
their producer. Readers see what is below the high watermark, or below the last stable offset.

One thread owns the log (see `LocalLog` for what may run in another one).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from kvorum.storage.cleaner.batch_filter import last_records
from kvorum.storage.cleaner.log_cleaner_manager import HostedLog
from kvorum.storage.cleaner.shared_log import RunInOwner, SharedLog
from kvorum.storage.errors import OffsetOutOfRangeError
from kvorum.storage.files import FileSystem
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.batch_header import BatchHeader, header_at, header_of
from kvorum.storage.log.disk_pace import DiskThreads
from kvorum.storage.log.disk_queue import DiskQueue
from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.local_log_parts import RecoveryPointKeeper
from kvorum.storage.log.log_loader import LogCheckpoint, load_local_log
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles, encode_producer_snapshot
from kvorum.storage.log.producer_state import BatchMetadata, CompletedTransaction, ProducerState
from kvorum.storage.log.segment import Segment
from kvorum.storage.log.segment_list import count_begun, slot_holding
from kvorum.storage.log.transaction_index import AbortedTransaction, TransactionIndex, find_aborted
from kvorum.storage.log.verification_state import NO_TRANSACTION, TransactionAppend
from kvorum.storage.small_files.partition_metadata import (
    check_partition_metadata,
    write_partition_metadata,
)
from kvorum.storage.topic_log.log_validator import (
    InspectedBatch,
    RecordValidationError,
    Target,
    TimestampType,
    inspect_batch,
    validate_batch,
)
from kvorum.storage.topic_log.segment_retention import delete_old_segments
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import NO_TIMESTAMP, BatchContent, batch_at
from kvorum.wire.records.legacy import Entry, LegacyMessage, read_entries
from kvorum.wire.records.size_check import SizeCheck

SCAN_BYTES: Final = 1024 * 1024
"""The bytes of a log that are read at once where batches are looked through."""


class LogAppendInfo(NamedTuple):
    """The offsets of the records that an append wrote, or that a duplicate has had all along.

    `log_append_time_ms` is -1 where the topic keeps its producers' times.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int


class FetchDataInfo(NamedTuple):
    """Records that were read, empty bytes for none; none of them has an offset above the bound."""

    records: FileRecords | bytes
    upper_bound_offset: int


class UnifiedLog:
    """The log of one partition of a topic; `load_unified_log` makes one."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        log: LocalLog,
        producers: ProducerState,
        snapshots: ProducerSnapshotFiles,
        config: TopicLogConfig,
        producer_expiration_ms: Callable[[], int],
    ) -> None:
        self.topic_partition = topic_partition
        self.config = config
        self.producers = producers
        self._snapshots = snapshots
        self._producer_expiration_ms = producer_expiration_ms
        self.local_log = log
        """The log below: its records, offsets and files, without what is known of producers."""
        self.high_watermark = log.log_start_offset
        """The offset below which every record is committed."""

    def update_config(self, config: TopicLogConfig) -> None:
        """Use other settings from the next append on."""
        self.config = config
        self.local_log.update_config(config.segments)

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record that may be read."""
        return self.local_log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """One more than the offset of the last record."""
        return self.local_log.log_end_offset

    @property
    def writes(self) -> DiskQueue:
        """The writes of appends and truncations, which a slow disk has yet to do."""
        return self.local_log.writes

    @property
    def stored_end_offset(self) -> int:
        """The offset below which every record is in its file, as `LocalLog` has it."""
        return self.local_log.stored_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every record is committed, and its transaction decided."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def update_high_watermark(self, offset: int) -> None:
        """Set the high watermark, as far as the log's start and what is stored of it allow."""
        stored = min(offset, self.stored_end_offset)
        self.high_watermark = max(stored, self.log_start_offset)
        self.producers.on_high_watermark(self.high_watermark)

    def append_as_leader(
        self,
        batch: RecordBatch,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction: TransactionAppend = NO_TRANSACTION,
        inspected: InspectedBatch | None = None,
    ) -> LogAppendInfo:
        """Write one batch after the last one; a duplicate is answered as before and not written.

        `inspected` is what its `inspection` has returned, if that was done before. On a slow disk
        nothing may be promised before `DiskQueue.when_done` has called.
        Raises `RecordValidationError` or `ProducerError`, each with the code for the producer, and
        StorageError where the disk refuses.
        """
        self._check_sent(batch, origin)
        rules = self.config.rules
        target = Target(self.topic_partition, self.log_end_offset, leader_epoch)
        validated = (
            validate_batch(batch, target, rules, now_ms=now_ms, origin=origin)
            if inspected is None
            else inspected.placed(target)
        )
        if validated.is_rewritten:
            self._check_size(len(validated.data))
        if len(validated.data) > self.config.segments.segment_bytes:
            raise RecordValidationError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Append batch size is {len(validated.data)} bytes, which exceeds the maximum "
                f"configured segment size of {self.config.segments.segment_bytes}",
            )
        written = batch_at(memoryview(validated.data), 0)
        assert written is not None
        header = header_of(written)
        # As in Kafka, a batch that its producer may not write begins a new segment all the same.
        self.local_log.maybe_roll(header, now_ms=now_ms)
        duplicate = self._duplicate_of(written, origin)
        if duplicate is not None:
            # As in Kafka, whatever the topic's kind of time is.
            return LogAppendInfo(duplicate.first_offset, duplicate.last_offset, duplicate.timestamp)
        self._write(written, header, origin, transaction)
        self._flush_if_wanted()
        is_stamped = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
        return LogAppendInfo(
            written.base_offset, written.last_offset, now_ms if is_stamped else NO_TIMESTAMP
        )

    def inspection(
        self, batch: RecordBatch, *, now_ms: int, content: BatchContent | None = None
    ) -> Callable[[SizeCheck], InspectedBatch]:
        """Return what looks at the records of a client's batch, which any thread may call.

        `content` has them, if they are unpacked already; else the check is called with the size of
        what is unpacked so far. Both raise what `append_as_leader` does.
        """
        origin = AppendOrigin.CLIENT
        self._check_sent(batch, origin)
        rules = self.config.rules

        def inspect(check_size: SizeCheck) -> InspectedBatch:
            return inspect_batch(
                batch,
                self.topic_partition,
                rules,
                now_ms=now_ms,
                origin=origin,
                content=content,
                check_size=check_size,
            )

        return inspect

    def append_as_follower(
        self, records: bytes | memoryview, *, leader_epoch: int, now_ms: int
    ) -> Entry | None:
        """Write the leader's batches as they are; return the last one, None without one.

        `leader_epoch` is that of the fetch (see `replicated_batches`). A leader's log may begin
        within a batch: an empty log that begins there takes that batch too, from its base offset
        on. Raises CorruptBatchError, and InvalidAppendError for batches that do not continue the
        log.
        """
        batches = replicated_batches(records, leader_epoch=leader_epoch)
        if not batches:
            return None
        start = self.log_start_offset
        end = self.log_end_offset
        if start == end and batches[0].base_offset < end <= batches[0].last_offset:
            self.truncate_fully_and_start_at(batches[0].base_offset, now_ms=now_ms)
        if any(not isinstance(one, LegacyMessage) and one.has_producer_id for one in batches):
            for batch in batches:
                header = header_at(batch.data)
                assert header is not None
                self.local_log.maybe_roll(header, now_ms=now_ms)
                self._write(batch, header, AppendOrigin.REPLICATION)
        else:
            size = sum(batch.size for batch in batches)
            self.local_log.append(memoryview(records)[:size], now_ms=now_ms)
            self.producers.end_offset = batches[-1].next_offset
        self._flush_if_wanted()
        if start > self.log_start_offset:
            self.local_log.increment_log_start_offset(start, now_ms=now_ms)
        return batches[-1]

    def _flush_if_wanted(self) -> None:
        log = self.local_log
        if log.log_end_offset - log.recovery_point >= self.config.flush_messages:
            log.flush_behind()

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Remove the batch that holds `offset` and all later ones, as `LocalLog` does.

        At the log's start or below it nothing is left, and the log goes on at `offset`. Deleted
        records that are still in their files go too: a leader that had others there may go on in an
        earlier epoch than theirs.
        """
        if self._leaves_nothing(offset):
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return
        has_less = offset < self.log_end_offset
        self.local_log.truncate_to(offset, now_ms=now_ms)
        if has_less:
            self._after_truncation(now_ms)

    def truncate_behind(self, offset: int, *, now_ms: int, fully: bool = False) -> None:
        """Truncate to `offset`, or wholly so that the log starts there, in a thread if it has some.

        The producers' state is read again there. See `LocalLog.truncate_behind`.
        """
        is_whole = fully or self._leaves_nothing(offset)
        if offset >= self.log_end_offset and not is_whole:
            # Nothing but an epoch without records goes, and that only from memory.
            self.truncate_to(offset, now_ms=now_ms)
            return
        truncate = self.truncate_fully_and_start_at if fully else self.truncate_to
        self.local_log.truncate_behind(partial(truncate, offset, now_ms=now_ms))

    def _leaves_nothing(self, offset: int) -> bool:
        """Return whether a truncation to `offset` leaves no record of those that are there."""
        start = self.log_start_offset
        return offset < start or (offset == start and self.local_log.size_bytes > 0)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Remove all records, and continue the empty log at `offset`."""
        self.local_log.truncate_fully_and_start_at(offset, now_ms=now_ms)
        self._after_truncation(now_ms)

    def _after_truncation(self, now_ms: int) -> None:
        self.load_producers(now_ms=now_ms)
        self.update_high_watermark(self.high_watermark)

    def _check_sent(self, batch: RecordBatch, origin: AppendOrigin) -> None:
        """Refuse a batch that may not be appended as it was sent, before its records are read."""
        if origin is AppendOrigin.CLIENT and batch.base_offset != 0:
            raise RecordValidationError(
                ErrorCode.INVALID_RECORD,
                f"The baseOffset of the record batch in the append to {self.topic_partition} "
                f"should be 0, but it is {batch.base_offset}",
            )
        self._check_size(batch.size)
        if not batch.is_valid:
            raise RecordValidationError(
                ErrorCode.CORRUPT_MESSAGE,
                f"Record is corrupt (stored crc = {batch.crc}) in topic partition "
                f"{self.topic_partition}.",
            )

    def _check_size(self, size: int) -> None:
        if size > self.config.max_message_bytes:
            raise RecordValidationError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to {self.topic_partition} is {size} bytes "
                f"which exceeds the maximum configured value of {self.config.max_message_bytes}.",
            )

    def _duplicate_of(self, batch: RecordBatch, origin: AppendOrigin) -> BatchMetadata | None:
        if origin is not AppendOrigin.CLIENT or not batch.has_producer_id:
            return None
        return self.producers.entry(batch.producer_id).duplicate_of(batch)

    def _write(
        self,
        batch: Entry,
        header: BatchHeader,
        origin: AppendOrigin,
        transaction: TransactionAppend = NO_TRANSACTION,
    ) -> None:
        """Write a batch that is sound, for which there is place in the active segment."""
        if isinstance(batch, LegacyMessage) or not batch.has_producer_id:
            self.local_log.append_batch(batch.data, header)
            self.producers.end_offset = batch.next_offset
            return
        change = self.producers.check(batch, origin, transaction)
        ended = change.ended
        if ended is not None and ended.is_aborted:
            # A marker without its entry could not be repeated: no transaction is open after it.
            self._active_transaction_index.prepare()
        self.local_log.append_batch(batch.data, header)
        self.producers.update(batch, change)
        if ended is not None:
            if ended.is_aborted:
                self._append_aborted(self._aborted(ended))
            self.producers.complete(ended)

    @property
    def _active_transaction_index(self) -> TransactionIndex:
        return self.local_log.segments[-1].transaction_index

    def _append_aborted(self, aborted: AbortedTransaction) -> None:
        """Index a transaction that the marker in the last batch has aborted; a failure poisons."""
        with self.local_log.poison.on_failure():
            self._active_transaction_index.append(aborted, self.writes)

    def _aborted(self, ended: CompletedTransaction) -> AbortedTransaction:
        return AbortedTransaction(
            producer_id=ended.producer_id,
            first_offset=ended.first_offset,
            last_offset=ended.last_offset,
            last_stable_offset=self.producers.last_stable_offset(ended),
        )

    def read_range(self, offset: int, max_bytes: int, *, end_offset: int) -> FetchDataInfo:
        """Return records from the batch that holds `offset` on, as a range of their file.

        At most `max_bytes`, by which the last batch may be cut off, but all of the first batch, and
        nothing from `end_offset` on. Records are not looked at; see `LocalLog.read_range`.
        """
        found = self.local_log.read_range(offset, max_bytes, end_offset=end_offset)
        if found is None:
            return FetchDataInfo(b"", offset)
        bound = found.segment.offset_beyond(found.records.position + len(found.records))
        if bound is None:
            segments = self.local_log.segments
            slot = count_begun(segments, found.segment.base_offset)
            bound = segments[slot].base_offset if slot < len(segments) else self.log_end_offset
        return FetchDataInfo(found.records, bound)

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that a reader from `offset` to `end_offset` must know."""
        segments = self.local_log.segments
        first = slot_holding(segments, offset)
        indexes = (segment.transaction_index for segment in segments[first:])
        return find_aborted(indexes, offset, end_offset)

    def is_on_older_segment(self, offset: int, other_offset: int) -> bool:
        """Return whether a segment ends between the two offsets."""
        segments = self.local_log.segments
        return count_begun(segments, offset) < count_begun(segments, other_offset)

    def batches_since(self, timestamp: int, *, end_offset: int) -> Iterator[list[Entry]]:
        """Yield the batches among which is the first record with `timestamp` or a later one.

        Those of one read come together. They are read while they are asked for, which may be in
        another thread, and the log may change in between.
        """
        begin = self.local_log.offset_before(timestamp)
        if begin is not None:
            yield from self._batches(begin, end_offset)

    def _batches(self, offset: int, end_offset: int) -> Iterator[list[Entry]]:
        """Yield the batches of each read."""
        while offset < end_offset:
            data = self.local_log.read(offset, SCAN_BYTES, end_offset=end_offset)
            if not data:
                return
            batches = list(read_entries(data))
            offset = batches[-1].next_offset
            yield batches

    def load_producers(self, *, now_ms: int, unindexed_from: int | None = None) -> None:
        """Begin with the newest stored state of the producers, and take in the batches after it.

        After a clean shutdown no batch is later, and the log is not read. The segments from
        `unindexed_from` on were open when a process ended, or come after one that has lost its
        index: of their aborted transactions more or less may be on the disk than of their records,
        so these are indexed again.
        """
        producers, log = self.producers, self.local_log
        start, end = log.log_start_offset, log.log_end_offset
        again = [
            segment
            for segment in log.segments
            if unindexed_from is not None and segment.base_offset >= unindexed_from
        ]
        for segment in again:
            segment.transaction_index.reset()
        latest = self._snapshots.latest(
            start_offset=start, end_offset=again[0].base_offset if again else end
        )
        if latest is None:
            producers.restore({}, start)
        else:
            producers.restore(latest.entries, latest.offset)
        self.remove_expired_producers(now_ms=now_ms)
        for batch in chain.from_iterable(self._batches(max(producers.end_offset, start), end)):
            if not isinstance(batch, LegacyMessage) and batch.has_producer_id:
                ended = producers.append(batch, AppendOrigin.REPLICATION)
                if ended is not None:
                    if ended.is_aborted:
                        self._index_again(self._aborted(ended), again)
                    producers.complete(ended)
        producers.end_offset = end
        for segment in again:
            segment.transaction_index.sync()

    def _index_again(self, aborted: AbortedTransaction, segments: Iterable[Segment]) -> None:
        """Index an aborted transaction in the segment of its marker, if that is among these."""
        for segment in segments:
            if segment.base_offset <= aborted.last_offset < segment.end_offset:
                segment.transaction_index.append(aborted)

    def remove_expired_producers(self, *, now_ms: int) -> None:
        """Forget producers that wrote nothing for their time; `now_ms` is the wall clock.

        See `ProducerState.expire`. The owner calls while no truncation is under way.
        """
        self.producers.expire(now_ms=now_ms, expiration_ms=self._producer_expiration_ms())

    def delete_records(self, offset: int, *, now_ms: int) -> None:
        """Move the log's start up to `offset`; nothing happens where it is there already.

        Raises OffsetOutOfRangeError above the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"Cannot increment the log start offset to {offset} of partition "
                f"{self.topic_partition} since it is larger than the high watermark "
                f"{self.high_watermark}",
                file=self.local_log.directory,
            )
        if offset > self.log_start_offset:
            self.local_log.increment_log_start_offset(offset, now_ms=now_ms)

    def delete_old_segments(self, *, now_ms: int) -> int:
        """Take the segments out that need not be kept; return their number."""
        count = delete_old_segments(
            self.local_log, self.config.cleanup, high_watermark=self.high_watermark, now_ms=now_ms
        )
        self.update_high_watermark(self.high_watermark)
        return count

    def hosted(self, run_in_owner: RunInOwner) -> HostedLog:
        """Return the log for a cleaner's round in another thread; a truncation is reported once."""
        return HostedLog(
            log=SharedLog(self.local_log, run_in_owner),
            config=self.config.cleanup,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            truncated_to=self.local_log.take_truncation(),
            last_records=last_records(self.producers.entries),
        )


def replicated_batches(records: bytes | memoryview, *, leader_epoch: int) -> list[Entry]:
    """Return the whole batches up to the first one of an epoch above `leader_epoch`.

    The response may end within a batch. It may also have batches that the leader wrote in a later
    epoch than that of the request: what precedes these may have been truncated meanwhile, so they
    are left to the next fetch. Raises CorruptBatchError where a checksum is wrong.
    """
    batches: list[Entry] = []
    for batch in read_entries(records, is_cut_allowed=True):
        if batch.partition_leader_epoch > leader_epoch:
            break
        batch.verify()
        batches.append(batch)
    return batches


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """The place of a log and its partition; `checkpoint` is what its directory stores of it."""

    directory: Path
    topic_partition: TopicPartition
    topic_id: bytes
    checkpoint: LogCheckpoint
    recovery_point_keeper: RecoveryPointKeeper


def load_unified_log(
    place: LogPlace,
    *,
    files: FileSystem,
    config: TopicLogConfig,
    producer_expiration_ms: Callable[[], int],
    random: Random,
    now_ms: int,
    threads: DiskThreads | None = None,
) -> UnifiedLog:
    """Open a log, made if need be; `now_ms` is the wall clock, `random` spreads its rolls.

    `producer_expiration_ms` returns the time, which may change, after which a producer that writes
    nothing is forgotten.

    `threads` write what is appended while the disk is slow; without them every append is written at
    once.

    Raises CorruptFileError for damage, and for a directory of another topic; DiskError.

    The producers' state is the newest stored one, and what the log has after that. After a clean
    shutdown that is nothing, and the log is not read. After another end the aborted transactions of
    the segments that had to be read are taken from their records.
    """
    directory = place.directory
    producers = ProducerState()
    snapshots = ProducerSnapshotFiles(
        directory,
        files,
        lambda: encode_producer_snapshot(producers.entries),
        lambda: log.log_start_offset,
    )
    has_metadata = check_partition_metadata(directory, files, topic_id=place.topic_id)
    loaded = load_local_log(
        directory,
        files=files,
        config=config.segments,
        checkpoint=replace(place.checkpoint, is_compacted=config.cleanup.is_compacted),
        recovery_point_keeper=place.recovery_point_keeper,
        producer_snapshots=snapshots,
        now_ms=now_ms,
        threads=threads,
    )
    jitter_ms = min(config.segment_jitter_ms, config.segments.segment_ms)
    loaded.log.time_rolls(
        lambda: random.randrange(jitter_ms) if jitter_ms > 0 else 0, now_ms=now_ms
    )
    log = UnifiedLog(
        place.topic_partition, loaded.log, producers, snapshots, config, producer_expiration_ms
    )
    try:
        if not has_metadata:
            write_partition_metadata(directory, files, topic_id=place.topic_id)
        log.load_producers(now_ms=now_ms, unindexed_from=loaded.unindexed_from)
    except BaseException:
        log.local_log.abandon()
        raise
    return log
