"""Reads of a partition's log for consumers and followers (Kafka's Partition.readRecords)."""

from typing import NamedTuple

from kvorum.broker.epoch_end_offset import NO_EPOCH, EpochEndOffset, end_of_epoch
from kvorum.broker.fetch_isolation import IsolationLevel, readable_end
from kvorum.broker.read_ahead import ReadAhead
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.storage.topic_log.unified_log import UnifiedLog


class LogReadInfo(NamedTuple):
    """The result of a read: the offsets were taken before the records were read.

    `aborted` are the aborted transactions that a reader of committed records has to leave out.
    `diverging` is where a follower's log, or what a consumer has read, leaves this one: no records
    are read then.
    """

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: FileRecords | bytes | memoryview
    aborted: tuple[AbortedTransaction, ...] = ()
    diverging: EpochEndOffset | None = None


def read_records(
    log: UnifiedLog,
    offset: int,
    max_bytes: int,
    *,
    isolation: IsolationLevel | None,
    last_fetched_epoch: int,
    ahead: ReadAhead | None,
) -> LogReadInfo:
    """Read at least one batch where there is one, else at most `max_bytes`.

    A replica reads without an isolation. Nothing is read where what the reader has fetched before
    diverges from this log, nor where a thread has read `ahead` for this fetch.

    Raises OffsetOutOfRangeError, and other StorageErrors.
    """
    end_offset = readable_end(log, isolation)
    high_watermark, last_stable = log.high_watermark, log.last_stable_offset
    start = log.log_start_offset
    diverging = _divergence(log, offset, last_fetched_epoch)
    if diverging is not None:
        return LogReadInfo(high_watermark, last_stable, start, b"", (), diverging)
    if ahead is not None and ahead.counts_for(log):
        read = ahead.data()
    else:
        read = log.read_range(offset, max_bytes, end_offset=end_offset)
    aborted: tuple[AbortedTransaction, ...] = ()
    if isolation is IsolationLevel.READ_COMMITTED:
        aborted = tuple(log.aborted_transactions(offset, read.upper_bound_offset))
    return LogReadInfo(high_watermark, last_stable, start, read.records, aborted)


def _divergence(log: UnifiedLog, offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
    """Return where a log whose last record has an epoch leaves this one; None if nowhere.

    Raises OffsetOutOfRangeError for an epoch that this log does not know, and below its start.
    """
    if last_fetched_epoch == NO_EPOCH:
        return None
    last = end_of_epoch(log.local_log, last_fetched_epoch)
    if last.epoch == NO_EPOCH or offset < log.log_start_offset:
        raise OffsetOutOfRangeError(
            f"offset {offset} behind epoch {last_fetched_epoch} is not in a log that starts at "
            f"{log.log_start_offset}"
        )
    return last if last.epoch < last_fetched_epoch or last.end_offset < offset else None


def bytes_available(
    log: UnifiedLog, offset: int, max_bytes: int, *, isolation: IsolationLevel | None, wanted: int
) -> int | None:
    """Return how many bytes there are for a fetch, None if it must not wait at this offset.

    More than `wanted` bytes need not be counted. See `readable_end`.
    """
    end_offset = readable_end(log, isolation)
    if not log.log_start_offset <= offset <= end_offset:
        return None
    if offset == end_offset:
        return 0
    if wanted == 1 or log.is_on_older_segment(offset, end_offset):
        # As in Kafka, a fetch does not wait at the end of a segment that is not appended to.
        return wanted
    if not log.local_log.is_at_hand(offset, end_offset=end_offset):
        # To count the bytes would take as long as to read them for the response.
        return wanted
    try:
        read = log.read_range(offset, min(max_bytes, wanted), end_offset=end_offset)
    except StorageError:
        # Reading again for the response finds out what it is.
        return wanted
    return len(read.records)
