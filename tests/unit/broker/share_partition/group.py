"""A share group with one partition: its log, its members, and the writes of its state."""

from typing import Final

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType, ShareAcknowledgementBatch
from kvorum.broker.share_partition.acquisition import (
    FetchedRecords,
    ShareAcquireMode,
    ShareAcquirer,
)
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_partition.share_partition import SharePartition
from kvorum.broker.share_partition.state_write import CompletedWrite, DeadLetter, StateWrite
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponseStateBatch,
)
from kvorum.wire.records import BatchOptions, RecordData, build_batch, read_batches
from kvorum.wire.records.legacy import Entry

LOCK_MS: Final = 10_000
STATE_EPOCH: Final = 3
PARTITION: Final = TopicIdPartition(b"1" * 16, 0, "orders")
Run = tuple[int, int]
"""A first and a last offset."""


def settings(
    *, record_locks_max: int = 200, delivery_count_limit: int = 5, has_dead_letters: bool = False
) -> SharePartitionSettings:
    return SharePartitionSettings(
        record_locks_max=record_locks_max,
        delivery_count_limit=delivery_count_limit,
        record_lock_duration_ms=LOCK_MS,
        is_renew_acknowledge_enabled=True,
        is_dead_letter_queue_enabled=has_dead_letters,
    )


class Group:
    """A share partition with a log to acquire from, at a time that the test sets."""

    def __init__(self, chosen: SharePartitionSettings | None = None) -> None:
        self.settings = settings() if chosen is None else chosen
        self.partition = SharePartition("group", PARTITION, 7, lambda: self.settings)
        self.now_ms = 0
        self.log: list[Entry] = []
        self.end_offset = 0
        self.log_start_offset = 0

    def load(self, *batches: tuple[int, int, int, int], start_offset: int = 0) -> None:
        """Begin with a stored state: first and last offset, state, and deliveries of each batch."""
        stored = [ReadShareGroupStateResponseStateBatch(*batch) for batch in batches]
        result = ReadShareGroupStateResponse.PartitionResult(
            0, 0, None, STATE_EPOCH, start_offset, stored
        )
        assert self.partition.begin_initialization()
        self.partition.initialize(result, reset_offset=0)

    def append(self, *sizes: int, options: BatchOptions = BatchOptions()) -> None:  # noqa: B008 - a value
        """Append a batch of each size to the log."""
        for size in sizes:
            placed = options._replace(base_offset=self.end_offset)
            data = build_batch([RecordData(None, b"value")] * size, placed)
            self.log.extend(read_batches(data))
            self.end_offset += size

    def move_log_start(self, offset: int) -> None:
        """Delete the records of the log before an offset, and have the share partition know."""
        self.log_start_offset = offset
        self.log = [one for one in self.log if one.last_offset >= offset]
        self.partition.move_log_start(offset)

    def acquire(
        self,
        member_id: str,
        max_records: int = 500,
        *,
        mode: ShareAcquireMode = ShareAcquireMode.BATCH_OPTIMIZED,
        aborted: tuple[AbortedTransaction, ...] = (),
    ) -> list[tuple[int, int, int]]:
        """Fetch and acquire; return the first and last offset of each batch, and its deliveries."""
        if self.partition.next_fetch_offset() < self.log_start_offset:
            self.partition.move_log_start(self.log_start_offset)
        offset = self.partition.next_fetch_offset()
        batches = [one for one in self.log if one.last_offset >= offset]
        acquired = self.partition.acquire(
            ShareAcquirer(member_id, mode, 500),
            FetchedRecords(offset, batches, aborted),
            max_records=max_records,
            now_ms=self.now_ms,
        )
        return [(one.first_offset, one.last_offset, one.delivery_count) for one in acquired.batches]

    def acknowledge(self, member_id: str, kind: AcknowledgeType, *runs: Run) -> StateWrite | None:
        """Acknowledge runs of offsets alike."""
        batches = [ShareAcknowledgementBatch(first, last, [kind]) for first, last in runs]
        return self.partition.acknowledge(member_id, batches, now_ms=self.now_ms)

    def complete(
        self, write: StateWrite | None, error: ErrorCode = ErrorCode.NONE
    ) -> CompletedWrite:
        """Complete a write with an error, or none."""
        assert write is not None
        return self.partition.complete_write(write, error, None)

    def pass_time(self, ms: int) -> StateWrite | None:
        """Let time pass, and the locks expire whose time is over then."""
        self.now_ms += ms
        return self.partition.expire_locks(self.now_ms).write

    def expire_all(self) -> None:
        """Have every lock expire, and that written."""
        self.complete(self.pass_time(LOCK_MS))

    def bury(self, dead_letters: tuple[DeadLetter, ...]) -> None:
        """Complete what is done with dead letters."""
        self.complete(self.partition.complete_dead_letters(dead_letters))
