"""The way of a partition's records into a shard (Kafka's CoordinatorLoaderImpl)."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from kvorum.broker.partition import Partition
from kvorum.coordinator.record import DamagedRecordError
from kvorum.coordinator.shard import CoordinatorShard
from kvorum.node.broker.coordinator.latest_records import LatestRecords
from kvorum.node.broker.stored_appends import stored
from kvorum.node.coroutines import Task, in_thread, other_work, sleep
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.storage.errors import StorageError, TooManyOpenFilesError
from kvorum.storage.log.disk_queue import DESCRIPTOR_WAIT_SECONDS
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.read_moment import ReadMoment
from kvorum.wire.errors import WireError
from kvorum.wire.records import ControlRecordType, RecordBatch, decode_control_record
from kvorum.wire.records.compacted_batch import converted
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import LegacyMessage, read_entries

LOAD_BYTES: Final = 64 * 1024
"""The part that is read and replayed before others in the event loop have their turn."""
DESCRIPTOR_WAIT_MS: Final = 1000 * DESCRIPTOR_WAIT_SECONDS
"""The pause before a read that got no descriptor is tried again."""
_log = logging.getLogger(__name__)


def replay_batch(shard: CoordinatorShard, batch: RecordBatch, now_ms: int) -> None:
    """Replay the records of a batch, or the marker that ends a transaction.

    Compaction may have taken records, or all of them, out of a batch. Raises `DamagedRecordError`.
    """
    try:
        if batch.is_control:
            _replay_control(shard, batch)
        else:
            _replay_data(shard, batch, now_ms)
    except WireError as error:
        raise DamagedRecordError(str(error)) from error
    shard.timeline.written_offset = batch.next_offset


def _replay_data(shard: CoordinatorShard, batch: RecordBatch, now_ms: int) -> None:
    for record in batch.records(UNLIMITED_BYTES):
        if record.key is None:
            raise DamagedRecordError(f"no key at offset {record.offset}")
        shard.load_record(record.offset, batch.producer_id, record.key, record.value, now_ms)


def _replay_control(shard: CoordinatorShard, batch: RecordBatch) -> None:
    for record in batch.records():
        kind = decode_control_record(record).type
        if kind in {ControlRecordType.COMMIT, ControlRecordType.ABORT}:
            is_commit = kind is ControlRecordType.COMMIT
            shard.replay_end_transaction_marker(batch.producer_id, is_commit=is_commit)


class LoadEndedError(Exception):
    """The partition is not led here any more: the shard is of no use."""


class CoordinatorLoader:
    """Replays the whole log of a partition, also what is not committed yet; part by part.

    Of the committed records of a key the latest one alone is replayed where the shard needs no
    other. Compaction may have left gaps, at the end as well. A lack of file descriptors is waited
    for. `then` is called once, with None or with the error: LoadEndedError, DamagedRecordError,
    WireError, StorageError, or what a record causes.
    """

    def __init__(
        self,
        shard: CoordinatorShard,
        partition: Partition,
        runtime: Runtime,
        then: Callable[[Exception | None], None],
    ) -> None:
        self._shard = shard
        self._partition = partition
        self._runtime = runtime
        self._offset = partition.log.log_start_offset
        shard.timeline.written_offset = self._offset
        self._latest = LatestRecords()
        self._has_lacked_descriptors = False
        self._task = Task(self._load(), then)

    def cancel(self) -> None:
        """Read no further, and do not call `then`."""
        self._task.close()

    async def _load(self) -> None:
        is_over = False
        while not is_over:
            await other_work(self._runtime)
            is_over = await self._load_part()

    async def _load_part(self) -> bool:
        """Replay some batches; return whether the end of the log is reached."""
        # The replica may have moved to another directory since the last part.
        log = self._partition.log.local_log
        await stored(log.writes)
        end_offset = log.log_end_offset
        data: memoryview | None = memoryview(b"")
        if self._offset < end_offset:
            data = await self._read(log, end_offset)
        if not self._partition.is_leader:
            raise LoadEndedError
        if data is None:
            return False
        if not data:
            await self._replay_latest()
            self._shard.timeline.written_offset = end_offset
            self._commit(end_offset)
            return True
        for entry in read_entries(data):
            batch = converted(entry) if isinstance(entry, LegacyMessage) else entry
            if self._is_replaced_by_later_ones(batch):
                self._latest.add(batch)
            else:
                await self._replay_latest()
                replay_batch(self._shard, batch, self._runtime.wall_ms())
            self._offset = batch.next_offset
            self._commit(self._offset)
        return False

    async def _read(self, log: LocalLog, end_offset: int) -> memoryview | None:
        """Return the next part of the log; None if it has to be read again."""
        read = partial(log.read, self._offset, LOAD_BYTES, end_offset=end_offset)
        moment = ReadMoment.of(log)
        try:
            data: memoryview = await in_thread(self._runtime, read)
            return data
        except TooManyOpenFilesError as error:
            self._log_lack_of_descriptors(error)
            await sleep(self._runtime, DESCRIPTOR_WAIT_MS)
        except StorageError:
            if moment.lasts_in(self._partition.log.local_log):
                raise
            # Compaction, or a move to another directory, has closed the file meanwhile.
        return None

    def _log_lack_of_descriptors(self, error: TooManyOpenFilesError) -> None:
        """Log the first lack of a load."""
        if not self._has_lacked_descriptors:
            self._has_lacked_descriptors = True
            where = str(self._partition.topic_partition)
            _log.warning(
                LogEvent("A coordinator's load is waiting", partition=where, error=str(error))
            )

    def _is_replaced_by_later_ones(self, batch: RecordBatch) -> bool:
        return (
            self._shard.needs_latest_records_alone
            and not batch.is_control
            and batch.next_offset <= self._partition.log.high_watermark
        )

    async def _replay_latest(self) -> None:
        for _ in self._latest.take_parts(self._shard, self._runtime.wall_ms()):
            await other_work(self._runtime)
        self._shard.timeline.written_offset = self._offset
        self._commit(self._offset)

    def _commit(self, offset: int) -> None:
        self._shard.timeline.commit(min(offset, self._partition.log.high_watermark))
