"""The partition ``__cluster_metadata``-0 of a broker that lets consumers read it.

Every broker is an observer of the quorum and has a copy of the metadata log of its own. It serves
what of that is committed and applied: what a consumer reads is in the metadata that the same broker
answers from. Below the log's start there are only snapshots, which consumers cannot read.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Self

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.log_read import LogReadInfo
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.partition_watchers import PartitionWatchers
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.coroutines import Lock, Pulse, other_work
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.node.runtime import Runtime
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.storage.topic_log.timestamp_and_offset import TimestampAndOffset, first_record_since
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

_log = logging.getLogger(__name__)
ANSWER_BYTES_MAX: Final = 256 * 1024
"""The most records of one response, unless a single batch is bigger (Kafka limits one to 8 MiB).

It bounds what a slow consumer keeps in memory, and for how long one read keeps the event loop.
"""
AWAITED_BYTES_MAX: Final = 16 * 1024
"""The most bytes that a fetch waits for, as each commit has all of them read again."""
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
SCAN_BYTES: Final = 64 * 1024
"""The part of the log that is looked through before other work of the event loop gets its turn."""
NO_TIMESTAMP: Final = -1
NOT_FOUND: Final = TimestampAndOffset(NO_TIMESTAMP, -1, -1)


class MetadataTopic:
    """The committed part of this node's metadata log; every read is of bounded size.

    It is a `ReadablePartition`, as a `Partition` is: a fetch uses both alike.

    Reads are done in the event loop, which owns the log, so that nothing removes a file during one.
    A fetch waits for its turn before it reads: however many consumers begin one, other work of the
    event loop waits for a single read.
    """

    def __init__(self, raft: RaftNode, loader: MetadataLoader, runtime: Runtime) -> None:
        self.topic_partition: Final = TopicPartition(
            CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_PARTITION
        )
        self.topic_id: Final = METADATA_TOPIC_ID
        self.leader_epoch: Final = NO_EPOCH
        self.is_leader: Final = True
        self._raft = raft
        self._loader = loader
        self._runtime = runtime
        self._turn = Lock(runtime)
        self._changes = Pulse(runtime)
        self.watchers = PartitionWatchers()
        self._failures = RareEvents()
        loader.subscribe(self._changed)

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._raft.log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """The offset below which everything is committed, and known to this broker."""
        # A fetched snapshot replaces the log before it is loaded.
        return max(self._loader.last_offset + 1, self.log_start_offset)

    @property
    def start_epoch(self) -> int:
        """The leader epoch of the first record, NO_EPOCH if that is not known."""
        starts = self._raft.log.local_log.epoch_starts
        if not starts or starts[0].start_offset > self.log_start_offset:
            return NO_EPOCH
        return starts[0].epoch

    def partition(self, index: int) -> Self:
        """Return this for the index of the only partition; raise RequestError for another one."""
        if index != self.topic_partition.partition:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self

    async def next_turn(self) -> None:
        """Wait until it is the caller's turn to read once."""
        async with self._turn:
            await other_work(self._runtime)

    def read(self, offset: int, max_bytes: int) -> memoryview:
        """Return committed batches, from the one that holds `offset` on; empty at the end.

        They are at most `max_bytes`, but at least one batch. Raises OffsetOutOfRangeError outside
        of the log, LeaderRefusesError if it cannot be read.
        """
        with self._refusing():
            return self._raft.log.local_log.read(offset, max_bytes, end_offset=self.high_watermark)

    async def wait_to_read(self, offset: int) -> None:
        """Wait until a fetch may read from `offset` on, and it is its turn.

        Raises RequestError for an offset above the end of this copy. Another broker may be ahead,
        and a consumer that comes from there must not learn that its place does not exist: it
        would begin again. So this waits until this broker either has that place, or has been in
        touch with one leader for long enough to know that the quorum does not have it
        (OFFSET_OUT_OF_RANGE). If it was not, it does not know (OFFSET_NOT_AVAILABLE, upon which
        clients try again).
        """
        if offset > self._raft.log.log_end_offset:
            await self._catch_up(offset)
        await self.next_turn()

    async def _catch_up(self, offset: int) -> None:
        epoch = self._raft.epoch
        # A leader that is cut off gives up after one and a half fetch timeouts.
        patience_ms = 2 * self._raft.settings.raft.fetch_timeout_ms
        if await self._changes.until(lambda: self.high_watermark >= offset, patience_ms):
            return
        is_known = self._raft.is_in_touch and self._raft.epoch == epoch
        raise RequestError.with_default_message(
            ErrorCode.OFFSET_OUT_OF_RANGE if is_known else ErrorCode.OFFSET_NOT_AVAILABLE
        )

    def fetch_records(self, offset: int, max_bytes: int, **_: object) -> LogReadInfo:
        """Read for a consumer; see `read`. Nothing depends on its epochs or its isolation."""
        offsets = self.fetch_offset_snapshot(NO_EPOCH)
        return offsets._replace(records=self.read(offset, min(max_bytes, ANSWER_BYTES_MAX)))

    def fetch_offset_snapshot(self, _leader_epoch: int) -> LogReadInfo:
        """Return the offsets alone. No transactions of producers are in this log."""
        high_watermark = self.high_watermark
        return LogReadInfo(high_watermark, high_watermark, self.log_start_offset, b"")

    def fetch_records_of_follower(self, *_: object, **__: object) -> LogReadInfo:
        """Refuse: replicas of the metadata log fetch from the leader of the quorum."""
        raise LeaderRefusesError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def bytes_available(
        self, offset: int, max_bytes: int, *, wanted: int, **_: object
    ) -> int | None:
        """Return how many bytes there are for a fetch, None if it must not wait at this offset."""
        if not self.log_start_offset <= offset <= self._raft.log.log_end_offset:
            return None
        if wanted == 1 and offset < self.high_watermark:
            return wanted
        try:
            records = self.read(offset, min(max_bytes, wanted, AWAITED_BYTES_MAX))
        except LeaderRefusesError:
            return None
        for batch in read_batches(records):
            offset = batch.next_offset
        # If more follows, the bytes that a fetch waits for are there, or a segment ends here.
        return len(records) if offset >= self.high_watermark else wanted

    async def find_offset(self, timestamp: int) -> TimestampAndOffset:
        """Return the offset for a timestamp, or for a number that stands for a place.

        Raises LeaderRefusesError if the log cannot be read.
        """
        if timestamp == LATEST:
            return TimestampAndOffset(NO_TIMESTAMP, self.high_watermark, self._loader.last_epoch)
        if timestamp in {EARLIEST, EARLIEST_LOCAL}:
            return TimestampAndOffset(NO_TIMESTAMP, self.log_start_offset, self.start_epoch)
        if timestamp == MAX_TIMESTAMP:
            return await self._first_as_late_as(self._raft.log.local_log.max_timestamp)
        # The other special numbers are about tiered storage, which this log does not have.
        return NOT_FOUND if timestamp < 0 else await self._first_as_late_as(timestamp)

    async def _first_as_late_as(self, timestamp: int) -> TimestampAndOffset:
        """Return the first committed record with `timestamp` or a later one."""
        with self._refusing():
            offset = self._raft.log.local_log.offset_before(timestamp)
        if offset is None:
            return NOT_FOUND
        while True:
            await self.next_turn()
            try:
                data = self.read(offset, SCAN_BYTES)
            except OffsetOutOfRangeError:
                # The log's start has moved past this place.
                offset = self.log_start_offset
                continue
            if not data:
                return NOT_FOUND
            for batch in read_batches(data):
                offset = batch.next_offset
                found = first_record_since(batch, timestamp, start_offset=self.log_start_offset)
                if found is not None:
                    return found

    def _changed(self, _image: MetadataImage) -> None:
        self._changes.beat()
        self.watchers.notify()

    @contextmanager
    def _refusing(self) -> Generator[None]:
        """Log a failed read. It harms that read alone: the replica judges the disk by its own."""
        try:
            yield
        except OffsetOutOfRangeError:
            raise
        except StorageError as error:
            suppressed_count = self._failures.happened(self._runtime.monotonic_ms())
            if suppressed_count is not None:
                _log.warning(
                    LogEvent(
                        "A consumer could not read the metadata log",
                        error=str(error),
                        others=suppressed_count or None,
                    )
                )
            raise LeaderRefusesError(ErrorCode.KAFKA_STORAGE_ERROR) from error
