"""The cleaner: rewrites the segments of a log so that of each key the latest record stays.

One pass has two parts, as Kafka's Cleaner has. First the *dirty* part of the log, from the first
dirty offset on, is read into an offset map, until the map is full or the cleanable part ends. Then
every segment up to there is copied without what the map and the transactions make superfluous, the
clean ones too; small segments are joined. The copies are made durable and put in place of the
originals one group at a time, so a crash leaves a log that is cleaned up to some group.

The caller passes the wall clock. Reading and copying may run beside appends to the log; putting a
copy in place (`SharedLog.replace_segments`) belongs to the thread that owns the log.

Segments are joined, so that compaction leaves no ever smaller ones. Batches are read with all their
bytes. Messages of formats 0 and 1 are batches of format 2 to the cleaner, and become such, as in
Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from kvorum.storage.cleaner.batch_filter import BatchFilter, CleanedTransactions, LastRecord
from kvorum.storage.cleaner.log_cleaner_manager import HostedLog, LogCleanerManager, LogToClean
from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.errors import CleaningAbortedError, DiskError, PoisonedError, StorageError
from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.log.batch_header import read_header
from kvorum.storage.log.indexes import RELATIVE_OFFSET_MAX
from kvorum.storage.log.segment import Segment
from kvorum.storage.log.segment_list import create_cleaned_segment, segments_between, slot_holding
from kvorum.storage.log.transaction_index import AbortedTransaction, find_aborted
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.compacted_batch import converted
from kvorum.wire.records.decompression import RECORD_BYTES_MAX
from kvorum.wire.records.legacy import Entry, LegacyMessage, read_entries

CHUNK_BYTES: Final = 1024 * 1024


def group_segments(
    segments: Sequence[Segment], *, size_max: int, index_size_max: int, end_offset: int
) -> list[list[Segment]]:
    """Return the segments in groups, in order; each group becomes one segment.

    A group's .log files take at most `size_max` bytes, its offset indexes and its time indexes at
    most `index_size_max` each, unless it is of one segment. Its offsets fit the relative offsets of
    an index (KAFKA-6264); an empty segment counts for no offset (KAFKA-12889). `end_offset` is
    where the last segment ends at most.
    """
    bounds = [after.base_offset for _, after in pairwise(segments)] + [end_offset]
    groups: list[list[Segment]] = []
    sums = [0, 0, 0]
    for segment, bound in zip(segments, bounds, strict=True):
        sizes = (segment.size, *segment.index_sizes)
        totals = [one + other for one, other in zip(sums, sizes, strict=True)]
        fits = totals[0] <= size_max and max(totals[1:]) <= index_size_max
        if groups and fits and _is_in_reach(groups[-1][0], segment, bound):
            groups[-1].append(segment)
            sums = totals
        else:
            groups.append([segment])
            sums = list(sizes)
    return groups


def _is_in_reach(first: Segment, segment: Segment, bound: int) -> bool:
    return segment.size == 0 or bound - 1 - first.base_offset <= RELATIVE_OFFSET_MAX


def read_segment(segment: Segment, position: int = 0) -> Iterator[list[RecordBatch]]:
    """Yield the batches from the one that begins at `position` on, as many as one read covers.

    Checksums are verified: what is written again gets a right one, and would hide the damage.
    Raises CorruptLogError.
    """
    size = segment.size
    while position < size:
        entries = _entries_at(segment, position, min(CHUNK_BYTES, size - position))
        if not entries:
            entries = _entries_at(segment, position, size - position)
        if not entries:
            raise segment.damage("the last batch is cut off", position)
        try:
            yield [
                converted(entry) if isinstance(entry, LegacyMessage) else entry for entry in entries
            ]
        except CorruptBatchError as error:
            raise segment.damage(str(error), position) from error
        position += sum(entry.size for entry in entries)


def _entries_at(segment: Segment, position: int, size: int) -> list[Entry]:
    """Return the whole batches among `size` bytes."""
    with disk_errors(segment.path, "reading"):
        data = segment.file.read_at(position, size)
    try:
        entries = list(read_entries(data, is_cut_allowed=True))
        for entry in entries:
            entry.verify()
    except CorruptBatchError as error:
        raise segment.damage(str(error), position) from error
    return entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The work of one pass over a log."""

    first_dirty_offset: int
    """Everything below is clean: of each key only the latest record is there."""

    first_uncleanable_offset: int
    """The base offset of the first segment that is not cleaned."""

    high_watermark: int
    """The offset after the last record that is committed."""

    last_records: Mapping[int, LastRecord]
    """The last records of the log's active producers."""

    delete_retention_ms: int
    """delete.retention.ms: how long tombstones and markers stay after the pass that met them."""

    now_ms: int
    record_bytes_max: int = RECORD_BYTES_MAX
    """max.decompressed.message.bytes: a pass fails where a packed record is larger."""


class Cleaner:
    """Cleans one log at a time; its offset map is the memory that it needs."""

    def __init__(
        self,
        offset_map: OffsetMap,
        *,
        files: FileSystem,
        check_aborted: Callable[[], None] = lambda: None,
    ) -> None:
        self._map = offset_map
        self._files = files
        # Raises CleaningAbortedError where the pass must end; called once for each read.
        self._check_aborted = check_aborted

    def clean(self, log: SharedLog, work: Pass) -> int:
        """Clean a log; return the next first dirty offset.

        Raises CleaningAbortedError, CorruptLogError and DiskError; groups that were put in place
        before stay in place.
        """
        self._build_offset_map(log, work)
        end_offset = self._map.latest_offset + 1
        rules = BatchFilter(
            offset_map=self._map,
            transactions=CleanedTransactions(),
            last_records=work.last_records,
            high_watermark=work.high_watermark,
            now_ms=work.now_ms,
            delete_retention_ms=work.delete_retention_ms,
            record_bytes_max=work.record_bytes_max,
        )
        groups = group_segments(
            segments_between(log.segments, 0, end_offset),
            size_max=log.config.segment_bytes,
            index_size_max=log.config.index_size_bytes_max,
            end_offset=work.first_uncleanable_offset,
        )
        for group in groups:
            # The indexes of a group leave with it: what later groups need was found before.
            cleaned = self._cleaned(log, group, rules)
            try:
                log.replace_segments(cleaned, group, now_ms=work.now_ms)
            except CleaningAbortedError:
                _discard(cleaned)
                raise
        return end_offset

    def _build_offset_map(self, log: SharedLog, work: Pass) -> None:
        """Map the keys of the part that is not clean, up to its end or until the map is full."""
        first, end = work.first_dirty_offset, work.first_uncleanable_offset
        self._map.clear()
        dirty = segments_between(log.segments, first, end)
        transactions = CleanedTransactions()
        transactions.add_aborted(_aborted(log, first, end))
        bounds = [segment.base_offset for segment in dirty[1:]] + [end]
        for segment, bound in zip(dirty, bounds, strict=False):
            if not self._map_segment(segment, work, transactions):
                return
            # Offsets may be missing after the last batch.
            self._map.latest_offset = bound - 1

    def _map_segment(self, segment: Segment, work: Pass, transactions: CleanedTransactions) -> bool:
        """Map one segment; return False where the map became full within it."""
        first = work.first_dirty_offset
        for batches in read_segment(segment, segment.position_before(first)):
            self._check_aborted()
            for batch in batches:
                if not self._map_batch(segment, batch, work, transactions):
                    return False
                if batch.last_offset >= first:
                    self._map.latest_offset = batch.last_offset
        return True

    def _map_batch(
        self, segment: Segment, batch: RecordBatch, work: Pass, transactions: CleanedTransactions
    ) -> bool:
        """Map one batch; return False where the map became full within it.

        Kafka's latest offset is then that of the last key put, of this batch. The part of the batch
        that was mapped is clean nevertheless, for its records' offsets are.
        """
        try:
            if batch.is_control:
                transactions.may_discard_marker(batch)
                return True
            if transactions.is_aborted(batch):
                return True
            for record in batch.content().records(work.record_bytes_max):
                if record.key is not None and record.offset >= work.first_dirty_offset:
                    if self._map.is_full:
                        return False
                    self._map.put(record.key, record.offset)
        except CorruptBatchError as error:
            raise segment.damage(str(error), 0) from error
        return True

    def _cleaned(self, log: SharedLog, group: list[Segment], rules: BatchFilter) -> Segment:
        """Return a durable segment with what stays of a group."""
        cleaned = create_cleaned_segment(
            log.directory, group[0].base_offset, files=self._files, config=log.config
        )
        try:
            bounds = [segment.base_offset for segment in group[1:]] + [group[-1].end_offset]
            for segment, bound in zip(group, bounds, strict=True):
                rules.transactions.add_aborted(_aborted(log, segment.base_offset, bound))
                self._copy(segment, cleaned, rules)
            cleaned.store_indexes()
            cleaned.sync_with_indexes()
            cleaned.set_modified_ms(group[-1].modified_ms)
        except StorageError:
            # The owner may have closed a segment that is being read, to remove it.
            _discard(cleaned)
            raise
        return cleaned

    def _copy(self, segment: Segment, cleaned: Segment, rules: BatchFilter) -> None:
        """Append to `cleaned` what stays of `segment`."""
        for batches in read_segment(segment):
            self._check_aborted()
            try:
                kept = [data for data in map(rules.filtered, batches) if data is not None]
            except CorruptBatchError as error:
                raise segment.damage(str(error), 0) from error
            for transaction in rules.transactions.take_retained():
                cleaned.transaction_index.append(transaction)
            if kept:
                headers = [read_header(data) for data in kept]
                if headers[-1].last_offset - cleaned.base_offset > RELATIVE_OFFSET_MAX:
                    # Only releases before 1.1 wrote such segments. Kafka splits them (KAFKA-6264).
                    raise segment.damage("its offsets do not fit one segment", 0)
                cleaned.append(memoryview(b"".join(kept)), headers)


def _discard(cleaned: Segment) -> None:
    cleaned.close()
    # The rest is removed when the log is opened again.
    with suppress(StorageError):
        cleaned.remove_files()


def _aborted(log: SharedLog, first: int, end: int) -> list[AbortedTransaction]:
    """Return the aborted transactions of the segments from the one that holds `first` on.

    As with Kafka, these are also the transactions that ended below `first`, in the first of the
    segments. Where a map begins within a segment, later batches of their producers then count as
    aborted: their keys are not mapped, and older records of these keys stay until the next write.
    """
    segments = log.segments
    start = slot_holding(segments, first)
    indexes = (one.transaction_index for one in segments[start:])
    return find_aborted(indexes, log.log_start_offset, end)


class CleanedLog(NamedTuple):
    """A log that a pass went over: how far it is clean, or why it could not be cleaned."""

    partition: TopicPartition
    end_offset: int | None
    """A pass that ended early has None."""

    problem: Exception | None = None
    """The failure that made the log uncleanable."""


class LogCleaner:
    """Cleans the logs of one directory, one at a time.

    Counterpart of Kafka's LogCleaner without its threads: the caller decides when, and passes the
    wall clock. One thread does all rounds of a directory; the owners of the logs go on meanwhile.
    """

    def __init__(
        self, manager: LogCleanerManager, offset_map: OffsetMap, files: FileSystem
    ) -> None:
        self._manager = manager
        self._map = offset_map
        self._files = files
        self._aborted: set[TopicPartition] = set()

    def use(self, offset_map: OffsetMap) -> None:
        """Have another offset map from the next pass on; any thread may call this."""
        self._map = offset_map

    def abort_cleaning(self, partition: TopicPartition) -> None:
        """End a running pass over a partition soon, and begin none; any thread may call this.

        That holds until `resume_cleaning` or `forget`.
        """
        self._aborted.add(partition)

    def is_aborted(self, partition: TopicPartition) -> bool:
        """Return whether no pass over a partition may run."""
        return partition in self._aborted

    def resume_cleaning(self, partition: TopicPartition) -> None:
        """Allow passes over a partition again, after one was aborted."""
        self._aborted.discard(partition)

    def alter_checkpoint_dir(self, partition: TopicPartition, target: LogCleaner) -> None:
        """Pass what is known of a partition on to the directory that it has moved to."""
        offset = self._manager.cleaned_offsets().get(partition)
        self.forget([partition])
        if offset is not None:
            target._manager.update_checkpoint(partition, offset)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that are gone, whose passes were aborted before."""
        self._aborted.difference_update(partitions)
        self._manager.forget(partitions)

    def clean_filthiest(
        self, logs: Mapping[TopicPartition, HostedLog], *, now_ms: int
    ) -> CleanedLog | None:
        """Clean the log with the greatest dirty part; None where none is to be cleaned.

        A failure that is not the disk's makes its log uncleanable, data that cannot be read for
        one. Raises DiskError and PoisonedError.
        """
        # A partition that goes away may still be among the logs: its directory may be renamed now.
        aborted = [partition for partition in tuple(self._aborted) if partition in logs]
        paused = {partition: replace(logs[partition], is_paused=True) for partition in aborted}
        chosen = self._manager.grab_filthiest({**logs, **paused}, now_ms=now_ms)
        if chosen is None:
            return None
        try:
            end_offset = self._clean(chosen, now_ms)
        except CleaningAbortedError:
            return CleanedLog(chosen.partition, None)
        except Exception as problem:
            if chosen.hosted.log.has_changed:
                # Its files were cut or closed while they were read.
                return CleanedLog(chosen.partition, None)
            if isinstance(problem, DiskError | PoisonedError):
                raise
            self._manager.mark_uncleanable(chosen.partition)
            self._manager.update_checkpoint(chosen.partition, chosen.part.first_dirty_offset)
            return CleanedLog(chosen.partition, None, problem)
        self._manager.update_checkpoint(chosen.partition, end_offset)
        return CleanedLog(chosen.partition, end_offset)

    def _clean(self, chosen: LogToClean, now_ms: int) -> int:
        hosted = chosen.hosted
        cleaner = Cleaner(
            self._map,
            files=self._files,
            check_aborted=lambda: self._check_aborted(chosen.partition),
        )
        work = Pass(
            first_dirty_offset=chosen.part.first_dirty_offset,
            first_uncleanable_offset=chosen.part.first_uncleanable_offset,
            high_watermark=hosted.high_watermark,
            last_records=hosted.last_records,
            delete_retention_ms=hosted.config.delete_retention_ms,
            record_bytes_max=hosted.config.record_bytes_max,
            now_ms=now_ms,
        )
        return cleaner.clean(hosted.log, work)

    def _check_aborted(self, partition: TopicPartition) -> None:
        if self.is_aborted(partition):
            raise CleaningAbortedError(f"the cleaning of {partition} is to end")
